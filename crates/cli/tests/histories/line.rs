//! How a client speaks to the server: over HTTP or over gRPC. What comes back means the same.

use serde_json::{Value, json};
use tenure_proto::v1;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};
use v1::tasks_client::TasksClient;
use v1::workers_client::WorkersClient;

use crate::register::{LEASE_US, MAX_EXPIRIES, MAX_FAILURES, Shown};
use crate::server::{JSON, agent, url};

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Submit { queue: String, nonce: u64 },
    Lease { queue: String, worker: String, max: u32 },
    Heartbeat { task: u64, lease: u64 },
    Complete { task: u64, lease: u64 },
    Fail { task: u64, lease: u64 },
    Release { task: u64, lease: u64 },
    Cancel { task: u64 },
    Retry { task: u64 },
    Read { task: u64 },
}

/// What is heard.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    Task(u64, Shown),
    Leases(Vec<Granted>),
    Extended { cancel_requested: bool },
    Refused(String),
    Nothing,
}

/// A lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    pub(crate) task: u64,
    pub(crate) lease: u64,
    pub(crate) attempt: u64,
}

/// A client's end of a connection.
pub(crate) enum Line {
    Http { agent: ureq::Agent, address: String },
    Grpc { runtime: tokio::runtime::Runtime, channel: Channel },
}

const LEASE_MS: u32 = (LEASE_US / 1_000) as u32;

impl Line {
    pub(crate) fn http(address: &str) -> Self {
        Self::Http { agent: agent(), address: address.to_owned() }
    }

    pub(crate) fn grpc(address: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint = Endpoint::new(format!("http://{address}")).unwrap();
        let channel = runtime.block_on(endpoint.connect()).unwrap();
        Self::Grpc { runtime, channel }
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(&self, ask: &Ask) -> Heard {
        match self {
            Self::Http { agent, address } => over_http(agent, address, ask),
            Self::Grpc { runtime, channel } => runtime.block_on(over_grpc(channel, ask)),
        }
    }
}

fn over_http(agent: &ureq::Agent, address: &str, ask: &Ask) -> Heard {
    let of = |task: &u64, verb: &str| format!("/v1/tasks/{task}/{verb}");
    let (path, body) = match ask {
        Ask::Submit { queue, nonce } => (
            "/v1/tasks".to_owned(),
            json!({
                "queue": queue, "payload": nonce, "key": nonce.to_string(),
                "lease_ms": LEASE_MS, "max_failures": MAX_FAILURES, "max_expiries": MAX_EXPIRIES,
                "backoff": {"kind": "fixed", "initial_ms": 1, "jitter": 0},
            }),
        ),
        Ask::Lease { queue, worker, max } => {
            let body = json!({"worker": worker, "queues": [queue], "max": max, "wait_ms": 10});
            ("/v1/leases".to_owned(), body)
        }
        Ask::Heartbeat { task, lease } => (of(task, "heartbeat"), json!({"lease_id": lease})),
        Ask::Complete { task, lease } => (of(task, "complete"), json!({"lease_id": lease})),
        Ask::Fail { task, lease } => (of(task, "fail"), json!({"lease_id": lease, "reason": "no"})),
        Ask::Release { task, lease } => (of(task, "release"), json!({"lease_id": lease})),
        Ask::Cancel { task } => (of(task, "cancel"), json!({})),
        Ask::Retry { task } => (of(task, "retry"), json!({})),
        Ask::Read { task } => (format!("/v1/tasks/{task}"), Value::Null),
    };
    let answer = match ask {
        Ask::Read { .. } => agent.get(url(address, &path)).call(),
        _ => agent.post(url(address, &path)).content_type(JSON).send(body.to_string()),
    };
    let answer = answer.and_then(|mut answer| {
        let status = answer.status().as_u16();
        answer.body_mut().read_to_string().map(|text| (status, text))
    });
    match answer {
        Ok((status @ 200..500, text)) => {
            let body = serde_json::from_str(&text).unwrap_or(Value::Null);
            hear(ask, status, &body)
        }
        Ok(_) | Err(_) => Heard::Nothing,
    }
}

fn hear(ask: &Ask, status: u16, body: &Value) -> Heard {
    let number = |value: &Value| value.as_u64().unwrap();
    match ask {
        _ if status >= 400 => Heard::Refused(body["code"].as_str().unwrap().to_owned()),
        Ask::Lease { .. } => {
            let granted = |lease: &Value| Granted {
                task: number(&lease["task_id"]),
                lease: number(&lease["lease_id"]),
                attempt: number(&lease["attempt"]),
            };
            Heard::Leases(body["leases"].as_array().unwrap().iter().map(granted).collect())
        }
        Ask::Heartbeat { .. } => {
            Heard::Extended { cancel_requested: body["cancel_requested"].as_bool().unwrap() }
        }
        Ask::Submit { .. }
        | Ask::Complete { .. }
        | Ask::Fail { .. }
        | Ask::Release { .. }
        | Ask::Cancel { .. }
        | Ask::Retry { .. }
        | Ask::Read { .. } => {
            let shown = Shown {
                state: body["state"].as_str().unwrap().to_owned(),
                attempt: number(&body["attempt"]),
                failures: number(&body["failures"]),
                expiries: number(&body["expiries"]),
                cancel_requested: body["cancel_requested"].as_bool().unwrap(),
                lease: body["lease"]["lease_id"].as_u64(),
            };
            Heard::Task(number(&body["id"]), shown)
        }
    }
}

async fn over_grpc(channel: &Channel, ask: &Ask) -> Heard {
    let mut tasks = TasksClient::new(channel.clone());
    let mut workers = WorkersClient::new(channel.clone());
    match *ask {
        Ask::Submit { ref queue, nonce } => {
            let request = v1::SubmitRequest { task: Some(new_task(queue, nonce)) };
            let submitted = tasks.submit(request).await;
            task_of(submitted.map(|answer| answer.map(|answer| answer.task.unwrap())))
        }
        Ask::Lease { ref queue, ref worker, max } => {
            let request = v1::LeaseRequest {
                worker: worker.clone(),
                queues: vec![queue.clone()],
                max: Some(max),
                wait_ms: 10,
                ..Default::default()
            };
            match workers.lease(request).await {
                Ok(answer) => {
                    Heard::Leases(answer.into_inner().leases.iter().map(granted).collect())
                }
                Err(status) => refused(&status),
            }
        }
        Ask::Heartbeat { task, lease } => {
            let (task_id, lease_id) = (task, lease);
            let request = v1::HeartbeatReport { task_id, lease_id, ..Default::default() };
            match workers.heartbeat(request).await {
                Ok(answer) => {
                    Heard::Extended { cancel_requested: answer.into_inner().cancel_requested }
                }
                Err(status) => refused(&status),
            }
        }
        Ask::Complete { task, lease } => {
            let (task_id, lease_id) = (task, lease);
            let request = v1::CompleteReport { task_id, lease_id, ..Default::default() };
            task_of(workers.complete(request).await)
        }
        Ask::Fail { task, lease } => {
            let (task_id, lease_id, reason) = (task, lease, "no".to_owned());
            let request = v1::FailReport { task_id, lease_id, reason, ..Default::default() };
            task_of(workers.fail(request).await)
        }
        Ask::Release { task, lease } => {
            let (task_id, lease_id) = (task, lease);
            let request = v1::ReleaseReport { task_id, lease_id, ..Default::default() };
            task_of(workers.release(request).await)
        }
        Ask::Cancel { task } => {
            let request = v1::CancelTaskRequest { task_id: task, ..Default::default() };
            task_of(tasks.cancel(request).await)
        }
        Ask::Retry { task } => task_of(tasks.retry(v1::RetryTaskRequest { task_id: task }).await),
        Ask::Read { task } => {
            let request = v1::GetTaskRequest { task_id: task, ..Default::default() };
            task_of(tasks.get(request).await)
        }
    }
}

fn new_task(queue: &str, nonce: u64) -> v1::NewTask {
    let backoff = v1::Backoff {
        kind: v1::BackoffKind::Fixed.into(),
        initial_ms: Some(1),
        max_ms: None,
        jitter: Some(0.0),
    };
    v1::NewTask {
        queue: queue.to_owned(),
        payload: nonce.to_string().into_bytes(),
        key: Some(nonce.to_string()),
        lease_ms: Some(LEASE_MS),
        max_failures: Some(MAX_FAILURES as u32),
        max_expiries: Some(MAX_EXPIRIES as u32),
        backoff: Some(backoff),
        ..Default::default()
    }
}

fn granted(lease: &v1::Lease) -> Granted {
    Granted { task: lease.task_id, lease: lease.lease_id, attempt: lease.attempt.into() }
}

fn task_of(answer: Result<Response<v1::Task>, Status>) -> Heard {
    let task = match answer {
        Ok(answer) => answer.into_inner(),
        Err(status) => return refused(&status),
    };
    let shown = Shown {
        state: task.state().as_str_name().trim_start_matches("TASK_STATE_").to_owned(),
        attempt: task.attempt.into(),
        failures: task.failures.into(),
        expiries: task.expiries.into(),
        cancel_requested: task.cancel_requested,
        lease: task.lease.as_ref().map(|lease| lease.lease_id),
    };
    Heard::Task(task.id, shown)
}

/// A status without a code comes from no server, and one that stops may have done what was asked.
fn refused(status: &Status) -> Heard {
    match status.metadata().get("tenure-code").map(|code| code.to_str().unwrap()) {
        Some("unavailable") | None => Heard::Nothing,
        Some(code) => Heard::Refused(code.to_owned()),
    }
}

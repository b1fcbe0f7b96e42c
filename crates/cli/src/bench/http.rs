//! The load over HTTP/1.1: each connection submits, leases and completes, one request after the
//! other.

use std::fmt::Write;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tenure_sdk::Error;
use tokio::net::TcpStream;

use super::Load;
use super::tally::{Tally, collect};
use crate::client::Server;
use crate::failure::Failure;

/// How long a connection waits for tasks that another one has submitted.
pub(super) const LEASE_WAIT_MS: u32 = 20;
/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(
    server: &Server,
    load: &Arc<Load>,
    connections: u32,
) -> Result<Tally, Failure> {
    let mut running = Vec::new();
    for number in 0..connections {
        let door = Door::open(server).await?;
        running.push(tokio::spawn(live(door, Arc::clone(load), number)));
    }
    collect(running).await
}

/// One connection's part of the load.
async fn live(mut door: Door, load: Arc<Load>, number: u32) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let (path, batch) = (submit_path(load.batch), load.batch);
    let whole = submit_body(&load, batch, batch);
    let lease = lease_body(&load, &format!("bench-{number}"), LEASE_WAIT_MS);
    while !load.is_done() {
        if let Some(tasks) = load.take() {
            let body = match tasks == batch {
                true => whole.clone(),
                false => submit_body(&load, batch, tasks),
            };
            if door.ask(path, body, &mut tally).await?.is_none() {
                load.give_back(tasks);
            }
        }
        if let Some(answer) = door.ask("/v1/leases", lease.clone(), &mut tally).await? {
            complete(&mut door, &load, &answer, &mut tally).await?;
        }
    }
    Ok(tally)
}

pub(super) async fn complete(
    door: &mut Door,
    load: &Load,
    leases: &[u8],
    tally: &mut Tally,
) -> Result<(), Failure> {
    let Leases { leases } = parse(leases)?;
    let done = match leases.as_slice() {
        [] => 0,
        [Lease { task_id, lease_id }] => {
            let path = format!("/v1/tasks/{task_id}/complete");
            let body = format!(r#"{{"lease_id":{lease_id},"output":1}}"#);
            u64::from(door.ask(&path, body.into(), tally).await?.is_some())
        }
        many => match door.ask("/v1/reports", reports_body(many), tally).await? {
            Some(answer) => {
                let Results { results } = parse(&answer)?;
                results.iter().filter(|result| result.ok).count() as u64
            }
            None => 0,
        },
    };
    tally.lifecycles += done;
    load.complete(done);
    Ok(())
}

#[derive(Deserialize)]
struct Leases {
    leases: Vec<Lease>,
}

#[derive(Deserialize)]
struct Lease {
    task_id: u64,
    lease_id: u64,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<ReportResult>,
}

#[derive(Deserialize)]
struct ReportResult {
    ok: bool,
}

fn parse<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer)
        .map_err(|error| Error::unavailable(format!("the answer is not Tenure's: {error}")).into())
}

pub(super) fn submit_path(batch: u32) -> &'static str {
    if batch == 1 { "/v1/tasks" } else { "/v1/tasks/batch" }
}

/// The last of many batches may have fewer tasks than the others.
pub(super) fn submit_body(load: &Load, batch: u32, tasks: u32) -> Bytes {
    let payload = String::from_utf8_lossy(&load.payload);
    let one = format!(r#"{{"queue":"{}","payload":{payload}}}"#, load.queue);
    match batch {
        1 => one.into(),
        _ => format!(r#"{{"tasks":[{}]}}"#, vec![one; tasks as usize].join(",")).into(),
    }
}

pub(super) fn lease_body(load: &Load, worker: &str, wait_ms: u32) -> Bytes {
    let (queue, max) = (&load.queue, load.batch);
    format!(r#"{{"worker":"{worker}","queues":["{queue}"],"max":{max},"wait_ms":{wait_ms}}}"#)
        .into()
}

fn reports_body(leases: &[Lease]) -> Bytes {
    let mut body = String::with_capacity(64 * leases.len());
    body.push_str(r#"{"complete":["#);
    for (at, Lease { task_id, lease_id }) in leases.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        // A string takes whatever is written to it.
        let _ = write!(body, r#"{comma}{{"task_id":{task_id},"lease_id":{lease_id},"output":1}}"#);
    }
    body.push_str("]}");
    body.into()
}

/// One connection.
pub(super) struct Door {
    requests: http1::SendRequest<Full<Bytes>>,
    host: HeaderValue,
    key: Option<HeaderValue>,
}

impl Door {
    pub(super) async fn open(server: &Server) -> Result<Self, Failure> {
        let authority = server.authority()?;
        let unreachable = |error: &dyn std::fmt::Display| Error::unavailable(error.to_string());
        let stream = TcpStream::connect(&authority).await.map_err(|error| unreachable(&error))?;
        stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
        let (requests, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&error))?;
        // Why a connection ends is told to whoever asks through it.
        tokio::spawn(async move { drop(connection.await) });
        let wrong = |_| Error::unavailable("the address or the key cannot be sent in a header");
        let key = server.api_key.as_ref().map(|key| format!("Bearer {key}").parse());
        Ok(Self {
            requests,
            host: authority.parse().map_err(wrong)?,
            key: key.transpose().map_err(wrong)?,
        })
    }

    /// Posts and counts, and gives the answer; nothing if it was refused for now, after the wait
    /// that was asked for.
    pub(super) async fn ask(
        &mut self,
        path: &str,
        body: Bytes,
        tally: &mut Tally,
    ) -> Result<Option<Bytes>, Failure> {
        match self.try_ask(path, body, tally).await? {
            Tried::Answered(body) => Ok(Some(body)),
            Tried::Refused { retry_after } => {
                tokio::time::sleep(retry_after.unwrap_or_default()).await;
                Ok(None)
            }
        }
    }

    /// Posts and counts, and does not wait after a refusal. Whether it was taken.
    pub(super) async fn offer(
        &mut self,
        path: &str,
        body: Bytes,
        tally: &mut Tally,
    ) -> Result<bool, Failure> {
        match self.try_ask(path, body, tally).await? {
            Tried::Answered(_) => Ok(true),
            Tried::Refused { retry_after } => {
                tally.refused_without_advice += u64::from(retry_after.is_none());
                Ok(false)
            }
        }
    }

    async fn try_ask(
        &mut self,
        path: &str,
        body: Bytes,
        tally: &mut Tally,
    ) -> Result<Tried, Failure> {
        let start = Instant::now();
        let Reply { status, retry_after, body } = self.post(path, body).await?;
        tally.took(start.elapsed());
        if status.is_success() {
            return Ok(Tried::Answered(body));
        }
        let why = || String::from_utf8_lossy(&body).into_owned();
        tally.refused(why);
        if status != StatusCode::TOO_MANY_REQUESTS && status != StatusCode::INSUFFICIENT_STORAGE {
            return Err(Error::unavailable(format!("{status}: {}", why())).into());
        }
        Ok(Tried::Refused { retry_after })
    }

    pub(super) async fn post(&mut self, path: &str, body: Bytes) -> Result<Reply, Failure> {
        let cut =
            |error: hyper::Error| Error::unavailable(format!("the connection is gone: {error}"));
        let mut request = Request::post(path).header(HOST, self.host.clone());
        request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.clone());
        }
        let request = request.body(Full::new(body));
        let request = request.map_err(|error| Error::unavailable(error.to_string()))?;
        poll_fn(|context| self.requests.poll_ready(context)).await.map_err(cut)?;
        let reply = async {
            let answer = self.requests.send_request(request).await?;
            let (status, retry_after) = (answer.status(), retry_after(&answer));
            let body = answer.into_body().collect().await?.to_bytes();
            Ok(Reply { status, retry_after, body })
        };
        let silent = |_| Error::unavailable("there was no answer for a minute");
        Ok(tokio::time::timeout(PATIENCE, reply).await.map_err(silent)?.map_err(cut)?)
    }
}

/// What became of a request.
enum Tried {
    Answered(Bytes),
    /// Not now; when to come back, if it was said.
    Refused {
        retry_after: Option<Duration>,
    },
}

/// What the server said.
pub(super) struct Reply {
    status: StatusCode,
    retry_after: Option<Duration>,
    pub(super) body: Bytes,
}

fn retry_after<B>(answer: &hyper::Response<B>) -> Option<Duration> {
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.parse().ok().map(Duration::from_secs)
}

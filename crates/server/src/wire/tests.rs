//! The doors agree: what means the same over HTTP and over gRPC becomes the same command, or is
//! refused with the same words.

mod messages;

use bytes::Bytes;
use proptest::collection::btree_map;
use proptest::option::of;
use proptest::prelude::*;
use prost::Message;
use serde_json::{Map, Value, json};
use tenure_api as api;
use tenure_proto::v1;

use super::report::{self, About};
use super::{flow, request};
use crate::grpc::fast_path;
use crate::json::parse as parse_json;
use crate::problem::Problem;

/// As it would arrive over gRPC.
fn sent<M: Message + Default>(message: &M) -> M {
    M::decode(&message.encode_to_vec()[..]).unwrap()
}

/// Drops what was not given, as a client does.
fn given(fields: Value) -> Bytes {
    let Value::Object(fields) = fields else { panic!("a request is an object") };
    let given: Map<_, _> = fields.into_iter().filter(|(_, value)| !value.is_null()).collect();
    Value::Object(given).to_string().into()
}

fn same<T: std::fmt::Debug + PartialEq>(http: Result<T, Problem>, grpc: Result<T, Problem>) {
    match (http, grpc) {
        (Ok(http), Ok(grpc)) => assert_eq!(http, grpc),
        (Err(http), Err(grpc)) => {
            assert_eq!((http.code, http.detail), (grpc.code, grpc.detail));
        }
        (http, grpc) => panic!("one door says {http:?}, the other {grpc:?}"),
    }
}

/// Names, good ones and bad ones.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z][a-z0-9/._-]{0,8}",
        1 => Just("a\u{200b}b".to_owned()),
        1 => Just("x".repeat(300)),
        1 => Just("\u{7}".to_owned()),
    ]
}

/// Spans, good ones and such as are too long.
fn span() -> impl Strategy<Value = u64> {
    prop_oneof![5 => 0_u64..100_000, 1 => Just(31_622_400_001), 1 => Just(u64::MAX / 2)]
}

fn backoff() -> impl Strategy<Value = v1::Backoff> {
    let jitter = of(prop_oneof![0.0..=1.0, Just(-0.1), Just(1.5)]);
    (0..=3_i32, of(0_u64..10_000), of(0_u64..1_000_000_000), jitter).prop_map(
        |(kind, initial_ms, max_ms, jitter)| v1::Backoff { kind, initial_ms, max_ms, jitter },
    )
}

fn new_task() -> impl Strategy<Value = v1::NewTask> {
    let times = (of(span()), of(0_u64..4_000_000_000_000), of(span()), of(span()), of(span()));
    let budgets = (of(0_u32..20_000), of(0_u32..20_000), of(0_u32..100_000_000), of(0_u32..20_000));
    let texts = (name(), of(name()), btree_map(name(), name(), 0..4));
    (texts, times, budgets, -120_i32..120, of(backoff()), prop::bool::weighted(0.02)).prop_map(
        |(texts, times, budgets, priority, backoff, is_big)| v1::NewTask {
            payload: if is_big { vec![b'1'; 2 << 20] } else { b"[1,2]".to_vec() },
            priority,
            delay_ms: times.0,
            run_at: times.1,
            max_failures: budgets.0,
            max_expiries: budgets.1,
            max_attempts: budgets.3,
            attempt_timeout_ms: times.3,
            key_ttl_ms: times.4,
            traceparent: (texts.0.len() % 3 == 0).then(|| {
                let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
                if texts.0.len() % 2 == 0 { parent.to_owned() } else { "00-ab".to_owned() }
            }),
            backoff,
            lease_ms: budgets.2,
            total_timeout_ms: times.2,
            name: texts.1.clone().filter(|_| priority % 2 == 0),
            queue: texts.0,
            key: texts.1,
            tags: texts.2,
        },
    )
}

fn moment(ms: u64) -> String {
    jiff::Timestamp::from_millisecond(ms as i64).unwrap().to_string()
}

fn task_json(task: &v1::NewTask) -> Bytes {
    let kinds = [None, Some("fixed"), Some("linear"), Some("exponential")];
    let backoff = task.backoff.as_ref().map(|backoff| {
        let fields = json!({
            "kind": kinds[backoff.kind as usize],
            "initial_ms": backoff.initial_ms,
            "max_ms": backoff.max_ms,
            "jitter": backoff.jitter,
        });
        serde_json::from_slice::<Value>(&given(fields)).unwrap()
    });
    // Not as a value, which would write a large number in its own way.
    let payload = String::from_utf8(task.payload.clone()).unwrap();
    let fields = given(json!({
        "queue": task.queue,
        "priority": task.priority,
        "delay_ms": task.delay_ms,
        "run_at": task.run_at.map(moment),
        "max_failures": task.max_failures,
        "max_expiries": task.max_expiries,
        "max_attempts": task.max_attempts,
        "attempt_timeout_ms": task.attempt_timeout_ms,
        "key_ttl_ms": task.key_ttl_ms,
        "traceparent": task.traceparent,
        "name": task.name,
        "backoff": backoff,
        "lease_ms": task.lease_ms,
        "total_timeout_ms": task.total_timeout_ms,
        "key": task.key,
        "tags": task.tags,
    }));
    let fields = std::str::from_utf8(&fields).unwrap();
    format!("{{\"payload\":{payload},{}", &fields[1..]).into()
}

proptest! {
    #[test]
    fn a_task_is_the_same_through_both_doors(task in new_task()) {
        let body = task_json(&task);
        let http = request::new_task(parse_json(&body).unwrap());
        same(http, request::new_task(sent(&task).into()));
    }

    #[test]
    fn a_lease_request_is_the_same_through_both_doors(
        worker in name(),
        queues in proptest::collection::vec(name(), 0..4),
        max in of(0_u32..2_000),
        wait_ms in 0_u64..100_000,
        lease_ms in of(0_u32..100_000_000),
    ) {
        let body = given(json!({
            "worker": worker, "queues": queues, "max": max, "wait_ms": wait_ms, "lease_ms": lease_ms,
        }));
        let http = request::lease(&parse_json(&body).unwrap());
        let request = v1::LeaseRequest { worker, queues, max, wait_ms, lease_ms };
        same(http, request::lease(&sent(&request).into()));
    }

    #[test]
    fn a_failure_is_the_same_through_both_doors(
        reason in "\\PC{0,20}",
        code in of(name()),
        retryable in of(any::<bool>()),
        retry_after_ms in of(span()),
        worker in of(name()),
        checkpoint in of(0..9_u8),
    ) {
        let body = given(json!({
            "lease_id": 7, "reason": reason, "code": code, "retryable": retryable,
            "retry_after_ms": retry_after_ms, "checkpoint": checkpoint, "worker": worker,
        }));
        let checkpoint = checkpoint.map(|n| n.to_string().into_bytes()).unwrap_or_default();
        let http = report::fail(About::Address(3), &parse_json(&body).unwrap());
        let report =
            v1::FailReport {
                task_id: 3, lease_id: 7, reason, code, retryable, retry_after_ms, worker, checkpoint,
            };
        same(http, report::fail(About::Report, &sent(&report).into()));
    }

    #[test]
    fn a_heartbeat_and_a_release_are_the_same_through_both_doors(
        progress in of(-0.5..1.5_f64),
        message in of("\\PC{0,20}"),
        checkpoint in of(0..9_u8),
        lease_ms in of(0..100_u32),
        delay_ms in of(span()),
        priority in of(-120..120_i32),
    ) {
        let bytes = checkpoint.map(|n| n.to_string().into_bytes()).unwrap_or_default();
        let body = given(json!({
            "lease_id": 7, "progress": progress, "message": message, "checkpoint": checkpoint,
            "lease_ms": lease_ms,
        }));
        let http = report::heartbeat(About::Address(3), &parse_json(&body).unwrap());
        let report = v1::HeartbeatReport {
            task_id: 3, lease_id: 7, progress, message, checkpoint: bytes.clone(), lease_ms,
            worker: None,
        };
        same(http, report::heartbeat(About::Report, &sent(&report).into()));
        let body = given(json!({
            "lease_id": 7, "delay_ms": delay_ms, "priority": priority, "checkpoint": checkpoint,
        }));
        let http = report::release(About::Address(3), &parse_json(&body).unwrap());
        let report = v1::ReleaseReport {
            task_id: 3, lease_id: 7, delay_ms, priority, checkpoint: bytes, worker: None,
        };
        same(http, report::release(About::Report, &sent(&report).into()));
    }

    #[test]
    fn reports_are_the_same_through_both_doors(
        heartbeats in proptest::collection::vec((1_u64..9, 1_u64..9), 0..3),
        completes in proptest::collection::vec((1_u64..9, 1_u64..9), 0..3),
        releases in proptest::collection::vec((1_u64..9, 1_u64..9), 0..3),
    ) {
        let item = |(task_id, lease_id): &(u64, u64)| json!({"task_id": task_id, "lease_id": lease_id});
        let items = |all: &[(u64, u64)]| all.iter().map(item).collect::<Vec<_>>();
        let body = given(json!({
            "heartbeat": items(&heartbeats), "complete": items(&completes), "release": items(&releases),
        }));
        let http = report::batch(parse_json(&body).unwrap()).map(|(reports, _)| reports);
        let alive = |(task_id, lease_id): (u64, u64)| {
            v1::HeartbeatReport { task_id, lease_id, ..Default::default() }
        };
        let release = |(task_id, lease_id): (u64, u64)| {
            v1::ReleaseReport { task_id, lease_id, ..Default::default() }
        };
        // What HTTP leaves out is null.
        let complete = |(task_id, lease_id): (u64, u64)| v1::CompleteReport {
            task_id, lease_id, output: b"null".to_vec(), artifacts: Vec::new(), worker: None,
        };
        let reports = v1::Reports {
            sequence: 0,
            heartbeats: heartbeats.into_iter().map(alive).collect(),
            completes: completes.into_iter().map(complete).collect(),
            fails: Vec::new(),
            releases: releases.into_iter().map(release).collect(),
        };
        same(http, fast_path::reports(sent(&reports), None).map(|(reports, _)| reports));
    }

    #[test]
    fn a_cancel_is_the_same_through_both_doors(grace_ms in of(span())) {
        let body = given(json!({"grace_ms": grace_ms}));
        let http = request::cancel(3, &parse_json(&body).unwrap());
        let request = v1::CancelTaskRequest { task_id: 3, grace_ms };
        let (task_id, cancel) = sent(&request).into();
        same(http, request::cancel(task_id, &cancel));
    }

    #[test]
    fn a_registration_is_the_same_through_both_doors(
        worker in name(),
        display_name in of(name()),
        queues in proptest::collection::vec("[a-z]{1,3}", 0..120),
        slots in of(0_u32..9),
        labels in btree_map("[a-z]{1,3}", name(), 0..80),
    ) {
        let body = given(json!({
            "name": display_name, "queues": queues, "slots": slots, "labels": labels,
        }));
        let http = request::registration(&worker, parse_json(&body).unwrap());
        let register = v1::RegisterRequest {
            id: worker, queues, slots, labels, draining: false, name: display_name,
        };
        let (id, register) = sent(&register).into();
        same(http, request::registration(&id, register));
    }

    #[test]
    fn a_run_begins_the_same_through_both_doors(
        workflow in name(),
        version in of(0_u32..20_000),
        input in of(json_text()),
        key in of(name()),
        tags in btree_map(name(), name(), 0..4),
    ) {
        let fields = given(json!({"version": version, "key": key, "tags": tags}));
        let body = with_text(&fields, "input", input.as_deref());
        let http = flow::start(&workflow, parse_json(&body).unwrap());
        let input = input.unwrap_or_default().into_bytes();
        let request = v1::StartRunRequest { workflow, version, input, key, tags };
        let (workflow, run) = sent(&request).into();
        same(http, flow::start(&workflow, run));
    }

    #[test]
    fn a_signal_is_the_same_through_both_doors(
        signal in name(),
        payload in of(json_text()),
        correlation in of(prop_oneof![name(), Just(String::new())]),
        signal_id in of(prop_oneof![name(), Just(String::new())]),
    ) {
        let fields = given(json!({"correlation": correlation, "signal_id": signal_id}));
        let body = with_text(&fields, "payload", payload.as_deref());
        let http = flow::signal(api::RunRef::Id(3), &signal, parse_json(&body).unwrap());
        let payload = payload.unwrap_or_default().into_bytes();
        let request = v1::SignalRequest {
            run_id: 3,
            name: signal,
            payload,
            correlation,
            signal_id,
            ..Default::default()
        };
        let (run, name, signal) = sent(&request).try_into().unwrap();
        same(http, flow::signal(run, &name, signal));
    }

    #[test]
    fn runs_are_listed_the_same_through_both_doors(
        workflow in of(name()),
        state in of(1_i32..=6),
        tag in of(prop_oneof!["[a-z]{1,3}:[a-z]{0,3}", "[a-z]{1,3}"]),
        key in of(prop_oneof![name(), Just(String::new())]),
        limit in of(0_u32..2_000),
        cursor in of(prop_oneof!["[0-9]{1,4}", Just("x".to_owned())]),
    ) {
        let names = [
            "", "RUNNING", "WAITING", "COMPLETED", "FAILED", "CANCELED", "TIMED_OUT",
        ];
        let http = flow::filter(api::RunFilter {
            workflow: workflow.clone(),
            state: state.map(|state| names[state as usize].into()),
            tag: tag.clone(),
            key: key.clone(),
            limit,
            cursor: cursor.clone(),
        });
        let cursor = cursor.unwrap_or_default();
        let state = state.unwrap_or_default();
        let request = v1::ListRunsRequest { workflow, state, tag, limit, cursor, key };
        let shown = |filter| format!("{filter:?}");
        same(http.map(shown), flow::filter(sent(&request).into()).map(shown));
    }

    #[test]
    fn a_definition_is_the_same_through_both_doors_and_in_both_ways_of_writing(
        said in prop_oneof![Just("a".to_owned()), name()],
        kind in prop_oneof![Just("pass"), Just("task"), Just("dance")],
        initial in prop_oneof![Just("one"), Just("two")],
    ) {
        let source = json!({
            "workflow": said, "initial_node": initial, "nodes": [{"ref": "one", "kind": kind}],
        });
        let text = source.to_string();
        let http = flow::definition(&api::Definition {
            name: Some("a".to_owned()),
            text: text.clone().into(),
            format: api::DefinitionFormat::Json,
        });
        for format in [v1::DefinitionFormat::Json, v1::DefinitionFormat::Yaml] {
            // JSON is YAML too.
            let definition = text.clone().into_bytes();
            let put =
                v1::PutWorkflowRequest { name: "a".to_owned(), definition, format: format.into() };
            let grpc = flow::definition(&sent(&put).try_into().unwrap());
            let faults = |outcome: &Result<_, Problem>| {
                let faults = outcome.as_ref().err().map(|problem| problem.faults.clone());
                faults.unwrap_or_default().into_iter().map(|it| (it.pointer, it.message)).collect()
            };
            let (one, other): (Vec<_>, Vec<_>) = (faults(&http), faults(&grpc));
            assert_eq!(one, other);
            assert_eq!(http.as_ref().ok(), grpc.as_ref().ok());
        }
    }
}

/// JSON, good and bad only by its size.
fn json_text() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z]{0,6}".prop_map(|text| json!({"text": text, "n": [1, 2.5, null]}).to_string()),
        1 => Just("\"x\"".to_owned()),
        1 => Just(format!("{:?}", "x".repeat(2 << 20))),
    ]
}

/// Adds a field as it is written.
fn with_text(fields: &Bytes, name: &str, text: Option<&str>) -> Bytes {
    let Some(text) = text else { return fields.clone() };
    let fields = std::str::from_utf8(fields).unwrap();
    let comma = if fields.len() > 2 { "," } else { "" };
    format!("{{{name:?}:{text}{comma}{}", &fields[1..]).into()
}

//! What comes over the wire becomes what was meant, or is refused with a sentence.

use tenure_code::Code;
use tenure_core::command::{Heartbeat, LeaseRef, NewTask, ReleaseTask, Retry, Setting, Start};
use tenure_proto::v1;
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::name::{QueueName, TagKey, TagValue, TaskKey, TaskName, WorkerName};
use tenure_record::progress::{Checkpoint, Progress};
use tenure_record::terms::{
    Backoff, BackoffKind, Budgets, LeaseMs, Payload, Priority, SpanMs, Tags,
};
use tenure_record::time::Timestamp;
use tenure_record::trace::TraceParent;

use super::sent;
use crate::grpc::fast_path::reports;
use crate::problem::Problem;
use crate::wire::report::{self, About};
use crate::wire::request;

fn new_task(task: v1::NewTask) -> Result<NewTask, Problem> {
    request::new_task(task.into())
}

fn lease_of(task_id: u64, lease_id: u64) -> LeaseRef {
    LeaseRef { task_id: TaskId(task_id), lease_id: LeaseId(lease_id) }
}

#[test]
fn an_empty_task_has_the_defaults() {
    let queue = QueueName::parse("default").unwrap();
    let plain = NewTask::new(queue, Payload::default());
    assert_eq!(new_task(sent(&v1::NewTask::default())).unwrap(), plain);
}

#[test]
fn every_field_of_a_task_arrives() {
    let task = v1::NewTask {
        queue: "mail".to_owned(),
        payload: b"\xff\x00".to_vec(),
        priority: -7,
        delay_ms: Some(5),
        run_at: None,
        name: Some("send".to_owned()),
        max_failures: Some(4),
        max_expiries: Some(6),
        max_attempts: Some(9),
        attempt_timeout_ms: Some(70),
        key_ttl_ms: Some(80),
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
        backoff: Some(v1::Backoff {
            kind: v1::BackoffKind::Linear.into(),
            initial_ms: Some(10),
            max_ms: Some(20),
            jitter: Some(0.5),
        }),
        lease_ms: Some(60),
        total_timeout_ms: Some(900),
        key: Some("order/1".to_owned()),
        tags: [("k".to_owned(), "v".to_owned())].into(),
    };
    let parsed = new_task(sent(&task)).unwrap();
    let tag = (TagKey::parse("k").unwrap(), TagValue::parse("v").unwrap());
    let expected = NewTask {
        queue: QueueName::parse("mail").unwrap(),
        payload: Payload::parse("payload", b"\xff\x00".to_vec()).unwrap(),
        name: Some(TaskName::parse("send").unwrap()),
        priority: Priority::parse(-7).unwrap(),
        start: Start::After(SpanMs::parse("delay_ms", 5).unwrap()),
        budgets: Budgets::parse(Some(4), Some(6), Some(9)).unwrap(),
        backoff: Some(Backoff {
            kind: Some(BackoffKind::Linear),
            initial_ms: 10,
            max_ms: 20,
            jitter_permille: 500,
        }),
        lease_ms: LeaseMs::parse(60).unwrap(),
        total_timeout_ms: Some(SpanMs::parse("total_timeout_ms", 900).unwrap()),
        key: Some(TaskKey::parse("order/1").unwrap()),
        tags: Tags::parse(vec![tag]).unwrap(),
        attempt_timeout_ms: Some(SpanMs::parse("attempt_timeout_ms", 70).unwrap()),
        key_ttl_ms: Some(SpanMs::parse("key_ttl_ms", 80).unwrap()),
        traceparent: Some(
            TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap(),
        ),
        seal: None,
    }
    .sealed();
    assert_eq!(parsed, expected);
    let at = v1::NewTask { run_at: Some(77), ..v1::NewTask::default() };
    assert_eq!(new_task(sent(&at)).unwrap().start, Start::At(Timestamp(77)));
}

#[test]
fn what_is_wrong_is_named() {
    let refused = |task: v1::NewTask| new_task(task).unwrap_err();
    let plain = v1::NewTask::default;
    let both = refused(v1::NewTask { delay_ms: Some(1), run_at: Some(1), ..plain() });
    assert_eq!(both.detail, "delay_ms and run_at are both given; keep one");
    let high = refused(v1::NewTask { priority: 101, ..plain() });
    assert_eq!(high.detail, "priority is 101; it must be from -100 to 100");
    let late = refused(v1::NewTask { delay_ms: Some(u64::MAX), ..plain() });
    assert!(late.detail.starts_with("delay_ms is"), "{}", late.detail);
    let large = refused(v1::NewTask { payload: vec![0; (1 << 20) + 1], ..plain() });
    assert_eq!(large.code, Code::PayloadTooLarge);
    let odd = v1::Backoff { kind: 9, ..v1::Backoff::default() };
    let odd = refused(v1::NewTask { backoff: Some(odd), ..plain() });
    assert_eq!(odd.detail, "backoff.kind is \"9\"; it must be fixed, linear or exponential");
    let two = vec![plain(), v1::NewTask { priority: 101, ..plain() }];
    let second = request::new_tasks(two.into_iter().map(Into::into)).unwrap_err();
    assert!(second.detail.starts_with("tasks[1]: priority"), "{}", second.detail);
}

#[test]
fn reports_keep_their_order_and_kind() {
    let complete = v1::CompleteReport {
        task_id: 3,
        lease_id: 13,
        output: b"out".to_vec(),
        artifacts: Vec::new(),
        worker: Some("anna".to_owned()),
    };
    let fail = |retryable, retry_after_ms| v1::FailReport {
        task_id: 4,
        lease_id: 14,
        reason: "no".to_owned(),
        code: Some("c".to_owned()),
        retryable,
        retry_after_ms,
        worker: None,
        checkpoint: b"7".to_vec(),
    };
    let heartbeat = |id| v1::HeartbeatReport {
        task_id: id,
        lease_id: id + 10,
        progress: Some(0.25),
        message: Some("a quarter".to_owned()),
        checkpoint: b"3".to_vec(),
        lease_ms: Some(5_000),
        worker: None,
    };
    let release = |delay_ms, priority| v1::ReleaseReport {
        task_id: 5,
        lease_id: 15,
        delay_ms,
        priority,
        checkpoint: Vec::new(),
        worker: None,
    };
    let message = v1::Reports {
        sequence: 9,
        heartbeats: vec![heartbeat(1)],
        completes: vec![complete],
        fails: vec![fail(None, None), fail(Some(false), None), fail(Some(true), Some(5))],
        releases: vec![release(None, None), release(Some(7), Some(-3))],
    };
    let stream = WorkerName::parse("ben").unwrap();
    let (parsed, _) = reports(sent(&message), Some(&stream)).unwrap();
    let progress = Progress::parse(Some(0.25), Some("a quarter")).unwrap();
    let alive = Heartbeat {
        lease: lease_of(1, 11),
        lease_ms: Some(LeaseMs::parse(5_000).unwrap()),
        checkpoint: Checkpoint::parse(b"3").unwrap(),
        progress: progress.map(Box::new),
    };
    assert_eq!(parsed.heartbeats, [alive]);
    assert_eq!(parsed.fails[0].checkpoint, Checkpoint::parse(b"7").unwrap());
    assert_eq!(parsed.completes[0].output.as_bytes(), b"out");
    assert_eq!(parsed.completes[0].worker.as_ref().map(|name| name.as_str()), Some("anna"));
    assert_eq!(parsed.fails[0].worker, Some(stream));
    let retries: Vec<_> = parsed.fails.iter().map(|fail| fail.retry).collect();
    let after = Retry::After(SpanMs::parse("retry_after_ms", 5).unwrap());
    assert_eq!(retries, [Retry::WithBackoff, Retry::Never, after]);
    let later = ReleaseTask {
        delay_ms: SpanMs::parse("delay_ms", 7).unwrap(),
        priority: Some(Priority::parse(-3).unwrap()),
        ..lease_of(5, 15).into()
    };
    assert_eq!(parsed.releases, [lease_of(5, 15).into(), later]);
    assert!(report::fail(About::Report, &fail(Some(false), Some(5)).into()).is_err());
}

#[test]
fn a_setting_is_kept_set_or_cleared() {
    let configure = |retention_ms, clear: &[&str]| {
        let (queue, settings) = v1::ConfigureQueueRequest {
            queue: "q".to_owned(),
            retention_ms,
            clear: clear.iter().map(|name| (*name).to_owned()).collect(),
            paused_until: None,
            dead_letter_queue: None,
            max_waiting: None,
        }
        .try_into()
        .map_err(Problem::from)?;
        request::configure(&queue, settings).map(|configure| configure.change.retention_ms)
    };
    assert_eq!(configure(None, &[]).unwrap(), Setting::Keep);
    assert_eq!(configure(None, &["retention_ms"]).unwrap(), Setting::Clear);
    assert!(matches!(configure(Some(1), &[]).unwrap(), Setting::Set(_)));
    assert!(configure(Some(1), &["retention_ms"]).is_err());
    assert!(configure(None, &["colour"]).is_err());
}

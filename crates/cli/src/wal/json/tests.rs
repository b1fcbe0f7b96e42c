//! The records that the story of `tests/wal.rs` does not have, field by field.

use tenure_record::event::{
    IdsSkipped, QueueSettings, ReportsApplied, SubmitHash, Tag, TaskCreated, TasksPurged,
    TimerFired,
};
use tenure_record::id::{Lsn, RunId, TaskId};
use tenure_record::terms::{Budget, Priority};
use tenure_record::time::Timestamp;

use super::{
    About, Backoff, CancelRequested, Clock, Created, DeadLetter, DeadlinePassed, Event,
    LeaseExtended, LeaseId, LeaseReleased, Object, QueueConfigured, Record, Report, TaskFailed,
    TaskRetried, TaskState, Text, record,
};

#[test]
fn a_payload_is_shown_as_it_was_given() {
    let shown = |bytes: &[u8]| {
        let object = Object::default().with_payload("payload", "payload_base64", bytes);
        object.to_string()
    };
    let exact = r#"{"payload":{"z":1.10,"a":12345678901234567890123}}"#;
    assert_eq!(shown(br#"{"z": 1.10, "a": 12345678901234567890123}"#), exact);
    let odd = r#"{"payload":{"k \\\" k":[1e400,-0.0],"k":1,"k":2}}"#;
    assert_eq!(shown(b"{\"k \\\\\\\" k\":\n\t[1e400, -0.0] , \"k\":1,\r\n\"k\":2}"), odd);
    assert_eq!(shown(b"null"), r#"{"payload":null}"#);
    assert_eq!(shown(b"not json"), r#"{"payload_base64":"bm90IGpzb24="}"#);
    assert_eq!(shown(&[0xff]), r#"{"payload_base64":"/w=="}"#);
    assert_eq!(shown(b""), r#"{"payload_base64":""}"#);
    let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(shown(nested(127).as_bytes()), format!(r#"{{"payload":{}}}"#, nested(127)));
    assert!(shown(nested(128).as_bytes()).starts_with(r#"{"payload_base64":"W1tb"#));
}

fn about(task_id: u64) -> About<'static> {
    let queue = Text::Borrowed("mail");
    let priority = Priority::parse(-5).unwrap();
    let (task_id, run_id) = (TaskId(task_id), RunId::NONE);
    About { task_id, queue, priority, attempt: 2, previous: Lsn(3), run_id }
}

/// What follows number, time and name.
fn shown(event: Event<'_>) -> String {
    let name = event.name();
    let text =
        record(&Record { lsn: Lsn(9), at: Timestamp(1), wall: Timestamp(1), event }).to_string();
    let before = format!(r#"{{"lsn":9,"at":"1970-01-01T00:00:00.001Z","event":"{name}","#);
    text.strip_prefix(&before).unwrap().to_owned()
}

const ABOUT: &str = r#""task_id":1,"queue":"mail","priority":-5,"attempt":2,"previous":3"#;

#[test]
fn a_task_is_shown_with_all_its_terms() {
    let task = Created {
        task_id: TaskId(1),
        queue: Text::Borrowed("mail"),
        priority: Priority::parse(7).unwrap(),
        payload: b"[]".as_slice().into(),
        not_before: Timestamp(2_000),
        lease_ms: 50,
        max_failures: Some(Budget::of(4)),
        max_expiries: Some(Budget::of(5)),
        max_attempts: Some(Budget::of(6)),
        backoff: Some(Backoff::STANDARD),
        total_timeout_ms: Some(60),
        attempt_timeout_ms: Some(30),
        key_free_at: Timestamp(90),
        key_from: TaskId(8),
        traceparent: Some(Text::Borrowed("00-ab")),
        name: Some(Text::Borrowed("send")),
        key: Some(Text::Borrowed("k/1")),
        submit_hash: Some(SubmitHash([0xab; 16])),
        tags: vec![Tag { key: Text::Borrowed("a"), value: Text::Borrowed("\"b\"") }],
        deadline_at: Timestamp(61),
        run: None,
        clock: Clock::Wall,
    };
    let expected = concat!(
        r#""tasks":[{"task_id":1,"queue":"mail","priority":7,"payload":[],"#,
        r#""not_before":"1970-01-01T00:00:02.000Z","clock":"wall","lease_ms":50,"#,
        r#""max_failures":4,"max_expiries":5,"max_attempts":6,"#,
        r#""backoff":{"kind":"exponential","initial_ms":1000,"#,
        r#""max_ms":300000,"jitter_permille":200},"total_timeout_ms":60,"attempt_timeout_ms":30,"#,
        r#""deadline_at":"1970-01-01T00:00:00.061Z","key":"k/1","#,
        r#""submit_hash":"abababababababababababababababab","#,
        r#""key_free_at":"1970-01-01T00:00:00.090Z","key_from":8,"tags":{"a":"\"b\""},"#,
        r#""traceparent":"00-ab","name":"send"}]}"#
    );
    assert_eq!(shown(Event::TaskCreated(TaskCreated { tasks: vec![task] })), expected);
}

#[test]
fn every_report_of_a_batch_is_shown() {
    let (lease_id, worker) = (LeaseId(4), Text::Borrowed("anna"));
    let released = LeaseReleased {
        about: about(1),
        lease_id,
        worker: worker.clone(),
        to: TaskState::Waiting,
        cascade: Vec::new(),
        not_before: Timestamp(1),
        priority: Some(Priority::parse(-7).unwrap()),
        checkpoint: b"[7]",
    };
    let failed = TaskFailed {
        about: about(1),
        lease_id,
        worker,
        to: TaskState::Failed,
        failures: 3,
        not_before: Timestamp::ZERO,
        code: Text::Borrowed("smtp"),
        reason: Text::Borrowed("no\nroute"),
        cascade: Vec::new(),
        checkpoint: &[],
        dead_letter: Some(Box::new(DeadLetter {
            task_id: TaskId(9),
            queue: Text::Borrowed("lost"),
            lease_ms: 30,
            max_failures: Some(Budget::of(3)),
            max_expiries: None,
        })),
    };
    let extended = LeaseExtended {
        task_id: TaskId(2),
        lease_id,
        expires_at: Timestamp::MAX,
        lease_ms: 70,
        checkpoint: b"\xff",
    };
    let released_text = format!(
        r#"{ABOUT},"lease_id":4,"worker":"anna","to":"WAITING","not_before":"1970-01-01T00:00:00.001Z","priority":-7,"checkpoint":[7]}}"#
    );
    let failed_text = format!(
        r#"{ABOUT},"lease_id":4,"worker":"anna","to":"FAILED","failures":3,"not_before":null,"code":"smtp","reason":"no\nroute","dead_letter":{{"task_id":9,"queue":"lost","lease_ms":30,"max_failures":3,"max_expiries":null}}}}"#
    );
    let extended_text = r#""task_id":2,"lease_id":4,"expires_at":18446744073709551615,"lease_ms":70,"checkpoint_base64":"/w=="}"#;
    let reports = vec![
        Report::LeaseExtended(extended),
        Report::TaskFailed(failed),
        Report::LeaseReleased(released),
    ];
    let expected = format!(
        r#""reports":[{{"event":"LeaseExtended",{extended_text},{{"event":"TaskFailed",{failed_text},{{"event":"LeaseReleased",{released_text}]}}"#
    );
    assert_eq!(shown(Event::ReportsApplied(ReportsApplied { reports })), expected);
}

#[test]
fn what_operators_and_time_do_is_shown() {
    let no_lease = r#""lease_id":null,"worker":null"#;
    let canceled = CancelRequested {
        about: about(1),
        from: TaskState::Waiting,
        to: TaskState::Canceled,
        ..CancelRequested::default()
    };
    assert_eq!(
        shown(Event::CancelRequested(canceled)),
        format!(
            r#"{ABOUT},"from":"WAITING","to":"CANCELED",{no_lease},"expires_at":null,"revoke_at":null}}"#
        )
    );
    let retried = TaskRetried {
        about: about(1),
        from: TaskState::Dead,
        not_before: Timestamp(1),
        deadline_at: Timestamp::ZERO,
    };
    assert_eq!(
        shown(Event::TaskRetried(retried)),
        format!(
            r#"{ABOUT},"from":"DEAD","not_before":"1970-01-01T00:00:00.001Z","deadline_at":null}}"#
        )
    );
    let passed = DeadlinePassed {
        about: about(1),
        from: TaskState::Waiting,
        to: TaskState::Failed,
        deadline_at: Timestamp(1),
        ..DeadlinePassed::default()
    };
    assert_eq!(
        shown(Event::TimerFired(TimerFired { deadlines: vec![passed], ..TimerFired::default() })),
        format!(
            r#""deadlines":[{{{ABOUT},"from":"WAITING","to":"FAILED",{no_lease},"deadline_at":"1970-01-01T00:00:00.001Z"}}]}}"#
        )
    );
    let settings = QueueSettings { paused: true, ..QueueSettings::default() };
    assert_eq!(
        shown(Event::QueueConfigured(QueueConfigured { queue: Text::Borrowed("mail"), settings })),
        r#""queue":"mail","settings":{"paused":true,"retention_ms":null,"paused_until":null,"dead_letter_queue":null,"max_waiting":null}}"#
    );
    let (next_task_id, next_lease_id) = (TaskId(7), LeaseId(9));
    let next = IdsSkipped { next_task_id, next_lease_id, next_run_id: RunId(3) };
    assert_eq!(
        shown(Event::IdsSkipped(next)),
        r#""next_task_id":7,"next_lease_id":9,"next_run_id":3}"#
    );
    let tasks = vec![TaskId(3), TaskId(1)];
    assert_eq!(
        shown(Event::TasksPurged(TasksPurged { tasks, runs: Vec::new() })),
        r#""tasks":[3,1],"runs":[]}"#
    );
}

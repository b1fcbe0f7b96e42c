//! Every value survives the way to its message and back: one with all fields set, and an empty one.

use std::collections::BTreeMap;
use std::fmt::Debug;

use bytes::Bytes;
use serde::Serialize;
use tenure_api::*;

use crate::{run_ref, v1, wire_ref};

const AT: Timestamp = Timestamp(1_794_782_400_500);

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn map(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

fn counts(key: &str) -> BTreeMap<String, u64> {
    BTreeMap::from([(key.to_owned(), 7)])
}

/// There and back. `M` is the message.
fn same<M, T>(value: T)
where
    M: From<T>,
    T: TryFrom<M, Error: Debug> + Clone + Debug + PartialEq,
{
    let expected = value.clone();
    assert_eq!(T::try_from(M::from(value)).unwrap(), expected);
}

/// A value with all fields set, and an empty one.
fn both<M, T>(full: T)
where
    M: From<T>,
    T: TryFrom<M, Error: Debug> + Clone + Debug + PartialEq + Default + Serialize,
{
    // A field that is not set would prove nothing.
    let json = serde_json::to_string(&full).unwrap();
    assert!(!json.contains("null") && !json.contains("\"\""), "{json}");
    assert!(!json.contains(":false") && !json.contains(":0,"), "{json}");
    same::<M, T>(full);
    same::<M, T>(T::default());
}

fn step() -> TaskStep {
    TaskStep {
        lsn: 3,
        at: AT,
        event: "TaskFailed".to_owned(),
        from: Some(TaskState::Leased),
        to: TaskState::Waiting,
        attempt: 2,
        worker: text("w"),
        lease_id: Some(9),
        code: text("E"),
        reason: text("why"),
    }
}

fn of_run() -> TaskOfRun {
    TaskOfRun { run_id: 4, node: "n".to_owned(), token: 5 }
}

fn task() -> Task {
    Task {
        id: 1,
        queue: "q".to_owned(),
        name: text("mail"),
        state: TaskState::Leased,
        phase: Some(Phase::Retrying),
        priority: -7,
        payload: "[1]".into(),
        payload_encoding: Encoding::Json,
        output: "[2]".into(),
        output_encoding: Encoding::Json,
        lease_ms: 30_000,
        max_failures: Some(1),
        max_expiries: Some(2),
        max_attempts: Some(3),
        total_timeout_ms: Some(4),
        attempt_timeout_ms: Some(5),
        error: Some(TaskError { code: "E".to_owned(), message: "why".to_owned() }),
        attempt: 6,
        failures: 7,
        expiries: 8,
        cancel_requested: true,
        lease: Some(HeldLease { lease_id: 9, worker: "w".to_owned(), expires_at: AT }),
        created_at: AT,
        run_at: Some(Timestamp(1)),
        next_attempt_at: Some(Timestamp(2)),
        started_at: Some(Timestamp(3)),
        finished_at: Some(Timestamp(4)),
        key: text("k"),
        tags: map("a", "b"),
        run: Some(of_run()),
        dead_letter: Some(TaskLink { task_id: 10 }),
        dead_letter_of: Some(TaskLink { task_id: 11 }),
        progress: Some(Progress { fraction: Some(0.5), message: text("half"), at: AT }),
        checkpoint: "[3]".into(),
        checkpoint_encoding: Encoding::Json,
    }
}

#[test]
fn tasks_survive() {
    both::<v1::Task, _>(task());
    for state in TaskState::ALL {
        same::<v1::Task, _>(Task { state, ..task() });
    }
    same::<v1::ListTasksResponse, _>(Page { items: vec![task()], next_cursor: text("7") });
    same::<v1::ListTasksResponse, Page<Task>>(Page { items: Vec::new(), next_cursor: None });
    both::<v1::Step, _>(step());
    let history =
        History { items: vec![step()], next_cursor: text("3.1"), truncated_before: Some(2) };
    same::<v1::TaskHistoryResponse, _>(history);
    both::<v1::TaskExplanation, _>(Explanation {
        state: TaskState::Dead,
        position: Some(3),
        reasons: vec![Reason {
            code: "in_line".to_owned(),
            message: "two before it".to_owned(),
            until: Some(AT),
            worker: text("w"),
        }],
        earliest_start_at: Some(AT),
    });
}

#[test]
fn requests_about_tasks_survive() {
    let backoff = Backoff {
        kind: Some(BackoffKind::Linear),
        initial_ms: Some(1),
        max_ms: Some(2),
        jitter: Some(0.5),
    };
    for kind in BackoffKind::ALL {
        same::<v1::Backoff, _>(Backoff { kind: Some(kind), ..Backoff::default() });
    }
    both::<v1::NewTask, _>(NewTask {
        queue: text("q"),
        name: text("mail"),
        payload: "[1]".into(),
        priority: Some(-7),
        delay_ms: Some(1),
        run_at: Some(AT),
        max_failures: Some(2),
        max_expiries: Some(3),
        max_attempts: Some(4),
        backoff: Some(backoff),
        lease_ms: Some(5),
        total_timeout_ms: Some(6),
        attempt_timeout_ms: Some(7),
        key: text("k"),
        key_ttl_ms: Some(8),
        traceparent: text("00-1-2-01"),
        tags: map("a", "b"),
    });
    both::<v1::ListTasksRequest, _>(TaskFilter {
        queue: text("q"),
        state: Some(TaskState::Dead),
        name: text("mail"),
        tag: text("a:b"),
        worker: text("w"),
        run: Some(4),
        code: text("E"),
        retrying: Some(true),
        limit: Some(5),
        cursor: text("6"),
    });
    both::<v1::CancelTaskRequest, _>((3_u64, CancelTask { grace_ms: Some(1) }));
}

#[test]
fn workers_survive() {
    both::<v1::Worker, _>(Worker {
        id: "w-1".to_owned(),
        name: "Anna".to_owned(),
        connected: true,
        dead: true,
        last_seen_at: AT,
        active_leases: 2,
        queues: vec!["q".to_owned()],
        slots: Some(3),
        labels: map("zone", "a"),
        draining: true,
    });
    same::<v1::ListWorkersResponse, _>(Page {
        items: vec![Worker::default()],
        next_cursor: text("w"),
    });
    both::<v1::LeaseRequest, _>(LeaseRequest {
        worker: "w".to_owned(),
        queues: vec!["q".to_owned()],
        max: Some(2),
        wait_ms: Some(3),
        lease_ms: Some(4),
    });
    let registration = Registration {
        name: text("Anna"),
        queues: vec!["q".to_owned()],
        slots: Some(3),
        labels: map("zone", "a"),
        draining: true,
    };
    both::<v1::RegisterRequest, _>(("w-1".to_owned(), registration));
    both::<v1::SignOffResponse, _>(SignedOff { released: 2 });
    let page = PageQuery { limit: Some(1), cursor: text("w") };
    both::<v1::ListWorkersRequest, _>(page.clone());
    both::<v1::ListQueuesRequest, _>(page.clone());
    both::<v1::ListWorkflowsRequest, _>(page);
}

#[test]
fn reports_survive() {
    let (task_id, lease_id, worker) = (Some(1), 2, text("w"));
    both::<v1::HeartbeatReport, _>(HeartbeatReport {
        task_id,
        lease_id,
        progress: Some(0.5),
        message: text("half"),
        checkpoint: "[3]".into(),
        lease_ms: Some(4),
        worker: worker.clone(),
    });
    both::<v1::HeartbeatResponse, _>(Extension { expires_at: AT, cancel_requested: true });
    let (name, media_type) = ("report.pdf".to_owned(), text("application/pdf"));
    let data = Some(Binary(Bytes::from_static(b"\xff")));
    let by_data =
        NewArtifact { name: name.clone(), media_type: media_type.clone(), data, blob: None };
    let by_blob = NewArtifact { name, media_type, data: None, blob: text("ab12") };
    both::<v1::CompleteReport, _>(CompleteReport {
        task_id,
        lease_id,
        output: "[2]".into(),
        artifacts: Some(vec![by_data, by_blob]),
        worker: worker.clone(),
    });
    both::<v1::FailReport, _>(FailReport {
        task_id,
        lease_id,
        reason: "why".to_owned(),
        code: text("E"),
        retryable: Some(true),
        retry_after_ms: Some(3),
        checkpoint: "[3]".into(),
        worker: worker.clone(),
    });
    both::<v1::ReleaseReport, _>(ReleaseReport {
        task_id,
        lease_id,
        delay_ms: Some(3),
        priority: Some(-4),
        checkpoint: "[3]".into(),
        worker,
    });
}

#[test]
fn queues_survive() {
    both::<v1::Queue, _>(Queue {
        name: "q".to_owned(),
        depth: 1,
        leased: 2,
        completed: 3,
        failed: 4,
        dead: 5,
        canceled: 6,
        paused: true,
        paused_until: Some(AT),
        retention_ms: Some(7),
        dead_letter_queue: text("dead"),
        oldest_waiting_at: Some(Timestamp(8)),
    });
    same::<v1::ListQueuesResponse, _>(Page { items: vec![Queue::default()], next_cursor: None });
    let settings = QueueSettings {
        retention_ms: Setting::Set(1),
        paused_until: Setting::Set(AT),
        dead_letter_queue: Setting::Set("dead".to_owned()),
    };
    both::<v1::ConfigureQueueRequest, _>(("q".to_owned(), settings));
    let cleared = QueueSettings {
        retention_ms: Setting::Clear,
        paused_until: Setting::Clear,
        dead_letter_queue: Setting::Clear,
    };
    same::<v1::ConfigureQueueRequest, _>(("q".to_owned(), cleared));
    let pause = PauseQueue { until: Some(AT), for_ms: Some(1) };
    both::<v1::PauseQueueRequest, _>(("q".to_owned(), pause));
}

#[test]
fn a_setting_is_set_or_cleared_and_known() {
    let refused = |configure: v1::ConfigureQueueRequest| {
        <(String, QueueSettings)>::try_from(configure).unwrap_err().to_string()
    };
    let clear = vec!["retention_ms".to_owned()];
    let twice = v1::ConfigureQueueRequest { retention_ms: Some(1), clear, ..Default::default() };
    assert!(refused(twice).contains("keep one"));
    let clear = vec!["colour".to_owned()];
    let unknown = v1::ConfigureQueueRequest { clear, ..Default::default() };
    assert!(refused(unknown).contains("\"colour\"; the settings are retention_ms"));
}

#[test]
fn workflows_survive() {
    let fault = Fault {
        pointer: "/nodes/0".to_owned(),
        code: "bad_value".to_owned(),
        message: "why".to_owned(),
        line: Some(1),
        column: Some(2),
    };
    both::<v1::Workflow, _>(Workflow {
        name: "order".to_owned(),
        version: 2,
        registered_at: AT,
        nodes: 3,
        transitions: 4,
        faults: vec![fault],
        definition: "{}".into(),
    });
    let page = Page { items: vec![Workflow::default()], next_cursor: text("order") };
    same::<v1::ListWorkflowsResponse, _>(page);
    both::<v1::PutWorkflowResponse, _>(Registered {
        name: "order".to_owned(),
        version: 2,
        existed: true,
    });
    for format in [DefinitionFormat::Json, DefinitionFormat::Yaml] {
        let text = Bytes::from_static(b"{}");
        let definition = Definition { name: Some("order".to_owned()), text, format };
        same::<v1::PutWorkflowRequest, _>(definition);
    }
    same::<v1::PutWorkflowRequest, _>(Definition::default());
    let unknown = v1::PutWorkflowRequest { format: 9, ..Default::default() };
    assert!(Definition::try_from(unknown).unwrap_err().to_string().contains("format is 9"));
}

fn run() -> Run {
    Run {
        id: 1,
        workflow: "order".to_owned(),
        version: 2,
        state: RunState::Waiting,
        input: "[1]".into(),
        context: "[2]".into(),
        output: "[3]".into(),
        error: "[4]".into(),
        started_at: AT,
        finished_at: Some(Timestamp(1)),
        deadline_at: Some(Timestamp(2)),
        parent: Some(Parent { run_id: 3, token: 4 }),
        root: 5,
        ending: Some(Ending { state: RunState::TimedOut, error: "[5]".into(), since: AT }),
        parked: Some(Parking { reason: "too large".to_owned(), at: AT }),
        key: text("k"),
        tags: map("a", "b"),
        tokens: 6,
        live_tokens: 7,
        kept_signals: 8,
    }
}

#[test]
fn runs_survive() {
    both::<v1::Run, _>(run());
    for state in RunState::ALL {
        same::<v1::Run, _>(Run { state, ..run() });
    }
    same::<v1::ListRunsResponse, _>(Page { items: vec![run()], next_cursor: text("7") });
    let token = Token {
        id: 1,
        node: "n".to_owned(),
        path: "root".to_owned(),
        parent: Some(2),
        state: TokenState::WaitingForSignal,
        via: text("next"),
        group: Some(3),
        branch_index: Some(4),
        branch_total: Some(5),
        task_id: Some(6),
        child_run_id: Some(7),
        signal: Some(SignalWait { name: "paid".to_owned(), correlation: "c".to_owned() }),
        wakes_at: Some(Timestamp(8)),
        deadline_at: Some(Timestamp(9)),
        error: "[1]".into(),
    };
    same::<v1::ListTokensResponse, _>(Page { items: vec![token.clone()], next_cursor: text("1") });
    both::<v1::Token, _>(token);
    let step = RunStep { lsn: 1, at: AT, cause: "[1]".into(), decisions: vec!["[2]".into()] };
    let items = vec![step.clone(), RunStep::default()];
    same::<v1::RunHistoryResponse, _>(History { items, next_cursor: None, truncated_before: None });
    both::<v1::RunStep, _>(step);
    both::<v1::RedecideResponse, _>(Redecided {
        run_id: 1,
        lsn: 2,
        at: AT,
        same: true,
        cause: "[1]".into(),
        decisions: vec![DecisionPair { same: true, recorded: "[2]".into(), decided: "[3]".into() }],
        refused: Some(Refusal { code: "conflict".to_owned(), detail: "why".to_owned() }),
    });
}

#[test]
fn requests_about_runs_survive() {
    let tags = map("a", "b");
    let new = NewRun { input: "[1]".into(), key: text("k"), version: Some(2), tags: tags.clone() };
    both::<v1::BatchRun, _>(new.clone());
    both::<v1::StartRunRequest, _>(("order".to_owned(), new));
    both::<v1::ListRunsRequest, _>(RunFilter {
        workflow: text("order"),
        state: Some(RunState::Failed),
        tag: text("a:b"),
        key: text("k"),
        limit: Some(1),
        cursor: text("2"),
    });
    let signal = Signal {
        payload: "[1]".into(),
        correlation: text("c"),
        signal_id: text("s"),
        start: Some(SignalStart { input: "[2]".into(), version: Some(3), tags }),
    };
    for run in [RunRef::Id(7), RunRef::key("order", "k")] {
        same::<v1::SignalRequest, _>((run.clone(), "paid".to_owned(), signal.clone()));
        same::<v1::SignalRequest, _>((run.clone(), "paid".to_owned(), Signal::default()));
        let (run_id, by_key) = wire_ref(run.clone());
        assert_eq!(run_ref(run_id, by_key), Ok(run));
    }
    let (_, by_key) = wire_ref(RunRef::key("order", "k"));
    assert!(run_ref(7, by_key).unwrap_err().to_string().contains("keep one"));
    for outcome in SignalOutcome::ALL {
        let (run_id, signal, token) = (1, "paid".to_owned(), Some(2));
        same::<v1::SignalResponse, _>(Signaled { run_id, signal, outcome, token, started: true });
    }
}

#[test]
fn events_survive() {
    let (id, event) = ("3.1".to_owned(), "Happened".to_owned());
    let of_task = TaskEvent {
        id: id.clone(),
        lsn: 3,
        at: AT,
        event: event.clone(),
        task_id: 1,
        queue: "q".to_owned(),
        from: Some(TaskState::Waiting),
        to: TaskState::Leased,
        worker: text("w"),
        lease_id: Some(2),
        attempt: 4,
        priority: -5,
        code: text("E"),
        reason: text("why"),
        run_id: Some(6),
        dead_letter_of: Some(7),
    };
    let of_run = RunEvent {
        id,
        lsn: 3,
        at: AT,
        event,
        run_id: 1,
        workflow: text("order"),
        parent_run_id: Some(2),
        to: Some(RunState::Completed),
        signal: text("paid"),
        code: text("E"),
    };
    for event in [
        Event::Task(of_task),
        Event::Task(TaskEvent { task_id: 1, ..TaskEvent::default() }),
        Event::Run(of_run),
        Event::Run(RunEvent::default()),
    ] {
        same::<v1::Event, _>(event);
    }
    let queue = text("q");
    both::<v1::WatchRequest, _>(EventFilter {
        after: text("3.1"),
        task: Some(1),
        run: Some(2),
        queue,
    });
}

#[test]
fn status_survives() {
    both::<v1::ServerStatus, _>(Status {
        version: "0.1.0".to_owned(),
        role: "leader".to_owned(),
        lsn: 1,
        durable_lsn: 2,
        epoch: 3,
        state_hash: text("ab"),
        tasks: counts("WAITING"),
        runs: counts("RUNNING"),
        ending_runs: 4,
        parked_runs: 5,
        workflows: 6,
        parked_leases: 7,
        parked_readers: 8,
        snapshot_lsn: Some(9),
        log_oldest_lsn: 10,
        log_bytes: 11,
        archive: Some(ArchiveStatus {
            folder: "archive".to_owned(),
            archived: 12,
            bytes: 13,
            failing: text("why"),
            failing_ms: 14,
        }),
        log_time_ahead_ms: 15,
        memory: MemoryStatus { used_bytes: 16, max_bytes: 17, full: true, pools: counts("state") },
        uptime_ms: 18,
        now: AT,
    });
    both::<v1::Snapshot, _>(Snapshot {
        lsn: 1,
        state_hash: "ab".to_owned(),
        tasks: 2,
        bytes: 3,
        took_ms: 4,
    });
}

#[test]
fn leases_and_results_are_read_whole() {
    let lease = v1::Lease {
        task_id: 1,
        lease_id: 2,
        attempt: 3,
        queue: "q".to_owned(),
        payload: Bytes::from_static(b"[1]"),
        tags: map("a", "b"),
        expires_at: AT.0,
        log_expires_at: 4,
        run: Some(of_run().into()),
        traceparent: text("00-1-2-01"),
        name: text("mail"),
        checkpoint: b"[2]".to_vec(),
    };
    let json = serde_json::to_string(&Lease::from(lease)).unwrap();
    assert!(!json.contains("null"), "{json}");
    let result = v1::ReportResult {
        task_id: 1,
        code: String::new(),
        message: String::new(),
        state: v1::TaskState::Leased.into(),
        expires_at: AT.0,
        log_expires_at: 4,
        cancel_requested: true,
    };
    let accepted = ReportResult::from(result);
    assert_eq!((accepted.ok, accepted.state), (true, Some(TaskState::Leased)));
    assert_eq!((accepted.expires_at, accepted.cancel_requested), (Some(AT), Some(true)));
    let refused = v1::ReportResult {
        code: "lease_lost".to_owned(),
        message: "it is over".to_owned(),
        ..v1::ReportResult::default()
    };
    let refused = ReportResult::from(refused);
    assert_eq!((refused.ok, refused.state, refused.cancel_requested), (false, None, None));
    assert_eq!((refused.code, refused.message), (text("lease_lost"), text("it is over")));
}

#[test]
fn an_unknown_number_of_a_newer_server_is_kept() {
    let task = Task::from(v1::Task { state: 99, ..v1::Task::default() });
    assert_eq!(task.state, TaskState::Other("99".to_owned()));
    let run = Run::from(v1::Run::default());
    assert_eq!(run.state, RunState::Other("UNSPECIFIED".to_owned()));
}

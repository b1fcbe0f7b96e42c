//! Logs that released versions have written, with a snapshot in the middle, give the state that they
//! gave then. They are added, never changed: see `golden/README.md`.
//!
//! Proves P10 and P20.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::asks::{
    cancel, complete, fail, heartbeat, lease, lease_ref, submit_delayed, submit_keyed, submit_task,
    submit_with_timeout, task,
};
use support::{House, START_MS, options};
use tenure_coordinator::request::{
    CancelRun, DeleteQueue, Maintain, RetryTask, TakeSnapshot, UnparkRun,
};
use tenure_coordinator::{Keep, Recovery, Upkeep, recover};
use tenure_core::command::{
    Command, CompleteTask, ConfigureQueue, DeleteWorkflow, FailTask, Heartbeat, IdJump, NewTask,
    PauseEnd, PauseQueue, RegisterWorkflow, ReleaseTask, ReportTasks, Retention, Retry, Setting,
    SettingsChange, SignalByKey, SignalRun, SignalStart, StartRun, StartRuns,
};
use tenure_core::invariant;
use tenure_flow::{Definition, yaml};
use tenure_record::codec;
use tenure_record::id::{RunId, TaskId};
use tenure_record::name::{Reason, SignalText, TagKey, TagValue, TaskKey, TaskName};
use tenure_record::progress::Checkpoint;
use tenure_record::terms::{Backoff, Budgets, Count, LeaseMs, Payload, Priority, SpanMs, Tags};
use tenure_record::trace::TraceParent;
use tenure_value::Value;
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::ModelDisk;
use tenure_wal::{Claim, Options, Wal};

/// Every event that a record can hold.
const EVENTS: [&str; 22] = [
    "CancelRequested",
    "DispatchContinued",
    "EndContinued",
    "IdsSkipped",
    "LeaseExpired",
    "LeaseGranted",
    "QueueConfigured",
    "QueueDeleted",
    "ReportsApplied",
    "RunCancelRequested",
    "RunParked",
    "RunStarted",
    "RunStartedBySignal",
    "RunUnparked",
    "RunsStarted",
    "SignalReceived",
    "TaskCreated",
    "TaskRetried",
    "TasksPurged",
    "TimerFired",
    "WorkflowDeleted",
    "WorkflowRegistered",
];

/// What few records hold, each at least once.
const PARTS: [&str; 9] = [
    "name: Some(\"send\")",
    "traceparent: Some(",
    "max_attempts: Some(",
    "key_from: 12",
    "cause: AttemptTimedOut",
    "dead_letter: Some(",
    "priority: Some(Priority(-3))",
    "paused_until: 1",
    "cause: RanOut",
];

const WORKFLOW: &str = "workflow: golden
initial_node: begin
nodes:
  - {ref: begin, kind: pass}
  - {ref: part, kind: task, task: {queue: parts}}
  - {ref: ask, kind: signal, signal: {name: approval}}
  - {ref: nap, kind: timer, timer: {delay_ms: 5000}}
  - {ref: last, kind: task, task: {queue: last}}
transitions:
  - {ref: spread, from: begin, to: part, foreach: {collection: input.list, item_var: x}}
  - {from: part, to: ask, synchronization: {joins_transition: spread, wait_for: {m_of_n: 2}, merge: [{target: context.parts, strategy: append}]}}
  - {from: ask, to: nap}
  - {from: nap, to: last}
";
const WIDE: &str = "workflow: wide
initial_node: begin
nodes:
  - {ref: begin, kind: pass}
  - {ref: part, kind: task, task: {queue: wide}}
transitions:
  - {from: begin, to: part, foreach: {collection: input.list, item_var: x}}
";

/// Its first step does not fit a record of [`SHORT_BYTES`].
const BURST: &str = "workflow: burst
initial_node: nap
nodes:
  - {ref: nap, kind: timer, timer: {delay_ms: 1000}}
  - {ref: work, kind: task, task: {queue: burst-with-a-name-of-some-length}}
transitions: [{from: nap, to: work, spawn_count: 100}]
";
const SHORT_BYTES: usize = 2_048;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Segments that do not fill the repository.
fn small() -> Options {
    Options { segment_bytes: 112 << 10, ..options() }
}

fn start(disk: &ModelDisk) -> Recovery<Wal<ModelDisk>> {
    recover(Claim::new(disk, small()).unwrap(), 1, |_| {}).unwrap()
}

/// Its files on a disk.
fn load(folder: &Path) -> ModelDisk {
    let disk = ModelDisk::default();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".wal") || name.starts_with("snapshot-") {
            disk.put(name, std::fs::read(&path).unwrap());
        }
    }
    disk
}

/// The files without the snapshots.
fn without_snapshots(disk: &ModelDisk) -> ModelDisk {
    let disk = disk.killed();
    for name in disk.list().unwrap().iter().filter(|name| name.starts_with("snapshot-")) {
        disk.remove(name).unwrap();
    }
    disk
}

/// The names of all events in a log.
fn events(disk: &ModelDisk) -> BTreeSet<String> {
    let names = records(disk);
    names.iter().map(|event| event.split(['(', ' ']).next().unwrap().to_owned()).collect()
}

/// All events of a log, as Rust writes them.
fn records(disk: &ModelDisk) -> Vec<String> {
    let mut found = Vec::new();
    let wal = Wal::open(&without_snapshots(disk), small(), None, |frame| {
        for (_, bytes) in frame.records() {
            let record = codec::decode(bytes).unwrap();
            found.push(format!("{:?}", record.event));
        }
    });
    wal.unwrap();
    found
}

/// The log that a golden folder is made from holds every event, and gives one state with and
/// without its snapshot.
#[test]
fn the_story_of_a_golden_log_has_every_event() {
    let disk = story();
    let found = events(&disk);
    assert!(found.iter().map(String::as_str).eq(EVENTS), "{found:?}");
    let text = records(&disk).concat();
    for part in PARTS {
        assert!(text.contains(part), "no record has `{part}`");
    }
    let recovery = start(&disk);
    assert!(recovery.kept.newest.is_some(), "there is a snapshot");
    let facts = recovery.state.facts();
    assert_eq!(start(&without_snapshots(&disk)).state.facts().hash(), facts.hash());
    let finished = recovery.state.run(RunId(1)).unwrap();
    assert_eq!(finished.state(), "COMPLETED", "a finished run is in the last state");
}

#[test]
fn every_golden_log_gives_the_state_that_it_gave_then() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let disk = load(&path);
        let then = std::fs::read_to_string(path.join("state-hash.txt")).unwrap();
        for disk in [&disk, &without_snapshots(&disk)] {
            let recovery = start(disk);
            invariant::check_facts(recovery.state.facts()).unwrap();
            assert_eq!(
                recovery.state.facts().hash().to_string(),
                then.trim(),
                "{}",
                path.display()
            );
        }
        assert!(start(&disk).kept.newest.is_some(), "{} has a snapshot", path.display());
        let found = events(&disk);
        assert!(found.iter().all(|event| EVENTS.contains(&event.as_str())), "{found:?}");
    }
}

/// `cargo xtask golden NAME` writes a new folder when a format has changed.
#[test]
#[ignore = "it writes a new golden log"]
fn write() {
    let version = std::env::var("TENURE_GOLDEN").expect("TENURE_GOLDEN names the folder");
    let path = folder().join(version);
    std::fs::create_dir(&path).expect("golden logs are added, never changed");
    let disk = story();
    let hash = start(&disk).state.facts().hash();
    for name in disk.list().unwrap() {
        if name.ends_with(".wal") || name.starts_with("snapshot-") {
            std::fs::write(path.join(&name), disk.bytes(&name).unwrap()).unwrap();
        }
    }
    std::fs::write(path.join("state-hash.txt"), format!("{hash}\n")).unwrap();
}

fn register(text: &str) -> RegisterWorkflow {
    let definition = Arc::new(Definition::compile(&yaml::parse(text).unwrap()).unwrap());
    RegisterWorkflow { definition }
}

fn begin(workflow: &str, input: &str) -> StartRun {
    start_of(workflow, input, &format!("key-of-{workflow}"))
}

fn start_of(workflow: &str, input: &str, key: &str) -> StartRun {
    StartRun {
        workflow: workflow.into(),
        version: None,
        input: Value::from_json(input.as_bytes()).unwrap(),
        key: Some(TaskKey::parse(key).unwrap()),
        tags: Tags::default(),
    }
}

fn signal(run: u64) -> SignalRun {
    SignalRun {
        run_id: RunId(run),
        name: "approval".into(),
        payload: Value::from_json(br#"{"by":"anna"}"#).unwrap(),
        correlation: SignalText::parse("").unwrap(),
        signal_id: None,
    }
}

/// A little of everything that a log can tell.
fn story() -> ModelDisk {
    let upkeep = Upkeep {
        snapshot_log_bytes: u64::MAX,
        log_keep: Keep::All,
        retention: Retention { age_ms: 20_000, ..Retention::default() },
        ..Upkeep::default()
    };
    let mut house = House::with(ModelDisk::default(), START_MS, small());
    house.coordinator = house.coordinator.with_upkeep(upkeep);
    tasks(&mut house);
    terms(&mut house);
    runs(&mut house);
    house.pass_ms(25_000);
    let last = house.tell(lease("bert", &["last"], 0)).grants()[0].lease();
    house.tell(complete(last));
    house.tell(Maintain(Command::SkipIds(IdJump::Restore)));
    house.tell(submit_keyed("mail", "after-the-jump"));
    house.disk.killed()
}

fn tasks(house: &mut House) {
    let retention_ms = Setting::Set(SpanMs::parse("retention_ms", 60_000).unwrap());
    let queue = support::asks::queue("kept");
    house.tell(ConfigureQueue {
        queue,
        change: SettingsChange { retention_ms, ..SettingsChange::default() },
    });
    for n in 0..8 {
        house.tell(submit_keyed("mail", &format!("key-{n}")));
    }
    house.tell(submit_delayed("mail", 500_000));
    house.tell(submit_with_timeout("late", 3_000));
    let tag = (TagKey::parse("customer").unwrap(), TagValue::parse("7").unwrap());
    let tags = Tags::parse(vec![tag]);
    house.tell(submit_task(NewTask { tags: tags.unwrap(), ..task("kept") }));
    let mut granted = || house.tell(lease("anna", &["mail"], 0)).grants()[0].lease();
    let (done, failed, released, silent) = (granted(), granted(), granted(), granted());
    let (first, second) = (granted(), granted());
    house.pass_ms(1_000);
    house.tell(heartbeat(done));
    house.tell(complete(done));
    house.tell(fail(failed));
    house.tell(ReleaseTask::from(released));
    let output = || Payload::parse("output", br#"{"ok":true}"#.to_vec()).unwrap();
    house.tell(ReportTasks {
        heartbeats: vec![silent.into()],
        completes: vec![CompleteTask::plain(first, output())],
        fails: vec![FailTask {
            lease: second,
            reason: Reason::keep_end("try again"),
            code: None,
            retry: Retry::WithBackoff,
            checkpoint: None,
            worker: None,
        }],
        releases: vec![lease_ref(first.task_id.0, 1).into()],
        ..ReportTasks::default()
    });
    house.tell(cancel(8));
    house.tell(RetryTask(TaskId(failed.task_id.0)));
    // The silent one's lease ends, and it reports all the same; what has a deadline passes it.
    house.pass_ms(31_000);
    house.tell(complete(silent));
    house.pass_ms(30_000);
}

/// What tasks, reports and queues may say beside that, while the wall clock is behind log time.
fn terms(house: &mut House) {
    house.wall_ms -= 60_000;
    let span = |ms: i64| SpanMs::parse("span", ms).unwrap();
    let checkpoint = |text: &str| Checkpoint::parse(text.as_bytes()).unwrap();
    let queue = support::asks::queue;
    house.tell(ConfigureQueue {
        queue: queue("terms"),
        change: SettingsChange {
            dead_letter_queue: Setting::Set(queue("dead")),
            max_waiting: Setting::Set(Count::parse("max_waiting", 1_000).unwrap()),
            ..SettingsChange::default()
        },
    });
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let full = NewTask {
        name: Some(TaskName::parse("send").unwrap()),
        priority: Priority::parse(7).unwrap(),
        budgets: Budgets::parse(Some(2), Some(3), Some(4)).unwrap(),
        backoff: Some(Backoff { max_ms: 9_000, ..Backoff::STANDARD }),
        total_timeout_ms: Some(span(900_000)),
        attempt_timeout_ms: Some(span(20_000)),
        key: Some(TaskKey::parse("for-a-while").unwrap()),
        key_ttl_ms: Some(span(10_000)),
        traceparent: Some(TraceParent::parse(parent).unwrap()),
        ..task("terms")
    };
    house.tell(submit_task(full.clone()));
    let held = house.tell(lease("carl", &["terms"], 0)).grants()[0].lease();
    house.tell(Heartbeat {
        lease_ms: Some(LeaseMs::parse(40_000).unwrap()),
        checkpoint: checkpoint(r#"{"page":1}"#),
        ..held.into()
    });
    house.tell(ReleaseTask {
        delay_ms: span(1_000),
        priority: Some(Priority::parse(-3).unwrap()),
        checkpoint: checkpoint(r#"{"page":2}"#),
        ..held.into()
    });
    // Its key is free by then, and its attempt takes too long.
    house.pass_ms(11_000);
    house.tell(submit_task(full));
    house.tell(lease("carl", &["terms"], 0));
    house.tell(lease("carl", &["terms"], 0));
    house.pass_ms(21_000);
    // A failure that is final leaves a copy.
    house.tell(submit_task(NewTask { name: None, ..task("terms") }));
    house.pass_ms(9_000);
    for _ in 0..3 {
        let granted = house.tell(lease("carl", &["terms"], 0)).grants();
        let Some(granted) = granted.first() else { break };
        house.tell(FailTask {
            lease: granted.lease(),
            reason: Reason::keep_end("no"),
            code: None,
            retry: Retry::Never,
            checkpoint: checkpoint("3"),
            worker: None,
        });
    }
    for (name, end) in [("shut", PauseEnd::Resumed), ("later", PauseEnd::After(span(800_000)))] {
        house.tell(PauseQueue { queue: queue(name), end });
    }
    house.tell(DeleteQueue(queue("shut")));
}

fn runs(house: &mut House) {
    house.tell(register(WORKFLOW));
    house.tell(register(WIDE));
    house.tell(begin("golden", r#"{"list":[1,2,3]}"#));
    for _ in 0..2 {
        let part = house.tell(lease("bert", &["parts"], 0)).grants()[0].lease();
        house.tell(complete(part));
    }
    let snapshot = house.ask(TakeSnapshot);
    while snapshot.waits() {
        house.settle();
    }
    house.tell(signal(1));
    house.pass_ms(5_001);
    let list: Vec<_> = (0..1_100).map(|n| n.to_string()).collect();
    house.tell(begin("wide", &format!(r#"{{"list":[{}]}}"#, list.join(","))));
    house.tell(CancelRun(RunId(2)));
    // A run is parked because its next step does not fit a record, and let go on.
    house.tell(register(BURST));
    house.coordinator.limit_records(SHORT_BYTES);
    house.tell(begin("burst", "{}"));
    house.pass_ms(1_000);
    house.coordinator.limit_records(usize::MAX);
    house.tell(UnparkRun(RunId(3)));
    house.pass_ms(1);
    let list = r#"{"list":[1]}"#;
    let runs = ["one", "two"].map(|key| start_of("golden", list, key)).into();
    house.tell(StartRuns { runs });
    house.tell(SignalByKey {
        workflow: "golden".into(),
        key: TaskKey::parse("three").unwrap(),
        signal: SignalRun { signal_id: Some(SignalText::parse("s").unwrap()), ..signal(0) },
        start: Some(SignalStart {
            version: None,
            input: Value::from_json(list.as_bytes()).unwrap(),
            tags: Tags::default(),
        }),
    });
    house.tell(register(&WIDE.replace("workflow: wide", "workflow: unused")));
    house.tell(DeleteWorkflow { name: "unused".into(), version: Some(1) });
}

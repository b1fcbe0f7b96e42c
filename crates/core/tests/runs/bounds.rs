//! Where a run meets a bound: each says so by its code, every code has a test, and what ends with a
//! wide run fits one record.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use tenure_code::Code;
use tenure_core::command::{
    CancelTask, Command, FailTask, LeaseRef, LeaseTasks, NewTask, RegisterWorkflow, Reply, Rest,
    SubmitTasks, Swept,
};
use tenure_core::limits::{
    BATCH_ITEMS_MAX, CASCADE_BYTES_MAX, END_ITEMS_MAX, QUEUES_MAX, SIGNALS_KEPT_BYTES_MAX,
    SIGNALS_KEPT_MAX,
};
use tenure_core::state::TimerRef;
use tenure_core::{Draft, Rejection, State, Verdict, apply, decide, invariant};
use tenure_record::codec;
use tenure_record::event::{Event, Record, RunState};
use tenure_record::id::RunId;
use tenure_record::limits::{PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX};
use tenure_record::name::{QueueName, WorkerName};
use tenure_record::terms::Payload;
use tenure_record::time::{Now, Timestamp};
use tenure_record::transition::transitions;

use super::world::{Checks, World, complete, fail, json};

const TEXT: &str = "0123456789abcdef";

fn code_of(yaml: &str, input: &str) -> String {
    let mut world = World::new();
    world.register(yaml);
    let run = world.start("w", input);
    assert_eq!(world.run_state(run), "FAILED", "{yaml}");
    world.verify();
    world.codes(run)[0].clone()
}

#[test]
fn what_is_too_long_for_a_record_or_a_payload_says_so() {
    let long = |times: usize| TEXT.repeat(times * 65_536 / TEXT.len());
    let payload = "workflow: w
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: q}, input_mapping: {x: input.x}}]
";
    let input = format!("{{\"x\":\"{}\"}}", long(17));
    assert_eq!(code_of(payload, &input), "PAYLOAD_TOO_LARGE");
    // The list and its keys take more than a record.
    let wide = "workflow: w
initial_node: a
nodes: [{ref: a, kind: pass}, {ref: b, kind: pass}]
transitions:
  - {from: a, to: b, foreach: {collection: \"input.list.map(x, x + x + x)\", item_var: y, key: y}}
";
    let items: Vec<_> = (0..18).map(|n| format!("\"{n}{}\"", long(1))).collect();
    let input = format!("{{\"list\":[{}]}}", items.join(","));
    assert_eq!(code_of(wide, &input), "LIMIT_RECORD");
}

#[test]
fn a_cascade_that_fills_its_record_says_so() {
    // Nothing is branched over: five writes and the steps between them fill the record.
    let endless = "workflow: w
initial_node: a
limits: {max_cascade: 1000000, max_tokens: 1000000}
nodes: [{ref: a, kind: pass, output_mapping: {context.x: input.x}}, {ref: b, kind: pass}]
transitions:
  - {from: a, to: b}
  - {from: b, to: a, loop: {max_iterations: 1000000}}
";
    // The tokens that were made, and why there are no more.
    let ended = |short: usize| {
        let mut world = World::with(Checks::Touched);
        world.register(endless);
        let x = "x".repeat(CASCADE_BYTES_MAX / 5 - short);
        let run = world.start("w", &format!("{{\"x\":\"{x}\"}}"));
        assert_eq!(world.codes(run), ["LIMIT_RECORD"]);
        (world.state.run(run).unwrap().token_count(), world.error(run))
    };
    let (fewest, message) = ended(0);
    assert!(message.contains("are more than is left of the 6291456 of one record"), "{message}");
    // The longest text that leaves room for one token more: one byte longer, and the fifth write fits
    // while the step after it does not.
    let (mut long, mut short) = (0_usize, 4_096);
    while long + 1 < short {
        let middle = long.midpoint(short);
        if ended(middle).0 > fewest { short = middle } else { long = middle }
    }
    let (_, message) = ended(long);
    let wanted =
        "more than the 6291456 bytes of one record; put a task, a signal or a timer between";
    assert!(message.contains(wanted), "{message}");
}

#[test]
fn a_child_says_what_is_wrong_with_its_input_or_that_it_was_canceled() {
    let child = "workflow: child
input_schema: {type: object, required: [n]}
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: q}}]
";
    let parent = |mapping: &str| {
        format!(
            "workflow: w
initial_node: a
nodes: [{{ref: a, kind: workflow, workflow: {{name: child}}{mapping}}}]
"
        )
    };
    let mut world = World::new();
    world.register(child);
    world.register(&parent(""));
    let run = world.start("w", "{}");
    assert_eq!(world.codes(run), ["INPUT_INVALID"]);
    world.register(&parent(", input_mapping: {n: '1'}"));
    let run = world.start("w", "{}");
    world.play(&Command::CancelRun(RunId(run.0 + 1))).unwrap();
    assert_eq!((world.run_state(run), world.codes(run)[0].as_str()), ("FAILED", "RUN_CANCELED"));
    world.verify();
}

#[test]
fn a_run_keeps_so_many_signals_and_no_more() {
    let mut world = World::with(Checks::Touched);
    world.register(
        "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: signal, signal: {name: go}}
  - {ref: b, kind: signal, signal: {name: s}}
  - {ref: c, kind: signal, signal: {name: go}}
transitions: [{from: a, to: b}, {from: b, to: c}]
",
    );
    let run = world.start("w", "{}");
    for _ in 0..SIGNALS_KEPT_MAX {
        world.signal(run, "s", "1").unwrap();
    }
    let records = world.records;
    let refused = world.signal(run, "s", "1").unwrap_err();
    assert!(matches!(refused, Rejection::SignalsFull { .. }), "{refused}");
    assert_eq!(world.records, records, "what is refused leaves no record");
    // One is taken, so there is room for one.
    world.signal(run, "go", "1").unwrap();
    world.signal(run, "s", "1").unwrap();
    assert!(world.signal(run, "s", "1").is_err());
    world.verify();
}

#[test]
fn a_run_keeps_a_bounded_number_of_signal_bytes() {
    let mut world = World::with(Checks::Touched);
    world.register(
        "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: signal, signal: {name: go}}
  - {ref: b, kind: signal, signal: {name: s}}
  - {ref: c, kind: signal, signal: {name: go}}
transitions: [{from: a, to: b}, {from: b, to: c}]
",
    );
    let run = world.start("w", "{}");
    let before = world.state.bytes().runs;
    let large = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX - 2));
    for _ in 0..SIGNALS_KEPT_BYTES_MAX / PAYLOAD_BYTES_MAX {
        world.signal(run, "s", &large).unwrap();
    }
    let records = world.records;
    let refused = world.signal(run, "s", "1").unwrap_err();
    let bytes = SIGNALS_KEPT_BYTES_MAX + 8;
    assert_eq!(refused, Rejection::SignalBytesFull { run_id: run, bytes });
    assert_eq!((refused.code(), world.records), (Code::Overloaded, records));
    let kept = (world.state.bytes().runs - before) as usize;
    assert!(
        (SIGNALS_KEPT_BYTES_MAX..SIGNALS_KEPT_BYTES_MAX + (64 << 10)).contains(&kept),
        "{kept}"
    );
    // One is taken, so there is room for one; what a token waits for needs none.
    world.signal(run, "go", "1").unwrap();
    world.signal(run, "s", &large).unwrap();
    assert!(world.signal(run, "s", &large).is_err());
    world.signal(run, "go", &large).unwrap();
    assert_eq!(world.run_state(run), "COMPLETED");
    let left = (world.state.bytes().runs - before) as usize;
    assert!(left < SIGNALS_KEPT_BYTES_MAX / 4, "a run that is over keeps no signals: {left}");
    world.verify();
}

#[test]
fn a_signal_may_be_as_large_as_a_payload_and_not_a_byte_larger() {
    let mut world = World::new();
    world.register(
        "workflow: w
initial_node: a
nodes: [{ref: a, kind: signal, signal: {name: go}}]
",
    );
    let run = world.start("w", "{}");
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let refused = world.signal(run, "go", &text(PAYLOAD_BYTES_MAX + 1)).unwrap_err();
    let (bytes, bytes_max) = (PAYLOAD_BYTES_MAX + 1, PAYLOAD_BYTES_MAX);
    assert_eq!(refused, Rejection::ValueTooLarge { what: "the payload", bytes, bytes_max });
    world.signal(run, "go", &text(PAYLOAD_BYTES_MAX)).unwrap();
    assert_eq!(world.run_state(run), "COMPLETED");
    world.verify();
}

/// Codes in a source, as they are written there.
fn codes(text: &str) -> Vec<String> {
    let is_code = |word: &&str| {
        word.contains('_') && word.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase())
    };
    text.split('"').filter(is_code).map(str::to_owned).collect()
}

#[allow(clippy::disallowed_methods, reason = "a test reads the sources")]
fn sources(folder: &Path, all: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, all),
            false => all.push(std::fs::read_to_string(path).unwrap()),
        }
    }
}

#[test]
fn every_error_code_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut engine, mut tests) = (Vec::new(), Vec::new());
    sources(&root.join("src/workflow"), &mut engine);
    sources(&root.join("src/decide"), &mut engine);
    sources(&root.join("tests/runs"), &mut tests);
    let mut given = Vec::new();
    for text in &engine {
        let (rules, tested) = text.split_once("#[cfg(test)]").unwrap_or((text, ""));
        given.extend(codes(rules));
        tests.push(tested.to_owned());
    }
    given.sort_unstable();
    given.dedup();
    assert!(given.len() > 25, "codes were found: {given:?}");
    let is_untested = |code: &&String| !tests.iter().any(|text| text.contains(code.as_str()));
    let untested: Vec<_> = given.iter().filter(is_untested).collect();
    assert!(untested.is_empty(), "no test brings about {untested:?}");
}

/// A state that serves and one that reads its log, without the checks that look at everything.
#[derive(Clone)]
struct Lean {
    state: State,
    replayed: State,
    now: Timestamp,
    /// Bytes of the last record.
    bytes: usize,
    /// Transitions that the last record showed.
    shown: usize,
}

impl Lean {
    fn new() -> Self {
        let (state, replayed) = (State::new(0), State::replaying(1));
        Self { state, replayed, now: Timestamp(1_700_000_000_000), bytes: 0, shown: 0 }
    }

    fn play(&mut self, command: &Command) -> Reply {
        let now = Now::both(self.now);
        let verdict = decide(&mut Draft::new(&self.state), command, now, 0).unwrap();
        let Verdict::Append(event, reply) = verdict else { panic!("{command:?} does nothing") };
        let record =
            Record { lsn: self.state.last_lsn().next(), at: now.log, wall: now.wall, event };
        let mut bytes = Vec::new();
        codec::encode(&record, &mut bytes);
        let read = codec::decode(&bytes).unwrap();
        assert_eq!(read, record, "what is read is what was written");
        let is_end = !matches!(record.event, Event::DispatchContinued(_));
        self.shown = if is_end { transitions(&record).len() } else { 0 };
        apply(&mut self.state, &record);
        apply(&mut self.replayed, &read);
        self.bytes = bytes.len();
        reply
    }

    fn lease(&mut self, worker: &str, max: u32) -> Vec<LeaseRef> {
        let command = LeaseTasks {
            worker: WorkerName::parse(worker).unwrap(),
            queues: vec![QueueName::parse("q").unwrap()],
            tasks_max: NonZeroU32::new(max).unwrap(),
            lease_ms: None,
        };
        let Reply::Leased(leases) = self.play(&Command::LeaseTasks(command)) else { panic!() };
        let lease = |it: &tenure_core::command::Leased| LeaseRef {
            task_id: it.task_id,
            lease_id: it.lease_id,
        };
        leases.iter().map(lease).collect()
    }

    fn register(&mut self, yaml: &str) {
        let definition = tenure_flow::Definition::compile(&tenure_flow::yaml::parse(yaml).unwrap());
        let definition = Arc::new(definition.unwrap());
        self.play(&Command::RegisterWorkflow(RegisterWorkflow { definition }));
    }

    fn start(&mut self, input: &str) -> RunId {
        let command = Command::StartRun(tenure_core::command::StartRun {
            workflow: "w".into(),
            version: None,
            input: json(input),
            key: None,
            tags: Default::default(),
        });
        let Reply::Started(started) = self.play(&command) else { panic!() };
        started.run_id
    }
}

#[test]
fn a_task_for_one_queue_too_many_fails_its_node() {
    let mut lean = Lean::new();
    let batch = |first: usize| {
        let queues = (first..first + BATCH_ITEMS_MAX).map(|n| format!("q{n}"));
        let payload = || Payload::parse("payload", b"{}".to_vec()).unwrap();
        let tasks = queues.map(|name| NewTask::new(QueueName::parse(&name).unwrap(), payload()));
        Command::SubmitTasks(SubmitTasks { tasks: tasks.collect() })
    };
    (0..QUEUES_MAX).step_by(BATCH_ITEMS_MAX).for_each(|first| drop(lean.play(&batch(first))));
    lean.register(
        "workflow: w
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: another}}]
",
    );
    let run = lean.start("{}");
    let error = lean.state.run(run).unwrap().error().unwrap().to_json();
    assert!(error.contains("TOO_MANY_QUEUES"), "{error}");
}

/// A run of so many branches, of which as many are live as may be: waiting, leased in blocks and
/// one by one, by two workers, with holes where some are done.
fn wide(branches: u32) -> (Lean, RunId, Vec<LeaseRef>) {
    let mut lean = Lean::new();
    lean.register(&format!(
        "workflow: w
timeout_ms: 1000000
limits: {{max_spawn: {branches}}}
initial_node: a
nodes:
  - {{ref: a, kind: pass}}
  - {{ref: b, kind: task, task: {{queue: q}}}}
  - {{ref: c, kind: pass}}
transitions:
  - {{ref: t, from: a, to: b, spawn_count: {branches}}}
  - {{from: b, to: c, synchronization: {{joins_transition: t}}}}
"
    ));
    let run = lean.start("{}");
    while lean.state.has_dispatch() {
        lean.play(&Command::ContinueDispatch);
    }
    let mut held = Vec::new();
    for nth in 0..20 {
        held.extend(lean.lease(["anna", "ben"][nth % 2], 1_000));
    }
    for nth in 0..2_000 {
        held.extend(lean.lease(["anna", "ben"][nth % 2], 1));
    }
    let mut left = Vec::new();
    for (nth, lease) in held.into_iter().enumerate() {
        match nth % 7 == 0 {
            true => {
                lean.play(&Command::CompleteTask(complete(lease, "1")));
            }
            false => left.push(lease),
        }
    }
    (lean, run, left)
}

#[test]
fn a_run_of_a_hundred_thousand_live_tasks_ends_in_bounded_records() {
    let (lean, run, held) = wide(100_000);
    let open = |lean: &Lean| {
        let tasks = lean.state.facts().tasks();
        tasks.filter(|task| !task.state().is_terminal()).count()
    };
    let live = open(&lean);
    let mut late = lean.clone();
    late.now = late.now.plus_ms(1_000_000);
    // The leases ended long before the run's deadline.
    while let Some(TimerRef::Lease(_)) = late.state.first_due(Now::both(late.now)) {
        late.play(&Command::FireTimers);
    }
    let failure = Command::FailTask(FailTask { ..fail(held[0], "BROKEN") });
    // The task that fails ends by itself.
    let ends = [
        (lean.clone(), Command::CancelRun(run), RunState::Canceled, live),
        (lean, failure, RunState::Failed, live - 1),
        (late, Command::FireTimers, RunState::TimedOut, live),
    ];
    for (mut lean, command, state, ending) in ends {
        lean.play(&command);
        assert!(lean.bytes < 4_096, "{state}: the decision has {} bytes", lean.bytes);
        assert_eq!(lean.state.run(run).unwrap().state(), "RUNNING", "it is not over yet");
        // What is ending is held by nobody, and given to nobody.
        let reply = lean.play(&Command::CompleteTask(complete(held[1], "1")));
        assert!(matches!(reply, Reply::LeaseLost(_)), "{reply:?}");
        let (mut shown, mut records) = (0, 0);
        while lean.state.has_endings() {
            lean.play(&Command::ContinueEnding { items_max: END_ITEMS_MAX });
            assert!(lean.bytes < RECORD_BYTES_MAX / 64, "a part has {} bytes", lean.bytes);
            assert!(lean.shown <= END_ITEMS_MAX / 2 + 1, "{} end in one record", lean.shown);
            (shown, records) = (shown + lean.shown, records + 1);
        }
        let found = lean.state.run(run).unwrap();
        assert_eq!((found.state(), open(&lean)), (state.as_str(), 0));
        // A token and its task are two items, and the run's own end is shown too.
        assert_eq!(shown, ending, "every task that ended is shown, once");
        assert!(records >= ending * 2 / END_ITEMS_MAX, "{records} records");
        invariant::check(&lean.state).unwrap();
        assert_eq!(lean.replayed.facts().hash(), lean.state.facts().hash());
    }
}

#[test]
fn leases_whose_ends_are_too_much_for_one_record_are_dropped_in_several() {
    let mut lean = Lean::new();
    lean.register(
        "workflow: w
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: q}}]
",
    );
    for _ in 0..5_000 {
        lean.start("{}");
    }
    let held: Vec<_> = (0..5).flat_map(|_| lean.lease("anna", 1_000)).collect();
    for lease in &held {
        lean.play(&Command::CancelTask(CancelTask { task_id: lease.task_id, grace_ms: None }));
    }
    // Each lease that is dropped ends its task and its run.
    let (mut dropped, mut records) = (0, 0);
    loop {
        let reply = lean.play(&Command::DropLeases(held.clone()));
        let Reply::Swept(Swept { items, rest }) = reply else { panic!("{reply:?}") };
        (dropped, records) = (dropped + items, records + 1);
        if rest == Rest::Nothing {
            break;
        }
    }
    assert_eq!((dropped, records), (5_000, 2), "in two records");
    assert_eq!(lean.replayed.facts().hash(), lean.state.facts().hash());
}

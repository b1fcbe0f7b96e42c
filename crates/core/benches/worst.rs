//! The costliest legal record of each command: bytes, units of work, and the time that deciding,
//! encoding and applying it take on the processor. `cargo xtask bench worst` prints the table.
//!
//! Each case builds the largest state and request that the limits allow and then measures one
//! record, three times from scratch; the median counts.

#![allow(clippy::disallowed_methods, reason = "a bench looks at the clock")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::command::{
    Archived, CancelTask, Command, CompleteTask, ConfigureQueue, FailTask, Heartbeat, IdJump,
    LeaseRef, LeaseTasks, NewTask, ParkRun, PauseQueue, RegisterWorkflow, Reply, ReportTasks,
    Retention, Retry, Setting, SettingsChange, SignalRun, StartRun, SubmitTasks,
};

use tenure_core::limits::{
    BATCH_ITEMS_MAX, DUE_ITEMS_MAX, END_ITEMS_MAX, LEASE_QUEUES_MAX, LEASE_TASKS_MAX,
};
use tenure_core::{Draft, State, Verdict, apply_decided, decide};
use tenure_flow::Definition;
use tenure_record::codec;
use tenure_record::event::Record;
use tenure_record::id::{RunId, TaskId};
use tenure_record::limits::{NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, REASON_BYTES_MAX, TAGS_MAX};
use tenure_record::name::{QueueName, Reason, SignalText, TagKey, TagValue, TaskKey, WorkerName};
use tenure_record::terms::{Payload, SpanMs, Tags};
use tenure_record::time::{Clock, Now, Timestamp};
use tenure_value::Value;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 3;
/// A record that takes longer is named in the book as an exception.
const ALLOWED: Duration = Duration::from_millis(25);

#[derive(Clone, Copy, Default)]
struct Cost {
    on_processor: Duration,
    bytes: usize,
    work: u64,
}

struct Engine {
    state: State,
    clock_ms: u64,
    last: Cost,
}

impl Engine {
    fn new() -> Self {
        Self { state: State::new(7), clock_ms: 1_000_000_000_000, last: Cost::default() }
    }

    fn run(&mut self, command: &Command) -> Reply {
        let now = Now::both(Timestamp(self.clock_ms));
        self.state.advance(now);
        let mut frame = Vec::with_capacity(8 << 20);
        let started = on_processor();
        let mut draft = Draft::new(&self.state);
        let verdict = decide(&mut draft, command, now, 1).unwrap();
        let work = draft.work();
        let precomputed = draft.take_precomputed();
        drop(draft);
        let reply = match verdict {
            Verdict::Append(event, reply) => {
                let record = Record {
                    lsn: self.state.last_lsn().next(),
                    at: now.log,
                    wall: now.wall,
                    event,
                };
                codec::encode(&record, &mut frame);
                apply_decided(&mut self.state, &record, &precomputed);
                reply
            }
            Verdict::Answer(reply) => reply,
        };
        self.last = Cost { on_processor: on_processor() - started, bytes: frame.len(), work };
        reply
    }

    fn measure(mut self, command: &Command) -> Cost {
        self.run(command);
        self.last
    }

    fn submit(&mut self, task: &NewTask, mut count: usize) {
        while count > 0 {
            let tasks = vec![task.clone(); count.min(BATCH_ITEMS_MAX)];
            count -= tasks.len();
            self.run(&Command::SubmitTasks(SubmitTasks { tasks }));
        }
    }

    fn lease(&mut self, queue: &QueueName, mut count: usize) -> Vec<LeaseRef> {
        let mut held = Vec::new();
        while count > 0 {
            let tasks_max = count.min(LEASE_TASKS_MAX as usize);
            let command = lease_tasks(vec![queue.clone()], tasks_max);
            let Reply::Leased(leases) = self.run(&command) else { panic!("leases are answered") };
            if leases.is_empty() {
                match self.state.has_dispatch() {
                    true => drop(self.run(&Command::ContinueDispatch)),
                    false => break,
                }
            }
            count -= leases.len();
            let lease = |it: &tenure_core::command::Leased| LeaseRef {
                task_id: it.task_id,
                lease_id: it.lease_id,
            };
            held.extend(leases.iter().map(lease));
        }
        held
    }

    fn register(&mut self, yaml: &str) {
        let definition = Definition::compile(&tenure_flow::yaml::parse(yaml).unwrap()).unwrap();
        let definition = Arc::new(definition);
        self.run(&Command::RegisterWorkflow(RegisterWorkflow { definition }));
    }

    fn start(&mut self, workflow: &str, input: Value) -> RunId {
        match self.run(&start(workflow, input)) {
            Reply::Started(started) => started.run_id,
            other => panic!("{other:?}"),
        }
    }

    /// Begins every branch of every group.
    fn dispatch(&mut self) {
        while self.state.has_dispatch() {
            self.run(&Command::ContinueDispatch);
        }
    }

    /// A run of `branches` tasks in `queue`, all of them begun.
    fn wide(&mut self, branches: usize, queue: &str) -> RunId {
        self.register(&fan(queue));
        let run = self.start("w", list_of(branches));
        self.dispatch();
        run
    }

    fn complete(&mut self, leases: &[LeaseRef]) {
        for chunk in leases.chunks(1_000) {
            let mut reports = ReportTasks::default();
            reports.completes.extend(chunk.iter().map(|lease| done(*lease, "{\"n\":1}")));
            let mut left = chunk.len();
            while left > 0 {
                let Reply::Reported { reports: decided, .. } =
                    self.run(&Command::ReportTasks(reports.clone()))
                else {
                    panic!("reports are answered")
                };
                left -= decided.len();
                reports.decided += decided.len();
            }
        }
    }
}

/// How long this thread has been on a processor.
fn on_processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

fn queue(name: &str) -> QueueName {
    QueueName::parse(name).unwrap()
}

/// A name of the largest length, different for each number.
fn long_name(number: usize) -> String {
    format!("{number:0>NAME_BYTES_MAX$}")
}

fn plain(queue: &QueueName) -> NewTask {
    NewTask::new(queue.clone(), Payload::parse("payload", b"{}".to_vec()).unwrap())
}

fn lease_tasks(queues: Vec<QueueName>, tasks_max: usize) -> Command {
    Command::LeaseTasks(LeaseTasks {
        worker: WorkerName::parse(&long_name(0)).unwrap(),
        queues,
        tasks_max: NonZeroU32::new(tasks_max as u32).unwrap(),
        lease_ms: None,
    })
}

fn done(lease: LeaseRef, output: &str) -> CompleteTask {
    CompleteTask::plain(lease, Payload::parse("output", output.as_bytes().to_vec()).unwrap())
}

fn start(workflow: &str, input: Value) -> Command {
    let (version, key, tags) = (None, None, Tags::default());
    Command::StartRun(StartRun { workflow: workflow.into(), version, input, key, tags })
}

fn list_of(items: usize) -> Value {
    let list = Value::list((0..items as i64).map(Value::Int).collect());
    Value::map(vec![("list".into(), list)])
}

fn fan(queue: &str) -> String {
    format!(
        "workflow: w
initial_node: a
nodes:
  - {{ref: a, kind: pass}}
  - {{ref: b, kind: task, task: {{queue: \"{queue}\"}}, input_mapping: {{x: x}}}}
  - {{ref: c, kind: pass}}
transitions:
  - {{ref: t, from: a, to: b, foreach: {{collection: input.list, item_var: x}}}}
  - {{from: b, to: c, synchronization: {{joins_transition: t, merge: [{{source: branch.output.n, target: context.r, strategy: append}}]}}}}
"
    )
}

/// A run that takes a task's output through an expression or a schema, as costly as may be.
fn costly(condition: &str, schema: &str) -> String {
    format!(
        "workflow: w
initial_node: a
nodes:
  - {{ref: a, kind: task, task: {{queue: q}}, output_schema: {schema}}}
  - {{ref: b, kind: pass}}
transitions: [{{from: a, to: b, condition: \"{condition}\"}}]
"
    )
}

fn submits() -> Vec<(&'static str, Cost)> {
    let many_keys = || {
        let tag = |n: usize| {
            let value = TagValue::parse(&"v".repeat(32)).unwrap();
            (TagKey::parse(&format!("key-{n}")).unwrap(), value)
        };
        let tasks = (0..BATCH_ITEMS_MAX).map(|n| {
            let mut task = plain(&queue("mail"));
            task.payload = Payload::parse("payload", vec![b'1'; 280]).unwrap();
            task.key = Some(TaskKey::parse(&format!("{n:0>64}")).unwrap());
            task.tags = Tags::parse((0..TAGS_MAX / 10).map(tag).collect()).unwrap();
            task
        });
        let tasks = tasks.collect();
        Engine::new().measure(&Command::SubmitTasks(SubmitTasks { tasks }))
    };
    let many_tags = || {
        let tag =
            |n: usize| (TagKey::parse(&format!("{n}")).unwrap(), TagValue::parse("").unwrap());
        let mut task = plain(&queue("mail"));
        task.tags = Tags::parse((0..TAGS_MAX).map(tag).collect()).unwrap();
        // More would not fit into a record.
        let tasks = vec![task; 9_900];
        Engine::new().measure(&Command::SubmitTasks(SubmitTasks { tasks }))
    };
    let many_queues = || {
        let tasks = (0..BATCH_ITEMS_MAX).map(|n| plain(&queue(&long_name(n)))).collect();
        Engine::new().measure(&Command::SubmitTasks(SubmitTasks { tasks }))
    };
    let large = || {
        let mut task = plain(&queue("mail"));
        task.payload = Payload::parse("payload", vec![b'1'; PAYLOAD_BYTES_MAX]).unwrap();
        Engine::new().measure(&Command::SubmitTasks(SubmitTasks { tasks: vec![task; 7] }))
    };
    vec![
        ("SubmitTasks: 10,000 with keys and tags", median(many_keys)),
        ("SubmitTasks: 9,900 with 64 tags each", median(many_tags)),
        ("SubmitTasks: 10,000 in new queues with long names", median(many_queues)),
        ("SubmitTasks: 7 payloads of 1 MiB", median(large)),
    ]
}

fn leases() -> Vec<(&'static str, Cost)> {
    let grants = || {
        let mut engine = Engine::new();
        let queues: Vec<_> = (0..LEASE_QUEUES_MAX).map(|n| queue(&long_name(n))).collect();
        for queue in &queues {
            let mut late = plain(queue);
            late.total_timeout_ms = Some(SpanMs::parse("total_timeout_ms", 1_000).unwrap());
            engine.submit(&late, 100);
            engine.submit(&plain(queue), 20);
        }
        // The deadlines have passed, and their ends are not on record yet.
        engine.clock_ms += 2_000;
        engine.measure(&lease_tasks(queues, LEASE_TASKS_MAX as usize))
    };
    let expiries = || {
        let (engine, _) = held(DUE_ITEMS_MAX);
        let mut engine = engine;
        engine.clock_ms += 100_000;
        engine.measure(&Command::FireTimers)
    };
    let dropped = || {
        let (engine, leases) = held(DUE_ITEMS_MAX);
        engine.measure(&Command::DropLeases(leases))
    };
    let dropped_of_runs = || {
        let (engine, leases) = held_of_runs(DUE_ITEMS_MAX);
        engine.measure(&Command::DropLeases(leases))
    };
    vec![
        ("LeaseTasks: 1,000 of 100 queues, 10,000 past their deadline", median(grants)),
        ("FireTimers: 10,000 leases", median(expiries)),
        ("DropLeases: 10,000", median(dropped)),
        ("DropLeases: 10,000 tasks of runs, each the end of its run", median(dropped_of_runs)),
    ]
}

/// Tasks in a queue with a long name, leased.
fn held(count: usize) -> (Engine, Vec<LeaseRef>) {
    let mut engine = Engine::new();
    let queue = queue(&long_name(1));
    engine.submit(&plain(&queue), count);
    let leases = engine.lease(&queue, count);
    (engine, leases)
}

/// Tasks whose failure, or expiry, ends a run each.
fn held_of_runs(count: usize) -> (Engine, Vec<LeaseRef>) {
    let mut engine = Engine::new();
    engine.register(
        "workflow: w
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: q}}]
",
    );
    for _ in 0..count {
        engine.start("w", Value::empty_map());
    }
    let mut leases = Vec::new();
    // Nine of the ten expiries that a task may have.
    for _ in 0..10 {
        leases = engine.lease(&queue("q"), count);
        if leases.len() == count && engine.clock_ms >= 1_000_000_000_000 + 9 * 100_000 {
            break;
        }
        engine.clock_ms += 100_000;
        while engine.state.timers(Clock::Log).next().is_some() {
            engine.run(&Command::FireTimers);
        }
    }
    (engine, leases)
}

fn reports() -> Vec<(&'static str, Cost)> {
    let heartbeats = || {
        let (mut engine, leases) = held(BATCH_ITEMS_MAX);
        let heartbeats = leases.into_iter().map(Heartbeat::from).collect();
        engine.clock_ms += 1_000;
        engine.measure(&Command::ReportTasks(ReportTasks { heartbeats, ..ReportTasks::default() }))
    };
    let completes = || {
        let (engine, leases) = held(BATCH_ITEMS_MAX);
        let output = format!("\"{}\"", "x".repeat(700));
        let completes = leases.iter().map(|lease| done(*lease, &output)).collect();
        engine.measure(&Command::ReportTasks(ReportTasks { completes, ..ReportTasks::default() }))
    };
    let fails = || {
        let (engine, leases) = held(BATCH_ITEMS_MAX);
        let reason = Reason::keep_end(&"r".repeat(REASON_BYTES_MAX));
        let fail = |lease: &LeaseRef| FailTask {
            lease: *lease,
            reason: reason.clone(),
            code: None,
            retry: Retry::WithBackoff,
            checkpoint: None,
            worker: None,
        };
        let fails = leases.iter().take(1_800).map(fail).collect();
        engine.measure(&Command::ReportTasks(ReportTasks { fails, ..ReportTasks::default() }))
    };
    let in_a_wide_run = || {
        let mut engine = Engine::new();
        engine.register(&fan("q"));
        engine.start("w", list_of(100_000));
        let leases = engine.lease(&queue("q"), 1_000);
        let completes = leases.iter().map(|lease| done(*lease, "{\"n\":1}")).collect();
        engine.measure(&Command::ReportTasks(ReportTasks { completes, ..ReportTasks::default() }))
    };
    vec![
        ("ReportTasks: 10,000 heartbeats", median(heartbeats)),
        ("ReportTasks: 10,000 completions of 700 bytes", median(completes)),
        ("ReportTasks: 1,800 failures with long reasons", median(fails)),
        ("ReportTasks: 1,000 completions while a group is dispatched", median(in_a_wide_run)),
    ]
}

fn completions() -> Vec<(&'static str, Cost)> {
    let join = || {
        let mut engine = Engine::new();
        engine.wide(100_000, "q");
        let mut leases = engine.lease(&queue("q"), 100_000);
        let last = leases.pop().unwrap();
        engine.complete(&leases);
        engine.measure(&Command::CompleteTask(done(last, "{\"n\":1}")))
    };
    let one = |yaml: String, output: String| {
        let mut engine = Engine::new();
        engine.register(&yaml);
        engine.start("w", Value::empty_map());
        let lease = engine.lease(&queue("q"), 1)[0];
        engine.measure(&Command::CompleteTask(done(lease, &output)))
    };
    let numbers = |count: usize| {
        let mut text = String::from("{\"l\":[0");
        (1..count).for_each(|n| write!(text, ",{}", n % 10).unwrap());
        text + "]}"
    };
    let expression = || {
        let condition = "outputs.a.l.map(x, x * x + x * x + x).filter(x, x > 3).size() > 0";
        one(costly(condition, "{type: object}"), numbers(70_000))
    };
    let schema = || {
        let item = "{anyOf: [{type: string}, {maximum: -1}, {multipleOf: 7}, {minimum: 0}]}";
        let schema = format!("{{type: object, properties: {{l: {{items: {item}}}}}}}");
        one(costly("true", &schema), numbers(190_000))
    };
    vec![
        ("CompleteTask: the last of 100,000 branches, merged", median(join)),
        ("CompleteTask: a costly expression over its output", median(expression)),
        ("CompleteTask: a costly schema over its output", median(schema)),
    ]
}

fn single_tasks() -> Vec<(&'static str, Cost)> {
    let cancel = || {
        let (engine, leases) = held(1);
        let grace_ms = Some(SpanMs::parse("grace_ms", 1_000).unwrap());
        let task_id = leases[0].task_id;
        engine.measure(&Command::CancelTask(CancelTask { task_id, grace_ms }))
    };
    let retry = || {
        let mut engine = Engine::new();
        engine.submit(&plain(&queue(&long_name(1))), 1);
        engine.run(&Command::CancelTask(CancelTask { task_id: TaskId(1), grace_ms: None }));
        engine.measure(&Command::RetryTask(TaskId(1)))
    };
    let deadlines = || {
        let mut engine = Engine::new();
        let mut task = plain(&queue(&long_name(1)));
        task.total_timeout_ms = Some(SpanMs::parse("total_timeout_ms", 1_000).unwrap());
        engine.submit(&task, DUE_ITEMS_MAX);
        engine.clock_ms += 2_000;
        engine.measure(&Command::FireTimers)
    };
    // Each leaves a copy with everything that it has.
    let copied = || {
        let mut engine = Engine::new();
        let mut task = plain(&queue(&long_name(1)));
        task.total_timeout_ms = Some(SpanMs::parse("total_timeout_ms", 1_000).unwrap());
        let tag = |at| (TagKey::parse(&format!("{at}")).unwrap(), TagValue::parse("").unwrap());
        task.tags = Tags::parse((0..TAGS_MAX).map(tag).collect()).unwrap();
        engine.run(&Command::ConfigureQueue(ConfigureQueue {
            queue: task.queue.clone(),
            change: SettingsChange {
                dead_letter_queue: Setting::Set(queue(&long_name(2))),
                ..SettingsChange::default()
            },
        }));
        (0..10).for_each(|_| engine.submit(&task, DUE_ITEMS_MAX / 10));
        engine.clock_ms += 2_000;
        engine.measure(&Command::FireTimers)
    };
    let purge = || {
        let (mut engine, leases) = held(DUE_ITEMS_MAX);
        engine.complete(&leases);
        engine.clock_ms += 2_000;
        let retention = Retention { age_ms: 1_000, ..Retention::default() };
        engine.measure(&Command::PurgeTasks(retention))
    };
    vec![
        ("CancelTask: leased, with grace", median(cancel)),
        ("RetryTask", median(retry)),
        ("FireTimers: 10,000 deadlines", median(deadlines)),
        ("FireTimers: tasks of many tags that leave dead letters", median(copied)),
        ("PurgeTasks: 10,000", median(purge)),
    ]
}

fn queues() -> Vec<(&'static str, Cost)> {
    let filled = || {
        let mut engine = Engine::new();
        engine.submit(&plain(&queue("mail")), 1_000_000);
        engine
    };
    let pause = || filled().measure(&Command::PauseQueue(PauseQueue::open_ended(queue("mail"))));
    let resume = || {
        let mut engine = filled();
        engine.run(&Command::PauseQueue(PauseQueue::open_ended(queue("mail"))));
        engine.measure(&Command::ResumeQueue(queue("mail")))
    };
    let configure = || {
        let (mut engine, leases) = (Engine::new(), 100_000);
        engine.submit(&plain(&queue("mail")), leases);
        let leases = engine.lease(&queue("mail"), leases);
        engine.complete(&leases);
        let retention_ms = Setting::Set(SpanMs::parse("retention_ms", 1_000).unwrap());
        let command = ConfigureQueue {
            queue: queue("mail"),
            change: SettingsChange { retention_ms, ..SettingsChange::default() },
        };
        engine.measure(&Command::ConfigureQueue(command))
    };
    vec![
        ("PauseQueue: a million waiting", median(pause)),
        ("ResumeQueue: a million waiting", median(resume)),
        ("ConfigureQueue: 100,000 finished", median(configure)),
        ("SkipIds", median(|| Engine::new().measure(&Command::SkipIds(IdJump::Restore)))),
    ]
}

fn runs() -> Vec<(&'static str, Cost)> {
    let register = || {
        let mut yaml = String::from("workflow: w\ninitial_node: n0\nnodes:\n");
        for n in 0..1_000 {
            let mapping = format!("{{x: 'context.x + {n}', y: 'input.a[{n}] * 2'}}");
            writeln!(
                yaml,
                "  - {{ref: n{n}, kind: task, task: {{queue: q}}, input_mapping: {mapping}}}"
            )
            .unwrap();
        }
        yaml += "transitions:\n";
        for n in 0..4_000 {
            let (from, to) = (n % 999, n % 999 + 1);
            writeln!(
                yaml,
                "  - {{from: n{from}, to: n{to}, priority: {n}, condition: 'input.a[{n}] > 1'}}"
            )
            .unwrap();
        }
        let definition = Definition::compile(&tenure_flow::yaml::parse(&yaml).unwrap()).unwrap();
        let definition = Arc::new(definition);
        Engine::new().measure(&Command::RegisterWorkflow(RegisterWorkflow { definition }))
    };
    let open = || {
        let mut engine = Engine::new();
        engine.register(&fan("q"));
        engine.measure(&start("w", list_of(100_000)))
    };
    let dispatch = || {
        let mut engine = Engine::new();
        engine.register(&fan(&long_name(1)));
        let item = Value::text(&"x".repeat(400));
        let list = Value::list(vec![item; 2_000]);
        engine.start("w", Value::map(vec![("list".into(), list)]));
        engine.measure(&Command::ContinueDispatch)
    };
    let signal = || {
        let mut engine = Engine::new();
        engine.register(
            "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: signal, signal: {name: s}}
  - {ref: b, kind: pass}
transitions: [{from: a, to: b, condition: 'outputs.a.all(x, x >= 0)'}]
",
        );
        let run_id = engine.start("w", Value::empty_map());
        engine.measure(&Command::SignalRun(SignalRun {
            run_id,
            name: "s".into(),
            payload: Value::list((0..116_000).map(Value::Int).collect()),
            correlation: SignalText::parse("").unwrap(),
            signal_id: None,
        }))
    };
    vec![
        ("RegisterWorkflow: 1,000 nodes, 4,000 transitions", median(register)),
        ("StartRun: 100,000 branches", median(open)),
        ("ContinueDispatch: 1,000 branches of 400 bytes", median(dispatch)),
        ("SignalRun: 116,000 numbers", median(signal)),
    ]
}

fn ends() -> Vec<(&'static str, Cost)> {
    let whole = || {
        let mut engine = Engine::new();
        let run = engine.wide(END_ITEMS_MAX / 2 - 5, &long_name(1));
        engine.measure(&Command::CancelRun(run))
    };
    let first = || {
        let mut engine = Engine::new();
        let run = engine.wide(100_000, "q");
        engine.measure(&Command::CancelRun(run))
    };
    let next = || {
        let mut engine = Engine::new();
        let run = engine.wide(100_000, &long_name(1));
        engine.run(&Command::CancelRun(run));
        engine.measure(&Command::ContinueEnding { items_max: END_ITEMS_MAX })
    };
    let after_many = || {
        let mut engine = Engine::new();
        let run = engine.wide(100_000, "q");
        let leases = engine.lease(&queue("q"), 99_000);
        engine.complete(&leases);
        engine.run(&Command::CancelRun(run));
        engine.measure(&Command::ContinueEnding { items_max: END_ITEMS_MAX })
    };
    let children = || {
        let mut engine = Engine::new();
        engine.register(
            "workflow: leaf
initial_node: a
nodes: [{ref: a, kind: signal, signal: {name: s}}]
",
        );
        engine.register(
            "workflow: w
initial_node: a
nodes: [{ref: a, kind: pass}, {ref: b, kind: workflow, workflow: {name: leaf}}]
transitions: [{from: a, to: b, spawn_count: 50000}]
",
        );
        let run = engine.start("w", Value::empty_map());
        engine.dispatch();
        engine.run(&Command::CancelRun(run));
        engine.measure(&Command::ContinueEnding { items_max: END_ITEMS_MAX })
    };
    let park = || {
        let mut engine = Engine::new();
        let run_id = engine.wide(100_000, "q");
        engine.measure(&Command::ParkRun(ParkRun { run_id, reason: "r".repeat(200) }))
    };
    let unpark = || {
        let mut engine = Engine::new();
        let run_id = engine.wide(100_000, "q");
        engine.run(&Command::ParkRun(ParkRun { run_id, reason: "r".repeat(200) }));
        engine.measure(&Command::UnparkRun(run_id))
    };
    let purge = || {
        let mut engine = Engine::new();
        let run = engine.wide(100_000, "q");
        let leases = engine.lease(&queue("q"), 100_000);
        engine.complete(&leases);
        let as_of = engine.state.last_lsn();
        let archived = Archived { tasks: Vec::new(), runs: vec![run], as_of };
        engine.measure(&Command::PurgeArchived(archived))
    };
    vec![
        ("CancelRun: 2,000 items in one record", median(whole)),
        ("CancelRun: 100,000 branches, decided", median(first)),
        ("ContinueEnding: 2,000 of 200,000 items", median(next)),
        ("ContinueEnding: the live ones after 99,000 that ended", median(after_many)),
        ("ContinueEnding: 2,000 of 50,000 child runs", median(children)),
        ("ParkRun: 100,000 tasks", median(park)),
        ("UnparkRun: 100,000 tasks", median(unpark)),
        ("PurgeArchived: a run of 100,000 tasks", median(purge)),
    ]
}

fn median(case: impl Fn() -> Cost) -> Cost {
    let mut costs: Vec<_> = (0..ROUNDS).map(|_| case()).collect();
    costs.sort_by_key(|cost| cost.on_processor);
    costs[ROUNDS / 2]
}

fn main() {
    let filters: Vec<_> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    type Group = (&'static str, fn() -> Vec<(&'static str, Cost)>);
    let groups: [Group; 8] = [
        ("submits", submits),
        ("leases", leases),
        ("reports", reports),
        ("completions", completions),
        ("tasks", single_tasks),
        ("queues", queues),
        ("runs", runs),
        ("ends", ends),
    ];
    println!("{:<62} {:>9} {:>9} {:>10}", "costliest record", "bytes", "work", "CPU time");
    for (name, cases) in groups {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(filter.as_str())) {
            continue;
        }
        for (case, Cost { on_processor, bytes, work }) in cases() {
            let ms = on_processor.as_secs_f64() * 1e3;
            let mark = if on_processor > ALLOWED { "  over 25 ms" } else { "" };
            println!("{case:<62} {bytes:>9} {work:>9} {ms:>7.2} ms{mark}");
        }
    }
}

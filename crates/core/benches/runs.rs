//! The figures of workflows: lines, fan-outs with their fan-ins, and runs that wait. In process:
//! decide, encode, apply.
//!
//! `cargo bench -p tenure-core --bench runs`

#![allow(clippy::disallowed_methods, reason = "a bench looks at the clock")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::command::{
    Command, CompleteTask, LeaseRef, LeaseTasks, RegisterWorkflow, Reply, SignalRun, StartRun,
};
use tenure_core::event::Record;
use tenure_core::id::RunId;
use tenure_core::name::{QueueName, SignalText, WorkerName};
use tenure_core::terms::{Payload, Tags};
use tenure_core::time::{Now, Timestamp};
use tenure_core::{Draft, State, Verdict, apply, codec, decide};
use tenure_flow::{Definition, Value};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Engine {
    state: State,
    frame: Vec<u8>,
    /// The longest step so far.
    longest: Duration,
}

impl Engine {
    fn new() -> Self {
        Self { state: State::new(7), frame: Vec::new(), longest: Duration::ZERO }
    }

    fn run(&mut self, command: &Command) -> Reply {
        let started = Instant::now();
        let now = Now::both(Timestamp(1_000_000_000_000));
        let verdict = decide(&mut Draft::new(&self.state), command, now, 1);
        let reply = match verdict.unwrap() {
            Verdict::Append(event, reply) => {
                let record = Record { lsn: self.state.last_lsn().next(), at: now.log, event };
                self.frame.clear();
                codec::encode(&record, &mut self.frame);
                apply(&mut self.state, &record);
                reply
            }
            Verdict::Answer(reply) => reply,
        };
        self.longest = self.longest.max(started.elapsed());
        reply
    }

    fn register(&mut self, yaml: &str) {
        let definition = Definition::compile(&tenure_flow::yaml::parse(yaml).unwrap()).unwrap();
        let definition = Arc::new(definition);
        self.run(&Command::RegisterWorkflow(RegisterWorkflow { definition }));
    }

    fn start(&mut self, input: Value) -> RunId {
        let command = StartRun {
            workflow: "w".into(),
            version: None,
            input,
            key: None,
            tags: Tags::default(),
        };
        match self.run(&Command::StartRun(command)) {
            Reply::Started(started) => started.run_id,
            other => panic!("{other:?}"),
        }
    }

    fn lease(&mut self, max: u32) -> Vec<LeaseRef> {
        let command = LeaseTasks {
            worker: WorkerName::parse("anna").unwrap(),
            queues: vec![QueueName::parse("q").unwrap()],
            tasks_max: NonZeroU32::new(max).unwrap(),
            lease_ms: None,
        };
        match self.run(&Command::LeaseTasks(command)) {
            Reply::Leased(leases) => leases
                .iter()
                .map(|it| LeaseRef { task_id: it.task_id, lease_id: it.lease_id })
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    fn complete_all(&mut self) -> u64 {
        let output = Payload::parse("output", br#"{"n":1}"#.to_vec()).unwrap();
        let mut completed = 0;
        loop {
            while self.state.has_dispatch() {
                self.run(&Command::ContinueDispatch);
            }
            let leases = self.lease(1_000);
            if leases.is_empty() {
                return completed;
            }
            for lease in leases {
                self.run(&Command::CompleteTask(CompleteTask {
                    lease,
                    output: output.clone(),
                    artifacts: Vec::new(),
                }));
                completed += 1;
            }
        }
    }
}

const LINE: &str = "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: task, task: {queue: q}, input_mapping: {n: input.n}, output_mapping: {context.n: result.n}}
  - {ref: b, kind: task, task: {queue: q}, input_mapping: {n: context.n}}
  - {ref: c, kind: task, task: {queue: q}}
transitions:
  - {from: a, to: b, condition: context.n > 0}
  - {from: b, to: c}
output_mapping: {n: context.n}
";

const FAN: &str = "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}, input_mapping: {x: x}}
  - {ref: c, kind: pass}
transitions:
  - {ref: t, from: a, to: b, foreach: {collection: input.list, item_var: x}}
  - {from: b, to: c, synchronization: {joins_transition: t, merge: [{source: branch.output.n, target: context.r, strategy: append}]}}
";

const WAIT: &str = "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: signal, signal: {name: s, correlation: input.n}, timeout_ms: 1000000}
";

fn input(n: i64) -> Value {
    Value::map(vec![("n".into(), Value::Int(n))])
}

fn lines() {
    const RUNS: u32 = 20_000;
    let mut engine = Engine::new();
    engine.register(LINE);
    let started = Instant::now();
    for n in 1..=RUNS {
        engine.start(input(n.into()));
    }
    let completed = engine.complete_all();
    let took = started.elapsed();
    assert_eq!(completed, u64::from(RUNS) * 3);
    println!("runs of 3 tasks in a line   {:>10.0} runs/s", f64::from(RUNS) / took.as_secs_f64());
}

fn fans() {
    for branches in [1_000_u32, 10_000, 100_000] {
        let mut engine = Engine::new();
        engine.register(FAN);
        let list = Value::list((0..branches).map(|n| Value::Int(n.into())).collect());
        engine.longest = Duration::ZERO;
        let started = Instant::now();
        let run = engine.start(Value::map(vec![("list".into(), list)]));
        let opened = engine.longest;
        engine.complete_all();
        let took = started.elapsed();
        assert_eq!(engine.state.run(run).unwrap().state(), "COMPLETED");
        println!(
            "fan-out of {branches:>7}          {:>10.1} ms, {:.2} µs a branch, opening {:.1} ms, longest step {:.1} ms",
            took.as_secs_f64() * 1e3,
            took.as_secs_f64() * 1e6 / f64::from(branches),
            opened.as_secs_f64() * 1e3,
            engine.longest.as_secs_f64() * 1e3
        );
    }
}

fn waiting() {
    const RUNS: u32 = 100_000;
    let mut engine = Engine::new();
    engine.register(WAIT);
    let before = resident_bytes();
    let first = engine.start(input(0));
    for n in 1..RUNS {
        engine.start(input(n.into()));
    }
    let bytes = resident_bytes().saturating_sub(before) / u64::from(RUNS);
    let started = Instant::now();
    for n in 0..1_000 {
        engine.run(&Command::SignalRun(SignalRun {
            run_id: RunId(first.0 + n),
            name: "s".into(),
            payload: Value::Null,
            correlation: SignalText::parse(&n.to_string()).unwrap(),
            signal_id: None,
        }));
    }
    let wake = started.elapsed().as_secs_f64() * 1e6 / 1e3;
    println!("runs that wait for a signal {bytes:>10} bytes each; waking one {wake:.2} µs");
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
    pages.unwrap_or_default() * 4_096
}

fn main() {
    lines();
    fans();
    waiting();
}

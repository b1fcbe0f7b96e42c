//! The figures of workflows: lines, fan-outs with their fan-ins, and runs that wait. In process:
//! decide, encode, apply. `cargo xtask bench runs` runs them; `--instructions` counts instead of
//! timing.
//!
//! Times are those on the processor: what others do on the machine does not count. The one step
//! that opens a fan-out and the one that fires it are the shortest of several rounds.

#![allow(clippy::disallowed_methods, reason = "a bench looks at the clock")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::command::{
    Command, CompleteTask, LeaseRef, LeaseTasks, RegisterWorkflow, Reply, SignalRun, StartRun,
};
use tenure_core::{Draft, State, Verdict, apply_decided, decide};
use tenure_flow::Definition;
use tenure_record::codec;
use tenure_record::event::Record;
use tenure_record::id::RunId;
use tenure_record::name::{QueueName, SignalText, WorkerName};
use tenure_record::terms::{Payload, Tags};
use tenure_record::time::{Now, Timestamp};
use tenure_value::Value;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;

struct Engine {
    state: State,
    frame: Vec<u8>,
    records: u64,
    /// Bytes of all records so far.
    bytes: usize,
    /// Bytes of the longest record so far.
    longest_record: usize,
}

impl Engine {
    fn new() -> Self {
        Self { state: State::new(7), frame: Vec::new(), records: 0, bytes: 0, longest_record: 0 }
    }

    fn run(&mut self, command: &Command) -> Reply {
        let now = Now::both(Timestamp(1_000_000_000_000));
        let (verdict, precomputed);
        {
            let mut draft = Draft::new(&self.state);
            verdict = decide(&mut draft, command, now, 1);
            precomputed = draft.take_precomputed();
        }
        match verdict.unwrap() {
            Verdict::Append(event, reply) => {
                let record = Record {
                    lsn: self.state.last_lsn().next(),
                    at: now.log,
                    wall: now.wall,
                    event,
                };
                self.frame.clear();
                codec::encode(&record, &mut self.frame);
                apply_decided(&mut self.state, &record, &precomputed);
                self.records += 1;
                self.bytes += self.frame.len();
                self.longest_record = self.longest_record.max(self.frame.len());
                reply
            }
            Verdict::Answer(reply) => reply,
        }
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

    /// Works until that many tasks are done, and says how long the steps took that are not short.
    fn complete_all(&mut self, tasks: u64) -> Steps {
        let output = Payload::parse("output", br#"{"n":1}"#.to_vec()).unwrap();
        let (mut completed, mut steps) = (0, Steps::default());
        loop {
            while self.state.has_dispatch() {
                steps.chunks.push(timed(|| drop(self.run(&Command::ContinueDispatch))));
            }
            if completed == tasks {
                return steps;
            }
            for lease in self.lease(1_000) {
                let command = CompleteTask {
                    lease,
                    output: output.clone(),
                    artifacts: Vec::new(),
                    worker: None,
                };
                let command = Command::CompleteTask(command);
                completed += 1;
                match completed == tasks {
                    true => steps.last = timed(|| drop(self.run(&command))),
                    false => drop(self.run(&command)),
                }
            }
        }
    }
}

#[derive(Default)]
struct Steps {
    chunks: Vec<Duration>,
    /// The last completion, which fires the join.
    last: Duration,
}

fn timed(deed: impl FnOnce()) -> Duration {
    let started = on_processor();
    deed();
    on_processor() - started
}

/// How long this thread has been on a processor.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split_whitespace().next().and_then(|text| text.parse().ok());
    Duration::from_nanos(ns.unwrap_or_default())
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
    let took = (0..ROUNDS).map(|_| {
        let mut engine = Engine::new();
        engine.register(LINE);
        let started = on_processor();
        measured_run_of_three(&mut engine, RUNS);
        on_processor() - started
    });
    let took = took.min().unwrap();
    println!("runs of 3 tasks in a line   {:>10.0} runs/s", f64::from(RUNS) / took.as_secs_f64());
}

#[inline(never)]
fn measured_run_of_three(engine: &mut Engine, runs: u32) {
    for n in 1..=runs {
        engine.start(input(n.into()));
    }
    engine.complete_all(u64::from(runs) * 3);
    assert!(engine.lease(1).is_empty());
}

fn fan(branches: u32) -> (Engine, Value) {
    let mut engine = Engine::new();
    engine.register(FAN);
    let list = Value::list((0..branches).map(|n| Value::Int(n.into())).collect());
    (engine, Value::map(vec![("list".into(), list)]))
}

#[inline(never)]
fn measured_fan_out(engine: &mut Engine, branches: u32, input: Value) -> (Duration, Steps) {
    let mut run = RunId::NONE;
    let opened = timed(|| run = engine.start(input));
    let steps = engine.complete_all(branches.into());
    assert_eq!(engine.state.run(run).unwrap().state(), "COMPLETED");
    (opened, steps)
}

fn fans() {
    for branches in [1_000_u32, 10_000, 100_000] {
        let (mut took, mut opened, mut fired) = (Duration::MAX, Duration::MAX, Duration::MAX);
        let (mut chunk, mut bytes) = (Duration::MAX, 0);
        for _ in 0..ROUNDS {
            let (mut engine, input) = fan(branches);
            let started = on_processor();
            let (opening, mut steps) = measured_fan_out(&mut engine, branches, input);
            took = took.min(on_processor() - started);
            (opened, fired) = (opened.min(opening), fired.min(steps.last));
            steps.chunks.sort_unstable();
            chunk =
                chunk.min(steps.chunks.get(steps.chunks.len() / 2).copied().unwrap_or_default());
            bytes = engine.longest_record;
        }
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        println!(
            "fan-out of {branches:>7}          {:>10.1} ms, {:.2} µs a branch; opening {:.1} ms, \
             a chunk {:.1} ms, firing {:.1} ms ({:.0} ns a branch); longest record {bytes} bytes",
            ms(took),
            took.as_secs_f64() * 1e6 / f64::from(branches),
            ms(opened),
            ms(chunk),
            ms(fired),
            fired.as_secs_f64() * 1e9 / f64::from(branches),
        );
    }
}

fn waiting() {
    // The most first: later ones would find memory that these have left.
    for runs in [100_000_u32, 10_000, 1_000] {
        let mut engine = Engine::new();
        engine.register(WAIT);
        let before = resident_bytes();
        let first = engine.start(input(0));
        for n in 1..runs {
            engine.start(input(n.into()));
        }
        let bytes = resident_bytes().saturating_sub(before) / u64::from(runs);
        let wakes: Vec<_> = (0..1_000).map(|n| wake(first, n)).collect();
        let started = on_processor();
        wakes.iter().for_each(|command| drop(engine.run(command)));
        let wake = (on_processor() - started).as_secs_f64() * 1e6 / 1e3;
        match runs {
            100_000 => println!(
                "{runs:>7} runs that wait      {bytes:>10} bytes each; waking one {wake:.2} µs"
            ),
            _ => println!("{runs:>7} runs that wait      waking one {wake:.2} µs"),
        }
    }
}

fn wake(first: RunId, nth: u64) -> Command {
    Command::SignalRun(SignalRun {
        run_id: RunId(first.0 + nth),
        name: "s".into(),
        payload: Value::Null,
        correlation: SignalText::parse(&nth.to_string()).unwrap(),
        signal_id: None,
    })
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
    pages.unwrap_or_default() * 4_096
}

fn count_instructions(case: &str) {
    let engine = match case {
        "run_of_three" => {
            let mut engine = Engine::new();
            engine.register(LINE);
            measured_run_of_three(&mut engine, 2_000);
            engine
        }
        "fan_out" => {
            let (mut engine, input) = fan(10_000);
            drop(measured_fan_out(&mut engine, 10_000, input));
            engine
        }
        other => panic!("there is no case {other:?}"),
    };
    println!("events {}", engine.records);
}

/// What a run of three tasks takes in the log: a size that the guard watches.
fn count_bytes() {
    let (runs, mut engine) = (1_000, Engine::new());
    engine.register(LINE);
    let registered = engine.bytes;
    measured_run_of_three(&mut engine, runs);
    println!("bytes_per_run {:.2}", (engine.bytes - registered) as f64 / f64::from(runs));
}

fn in_own_process(case: &str) {
    let program = std::env::current_exe().unwrap();
    let ended = std::process::Command::new(program).arg(case).status();
    assert!(ended.is_ok_and(|status| status.success()), "the case {case:?} did not end well");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, case] = arguments.as_slice()
        && flag == "--instructions"
    {
        return count_instructions(case);
    }
    if arguments == ["--bytes"] {
        return count_bytes();
    }
    let filters: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let cases: [(&str, fn()); 3] = [("lines", lines), ("fans", fans), ("waiting", waiting)];
    let is_wanted = |name: &str| {
        filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
    };
    let wanted: Vec<_> = cases.iter().filter(|(name, _)| is_wanted(name)).collect();
    match wanted.as_slice() {
        [(_, case)] => case(),
        // Each in a process of its own: what one leaves in the allocator must not help the next.
        several => several.iter().for_each(|(name, _)| in_own_process(name)),
    }
}

//! The figures that the rules are held to, measured: medians of several rounds, with the
//! allocator that ships. `cargo xtask bench` runs them; `--instructions` counts instead of timing.
#![allow(clippy::disallowed_methods, reason = "a benchmark looks at the clock and at /proc")]

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use tenure_core::command::{
    CancelTask, Command, CompleteTask, LeaseRef, LeaseTasks, NewTask, Reply, ReportTasks, Rest,
    Retention, SubmitTasks,
};
use tenure_core::state::snapshot::{Decoder, Encoder};
use tenure_core::{Draft, State, Verdict, apply, apply_decided, decide, invariant};
use tenure_record::codec;
use tenure_record::event::Record;
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::name::{QueueName, WorkerName};
use tenure_record::terms::{LeaseMs, Payload};
use tenure_record::time::{Now, Timestamp};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PAYLOAD_BYTES: usize = 100;
const MANY: u64 = 10_000_000;
const ROUNDS: usize = 5;
/// A frame is written and begun anew at about this size.
const FRAME_BYTES: usize = 256 << 10;

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
    let wanted =
        |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(*filter));
    let chosen: Vec<_> = CASES.iter().filter(|(name, _)| wanted(name)).collect();
    match chosen.as_slice() {
        [(_, case)] => {
            warm_memory();
            case();
        }
        // Each in a process of its own: what one leaves in the allocator must not help the next.
        several => {
            println!("mimalloc, payload {PAYLOAD_BYTES} bytes, medians of {ROUNDS} rounds");
            several.iter().for_each(|(name, _)| in_own_process(name));
        }
    }
}

type Case = (&'static str, fn());

const CASES: [Case; 5] = [
    ("lifecycle", lifecycles),
    ("replay", replay),
    ("expiry", expiry),
    ("many", many),
    ("snapshot", snapshot),
];

fn in_own_process(case: &str) {
    let program = std::env::current_exe().expect("a program knows its own path");
    let ended = std::process::Command::new(program).arg(case).status();
    assert!(ended.is_ok_and(|status| status.success()), "the case {case:?} did not end well");
}

/// Touches as much memory as the largest case needs and gives it back. A virtual machine gets
/// its memory from the host on first touch, which takes longer than everything measured here.
fn warm_memory() {
    let mut memory: Vec<u8> = Vec::with_capacity(4 << 30);
    memory.resize(memory.capacity(), 1);
    std::hint::black_box(&memory);
}

/// The engine as the coordinator drives it, less disk and callers.
struct Engine {
    state: State,
    frame: Vec<u8>,
    /// The whole log, where a case wants it: the end of each record in `frame`.
    ends: Option<Vec<usize>>,
    clock_ms: u64,
    records: u64,
}

impl Engine {
    fn new() -> Self {
        let frame = Vec::with_capacity(2 * FRAME_BYTES);
        Self { state: State::new(7), frame, ends: None, clock_ms: 1_000_000_000_000, records: 0 }
    }

    fn run(&mut self, command: &Command) -> Reply {
        let now = Now::both(Timestamp(self.clock_ms));
        let (verdict, precomputed);
        {
            let mut draft = Draft::new(&self.state);
            verdict = decide(&mut draft, command, now, 1);
            precomputed = draft.take_precomputed();
        }
        match verdict.expect("the bench asks for nothing that is refused") {
            Verdict::Append(event, reply) => {
                let record = Record {
                    lsn: self.state.last_lsn().next(),
                    at: now.log,
                    wall: now.wall,
                    event,
                };
                if self.ends.is_none() && self.frame.len() >= FRAME_BYTES {
                    self.frame.clear();
                }
                codec::encode(&record, &mut self.frame);
                if let Some(ends) = &mut self.ends {
                    ends.push(self.frame.len());
                }
                apply_decided(&mut self.state, &record, &precomputed);
                self.records += 1;
                reply
            }
            Verdict::Answer(reply) => reply,
        }
    }

    fn submit(&mut self, command: &Command) {
        self.run(command);
    }

    fn lease(&mut self, command: &Command) -> Vec<LeaseRef> {
        let Reply::Leased(leases) = self.run(command) else {
            unreachable!("a lease is answered so")
        };
        let lease = |l: &tenure_core::command::Leased| LeaseRef {
            task_id: l.task_id,
            lease_id: l.lease_id,
        };
        leases.iter().map(lease).collect()
    }
}

struct Commands {
    submit: Command,
    submit_many: Command,
    lease: Command,
    lease_many: Command,
    complete: Command,
}

impl Commands {
    fn new(batch: usize) -> Self {
        let queue = QueueName::parse("mail").expect("a name");
        let worker = WorkerName::parse("worker-1").expect("a name");
        let payload = Payload::parse("payload", vec![b'x'; PAYLOAD_BYTES]).expect("it is small");
        let task = NewTask::new(queue.clone(), payload);
        let submit = |count| Command::SubmitTasks(SubmitTasks { tasks: vec![task.clone(); count] });
        let lease = |count: usize| {
            Command::LeaseTasks(LeaseTasks {
                worker: worker.clone(),
                queues: vec![queue.clone()],
                tasks_max: NonZeroU32::new(count as u32).expect("more than none"),
                lease_ms: Some(LeaseMs::default()),
            })
        };
        let nobody = LeaseRef { task_id: TaskId(0), lease_id: LeaseId(0) };
        let complete = Command::CompleteTask(CompleteTask {
            lease: nobody,
            output: output(),
            artifacts: Vec::new(),
            worker: None,
        });
        Self {
            submit: submit(1),
            submit_many: submit(batch),
            lease: lease(1),
            lease_many: lease(batch),
            complete,
        }
    }

    fn complete(&mut self, lease: LeaseRef) -> &Command {
        if let Command::CompleteTask(complete) = &mut self.complete {
            complete.lease = lease;
        }
        &self.complete
    }

    fn complete_many(leases: &[LeaseRef]) -> Command {
        let complete = |lease: &LeaseRef| CompleteTask {
            lease: *lease,
            output: output(),
            artifacts: Vec::new(),
            worker: None,
        };
        let completes = leases.iter().map(complete).collect();
        Command::ReportTasks(ReportTasks { completes, ..ReportTasks::default() })
    }
}

fn output() -> Payload {
    Payload::parse("output", b"null".to_vec()).expect("it is small")
}

#[inline(never)]
fn measured_submit_lease_complete(engine: &mut Engine, commands: &mut Commands, count: u64) {
    for _ in 0..count {
        engine.submit(&commands.submit);
        for lease in engine.lease(&commands.lease) {
            engine.run(commands.complete(lease));
        }
    }
}

fn in_batches(engine: &mut Engine, commands: &Commands, batches: u64) {
    for _ in 0..batches {
        engine.submit(&commands.submit_many);
        let leases = engine.lease(&commands.lease_many);
        engine.run(&Commands::complete_many(&leases));
    }
}

fn lifecycles() {
    let count = 300_000;
    let mut commands = Commands::new(100);
    let single = median(|| {
        let mut engine = Engine::new();
        time(|| measured_submit_lease_complete(&mut engine, &mut commands, count))
    });
    report("lifecycle: submit, lease, complete, one by one", rate(3 * count, single), "events/s");
    let batched = median(|| {
        let mut engine = Engine::new();
        time(|| in_batches(&mut engine, &commands, count / 100))
    });
    report("lifecycle: the same in batches of 100", rate(3 * count, batched), "item events/s");
}

/// A log of `count` lifecycles, and where its records end.
fn log_of(count: u64) -> (Vec<u8>, Vec<usize>) {
    let mut engine = Engine { ends: Some(Vec::new()), ..Engine::new() };
    measured_submit_lease_complete(&mut engine, &mut Commands::new(1), count);
    (engine.frame, engine.ends.expect("they were asked for"))
}

#[inline(never)]
fn measured_replay(log: &[u8], ends: &[usize]) -> State {
    let mut state = State::replaying(7);
    let mut from = 0;
    for &end in ends {
        let record = codec::decode(&log[from..end]).expect("it was encoded so");
        apply(&mut state, &record);
        from = end;
    }
    state
}

fn replay() {
    let (log, ends) = log_of(1_000_000);
    let mut serve = Vec::new();
    let took = median(|| {
        let mut state = None;
        let took = time(|| state = Some(measured_replay(&log, &ends)));
        serve.push(time(|| {
            if let Some(state) = &mut state {
                state.serve(Now::default());
            }
        }));
        took
    });
    report("replay: decode and apply", rate(ends.len() as u64, took), "records/s");
    serve.sort();
    report("replay: indexes of 1 million finished tasks", ms(serve[serve.len() / 2]), "ms");
}

fn expiry() {
    let commands = Commands::new(1_000);
    let mut engine = Engine::new();
    for _ in 0..100 {
        engine.submit(&commands.submit_many);
        engine.lease(&commands.lease_many);
    }
    engine.clock_ms += 60_000;
    let mut longest = Duration::ZERO;
    let mut records = 0;
    loop {
        let before = engine.records;
        longest = longest.max(time(|| drop(engine.run(&Command::FireTimers))));
        if engine.records == before {
            break;
        }
        records += 1;
    }
    report("expiry: 100,000 leases due at once, records", f64::from(records), "");
    report("expiry: the longest of them", ms(longest), "ms");
}

/// Everything that wants ten million tasks.
fn many() {
    let mut commands = Commands::new(10_000);
    let mut engine = Engine::new();
    let empty = resident_bytes();
    for _ in 0..MANY / 10_000 {
        engine.submit(&commands.submit_many);
    }
    let each = |bytes: u64| (bytes - empty) as f64 / MANY as f64;
    report("many: a waiting task in memory, payload included", each(resident_bytes()), "bytes");

    let count = 300_000;
    let took =
        median(|| time(|| measured_submit_lease_complete(&mut engine, &mut commands, count)));
    report(
        "many: submit, lease, complete with 10 million waiting",
        rate(3 * count, took),
        "events/s",
    );

    let mut views = Vec::new();
    let took = median(|| time(|| views.push(engine.state.facts().clone())));
    report("many: cloning the view", ms(took), "ms");
    let longest =
        (0..10_000).map(|_| time(|| measured_submit_lease_complete(&mut engine, &mut commands, 1)));
    let longest = longest.max().unwrap_or_default();
    report("many: the longest lifecycle right after it", ms(longest), "ms");
    let mut hash = None;
    let took = time(|| hash = views.pop().map(|view| view.hash()));
    report("many: hashing the view, off the writer", took.as_secs_f64(), "s");
    drop(views);

    let commands = Commands::new(1_000);
    let took = time(|| {
        loop {
            let leases = engine.lease(&commands.lease_many);
            if leases.is_empty() {
                break;
            }
            engine.run(&Commands::complete_many(&leases));
        }
    });
    let finished = engine.state.facts().task_count();
    report(
        "many: leasing and completing them all by the thousand",
        rate(2 * MANY, took),
        "item events/s",
    );
    let bytes = (resident_bytes() - empty) as f64 / finished as f64;
    report("many: a finished task in memory, output null", bytes, "bytes");

    engine.clock_ms += 1_000;
    let forget = Command::PurgeTasks(Retention { age_ms: 0, tasks_max: 0, ..Retention::default() });
    let mut purges = Vec::new();
    while engine.state.facts().task_count() > 0 {
        purges.push(time(|| drop(engine.run(&forget))));
    }
    purges.sort();
    report("many: purging 10,000, median", ms(purges[purges.len() / 2]), "ms");
    report("many: purging 10,000, longest", ms(purges[purges.len() - 1]), "ms");
    // The allocator gives memory back a while after it was freed.
    std::thread::sleep(Duration::from_secs(3));
    in_batches(&mut engine, &commands, 1);
    report(
        "many: memory kept after the purge",
        resident_bytes().saturating_sub(empty) as f64 / 1e6,
        "MB",
    );
}

/// Ten million waiting tasks: what a snapshot of them costs its thread, what it costs the writer,
/// and what a start makes of it.
fn snapshot() {
    let commands = Commands::new(10_000);
    let mut engine = Engine::new();
    for _ in 0..MANY / 10_000 {
        engine.submit(&commands.submit_many);
    }
    let mut view = None;
    let took = median(|| time(|| view = Some(engine.state.facts().clone())));
    report("snapshot: cloning the view", ms(took), "ms");

    // One task in ten thousand: each is in a page that the view shares.
    let cancels = (1..MANY).step_by(10_000).map(|id| {
        let cancel = CancelTask { task_id: TaskId(id), grace_ms: None };
        time(|| drop(engine.run(&Command::CancelTask(cancel))))
    });
    let mut cancels: Vec<_> = cancels.collect();
    cancels.sort();
    let (median_one, longest) = (cancels[cancels.len() / 2], cancels[cancels.len() - 1]);
    report("snapshot: a write to a shared page, median", ms(median_one), "ms");
    report("snapshot: a write to a shared page, longest", ms(longest), "ms");

    let mut encoder = Encoder::new(view.take().expect("it was taken"));
    let (mut bytes, mut block) = (Vec::with_capacity(2 << 30), Vec::new());
    let took = time(|| {
        loop {
            block.clear();
            let rest = encoder.next_block(&mut block).expect("all is in memory");
            bytes.extend_from_slice(&block);
            if rest == Rest::Nothing {
                break;
            }
        }
    });
    report("snapshot: encoding", rate(MANY, took), "tasks/s");
    report("snapshot: a task in it, payload included", bytes.len() as f64 / MANY as f64, "bytes");
    let mut hash = None;
    let took = time(|| hash = Some(encoder.facts().hash()));
    report("snapshot: hashing", took.as_secs_f64(), "s");
    report("snapshot: dropping the view", ms(time(|| drop(encoder))), "ms");
    drop(engine);

    let mut state = None;
    let took = time(|| {
        let mut decoder = Decoder::new(1);
        bytes.chunks(1 << 20).for_each(|piece| decoder.feed(piece).expect("it is sound"));
        state = Some(decoder.finish().expect("it is whole"));
    });
    report("snapshot: decoding", rate(MANY, took), "tasks/s");
    let mut state = state.expect("it was read");
    assert_eq!(Some(state.facts().hash()), hash, "it gives the same state");
    let took = time(|| invariant::check_facts(state.facts()).expect("it keeps the laws"));
    report("snapshot: checking the laws", took.as_secs_f64(), "s");
    let took = time(|| state.serve(Now::both(Timestamp(1_000_000_000_000))));
    report("snapshot: building the indexes", took.as_secs_f64(), "s");
}

fn count_instructions(case: &str) {
    let count = 20_000;
    match case {
        "submit_lease_complete" => {
            let (mut engine, mut commands) = (Engine::new(), Commands::new(1));
            measured_submit_lease_complete(&mut engine, &mut commands, count);
            println!("events {}", engine.records);
        }
        "replay" => {
            let (log, ends) = log_of(count);
            let state = measured_replay(&log, &ends);
            println!("events {}", state.last_lsn());
        }
        other => {
            eprintln!("there is no case {other:?}; try submit_lease_complete or replay");
            std::process::exit(2);
        }
    }
}

/// What a lifecycle takes in the log and a waiting task in memory: the sizes that the guard watches.
fn count_bytes() {
    let count = 1_000;
    let (log, _) = log_of(count);
    println!("bytes_per_lifecycle {:.2}", log.len() as f64 / count as f64);
    let waiting = 1_000_000;
    let (commands, mut engine) = (Commands::new(10_000), Engine::new());
    let empty = resident_bytes();
    for _ in 0..waiting / 10_000 {
        engine.submit(&commands.submit_many);
    }
    let held = resident_bytes() - empty;
    println!("bytes_per_waiting_task {:.2}", held as f64 / f64::from(waiting));
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut round: impl FnMut() -> Duration) -> Duration {
    let mut rounds: Vec<_> = (0..ROUNDS).map(|_| round()).collect();
    rounds.sort();
    rounds[ROUNDS / 2]
}

fn rate(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

fn report(what: &str, value: f64, unit: &str) {
    let value = if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.2}") };
    println!("{what:<60} {value:>12} {unit}");
}

/// What the process holds in memory, by the kernel's count.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages: u64 =
        statm.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("its second number");
    pages * 4096
}

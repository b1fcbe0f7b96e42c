//! The state in a snapshot: its blocks are changed, or are any bytes at all. They are refused, or
//! make a state that can be asked; one that keeps the laws is written and read again as the same.

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

use tenure_core::command::{
    Command, CompleteTask, LeaseRef, LeaseTasks, RegisterWorkflow, Reply, Rest, SignalRun, StartRun,
};
use tenure_core::state::Facts;
use tenure_core::state::snapshot::{Decoder, Encoder};
use tenure_core::{Draft, State, Verdict, apply, decide, invariant};
use tenure_flow::{Definition, yaml};
use tenure_record::artifact::{Artifact, ArtifactName, MediaType, Sha256};
use tenure_record::event::Record;
use tenure_record::id::RunId;
use tenure_record::name::{QueueName, SignalText, WorkerName};
use tenure_record::terms::{Payload, Tags};
use tenure_record::time::{Now, Timestamp};
use tenure_value::Value;

use crate::input::Input;

/// Changes that one input may ask for.
const CHANGES_MAX: usize = 16;
/// When everything happens.
fn now() -> Now {
    Now::both(Timestamp(1_700_000_000_000))
}

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input(bytes);
    let stream = match input.byte() {
        0 => input.0.to_vec(),
        _ => changed(sound(), &mut input),
    };
    let mut decoder = Decoder::new(7);
    let Ok(state) = decoder.feed(&stream).and_then(|()| decoder.finish()) else {
        assert!(stream != sound(), "a sound snapshot is refused");
        return;
    };
    let hash = state.facts().hash();
    if invariant::check_facts(state.facts()).is_err() {
        return;
    }
    let mut again = Decoder::new(8);
    let read = again.feed(&written(state.facts())).and_then(|()| again.finish());
    let read = read.expect("what was written can be read");
    assert_eq!(read.facts().hash(), hash, "it reads back as something else");
    let mut state = state;
    state.serve(now());
}

fn changed(sound: &[u8], input: &mut Input<'_>) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    for _ in 0..CHANGES_MAX {
        if input.is_empty() || bytes.is_empty() {
            break;
        }
        let kind = input.byte();
        let at = input.pick(bytes.len());
        match kind % 5 {
            0 => bytes[at] = input.byte(),
            1 => bytes[at] ^= 1 << (input.byte() % 8),
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, input.byte()),
            _ => {
                let count = input.pick(40);
                let end = bytes.len().min(at + count);
                let piece = bytes[at..end].to_vec();
                let to = input.pick(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
    bytes
}

const WORKFLOW: &str = "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}}
  - {ref: c, kind: signal, signal: {name: s}, timeout_ms: 1000}
  - {ref: d, kind: timer, timer: {delay_ms: 100}}
  - {ref: e, kind: pass}
transitions:
  - {ref: t, from: a, to: b, foreach: {collection: input.list, item_var: x, key: x, max_concurrency: 3}}
  - {from: a, to: c}
  - {from: a, to: d}
  - {from: b, to: e, synchronization: {joins_transition: t, merge: [{target: context.r, strategy: append}]}}
output_mapping: {all: outputs.b._branches}
";

/// Workflows, runs that are live, waiting and over, tasks that are theirs and one that is not.
fn sound() -> &'static [u8] {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut state = State::new(0);
        let parsed = yaml::parse(WORKFLOW).expect("it is YAML");
        let definition = Arc::new(Definition::compile(&parsed).expect("it is a workflow"));
        play(&mut state, &Command::RegisterWorkflow(RegisterWorkflow { definition }));
        for list in ["[\"k\",\"l\",\"m\",\"n\"]", "[\"k\"]"] {
            start(&mut state, &format!("{{\"list\":{list}}}"));
        }
        let leases = leases(&mut state);
        for lease in leases.into_iter().skip(1) {
            let output = Payload::parse("output", b"{\"n\":1}".to_vec()).expect("it is short");
            play(
                &mut state,
                &Command::CompleteTask(CompleteTask {
                    lease,
                    output,
                    artifacts: vec![artifact()],
                    worker: None,
                }),
            );
        }
        for name in ["s", "s"] {
            let signal = SignalRun {
                run_id: RunId(1),
                name: name.into(),
                payload: Value::text(name),
                correlation: SignalText::parse("").expect("it is short"),
                signal_id: Some(SignalText::parse("1").expect("it is short")),
            };
            play(&mut state, &Command::SignalRun(signal));
        }
        play(&mut state, &Command::CancelRun(RunId(2)));
        written(state.facts())
    })
}

fn artifact() -> Artifact {
    Artifact {
        name: ArtifactName::parse("out/report.txt").expect("it is a name"),
        media_type: MediaType::default(),
        bytes: 7,
        sha256: Sha256([7; 32]),
    }
}

fn start(state: &mut State, input: &str) {
    let command = StartRun {
        workflow: "w".into(),
        version: None,
        input: Value::from_json(input.as_bytes()).expect("it is JSON"),
        key: None,
        tags: Tags::default(),
    };
    play(state, &Command::StartRun(command));
}

fn leases(state: &mut State) -> Vec<LeaseRef> {
    let command = LeaseTasks {
        worker: WorkerName::parse("anna").expect("it is a name"),
        queues: vec![QueueName::parse("q").expect("it is a name")],
        tasks_max: NonZeroU32::new(3).expect("it is more than none"),
        lease_ms: None,
    };
    let Some(Reply::Leased(leases)) = play(state, &Command::LeaseTasks(command)) else {
        return Vec::new();
    };
    leases.iter().map(|it| LeaseRef { task_id: it.task_id, lease_id: it.lease_id }).collect()
}

fn play(state: &mut State, command: &Command) -> Option<Reply> {
    let before = state.clone();
    let verdict = decide(&mut Draft::new(&before), command, now(), 7).ok()?;
    match verdict {
        Verdict::Append(event, reply) => {
            let record =
                Record { lsn: before.last_lsn().next(), at: now().log, wall: now().wall, event };
            apply(state, &record);
            Some(reply)
        }
        Verdict::Answer(reply) => Some(reply),
    }
}

fn written(facts: &Facts) -> Vec<u8> {
    let mut encoder = Encoder::new(facts.clone());
    let mut bytes = Vec::new();
    while encoder.next_block(&mut bytes).expect("all is in memory") == Rest::More {}
    bytes
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![vec![1], vec![0], vec![0, 1, 1, 2, 10, 0]];
    for kind in 0..5 {
        for at in 0..40_u16 {
            let [low, high] = (at * 53).to_le_bytes();
            seeds.push(vec![1, kind, low, high, 200, 0, 9, 0]);
        }
    }
    seeds
}

//! What a client does with workflows: it brings them, starts runs, sends signals and cancels.

use std::sync::Arc;

use tenure_core::command::{Command, RegisterWorkflow, SignalRun, StartRun};
use tenure_core::id::RunId;
use tenure_core::name::{SignalText, TaskKey};
use tenure_core::terms::Tags;
use tenure_flow::{Definition, Value, yaml};

use super::{Scene, queue};
use crate::workflows::{CHILD, workflow};

/// Runs that a client remembers.
const RUNS_KEPT: usize = 12;

/// A group that takes more than one record to begin.
const WIDE: &str = "workflow: wide
initial_node: a
nodes: [{ref: a, kind: pass}, {ref: b, kind: pass}, {ref: c, kind: pass}]
transitions:
  - {ref: t, from: a, to: b, spawn_count: 1100}
  - {from: b, to: c, synchronization: {joins_transition: t}}
";

/// One that looks at its input.
const PICKY: &str = "workflow: picky
input_schema: {type: object, required: [n]}
initial_node: a
timeout_ms: 3000
nodes: [{ref: a, kind: signal, signal: {name: s}}]
";

/// The part of a client that knows of workflows.
#[derive(Debug, Default)]
pub(crate) struct Starter {
    /// Runs that it was told of.
    runs: Vec<RunId>,
    starts: u64,
    registers: u64,
    /// How many signals it has sent.
    signals: u64,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Register,
    Start,
    Signal,
    Cancel,
}

const DEEDS: [(u64, Deed); 4] =
    [(25, Deed::Register), (45, Deed::Start), (22, Deed::Signal), (8, Deed::Cancel)];

impl Starter {
    pub(crate) fn heard(&mut self, run: RunId) {
        if self.runs.len() >= RUNS_KEPT {
            self.runs.remove(0);
        }
        self.runs.push(run);
    }

    /// What it asks for next, if it has anything to do with workflows.
    pub(crate) fn act(&mut self, scene: &mut Scene<'_>) -> Option<Command> {
        if !scene.mix.has_runs {
            return None;
        }
        match scene.random.weighted(&DEEDS) {
            Deed::Register if self.registers < scene.mix.registers_max => {
                self.registers += 1;
                Some(register(scene))
            }
            Deed::Start if self.starts < scene.mix.starts_max => {
                self.starts += 1;
                Some(start(scene))
            }
            Deed::Start | Deed::Register => None,
            Deed::Signal => self.signal(scene),
            Deed::Cancel => Some(Command::CancelRun(self.run(scene))),
        }
    }

    /// Some run that it was told of, or hardly ever one that does not exist.
    fn run(&self, scene: &mut Scene<'_>) -> RunId {
        if self.runs.is_empty() || scene.random.chance(30) {
            return RunId(scene.random.between(100_000, 1_000_000));
        }
        scene.random.pick(&self.runs)
    }

    fn signal(&mut self, scene: &mut Scene<'_>) -> Option<Command> {
        self.signals += 1;
        let name = scene.random.pick(&["s", "s", "s", "s", "nobody"]);
        // Some are sent again.
        let id = scene.random.chance(500).then(|| format!("signal-{}", self.signals / 2));
        Some(Command::SignalRun(SignalRun {
            run_id: self.run(scene),
            name: name.into(),
            payload: Value::map(vec![("yes".into(), Value::Bool(true))]),
            correlation: SignalText::parse("").ok()?,
            signal_id: id.and_then(|id| SignalText::parse(&id).ok()),
        }))
    }
}

fn register(scene: &mut Scene<'_>) -> Command {
    let place = queue(scene.random.below(scene.mix.queues));
    let text = match scene.random.below(8) {
        0 => CHILD.replace("QUEUE", place.as_str()),
        1 => WIDE.to_owned(),
        2 => PICKY.to_owned(),
        number => {
            let text = workflow(scene.random, place.as_str());
            text.replacen("workflow: w\n", &format!("workflow: w{}\n", number % 2), 1)
        }
    };
    let value = yaml::parse(&text).expect("it is written here");
    let definition = Definition::compile(&value).expect("only sound ones are written");
    Command::RegisterWorkflow(RegisterWorkflow { definition: Arc::new(definition) })
}

fn start(scene: &mut Scene<'_>) -> Command {
    let names =
        ["w0", "w0", "w0", "w0", "w1", "w1", "w1", "w1", "child", "picky", "wide", "missing"];
    let name = scene.random.pick(&names);
    let input = scene
        .random
        .pick(&[r#"{"list":["a","b","c","d"],"none":[],"n":1}"#, r#"{"list":["a"],"none":[]}"#]);
    let key = scene.random.chance(300).then(|| format!("run-{}", scene.random.below(20)));
    Command::StartRun(StartRun {
        workflow: name.into(),
        version: None,
        input: Value::from_json(input.as_bytes()).expect("it is JSON"),
        key: key.and_then(|key| TaskKey::parse(&key).ok()),
        tags: Tags::default(),
    })
}

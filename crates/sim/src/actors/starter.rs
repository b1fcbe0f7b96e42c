//! What a client does with workflows: it brings them, starts runs, sends signals and cancels.

use std::sync::Arc;

use tenure_coordinator::request::{
    CancelRun, GetRun, GetWorkflow, ListArtifacts, ListRuns, ListTokens, ListWorkflows, Maintain,
    UnparkRun,
};
use tenure_coordinator::{NameRange, RunFilter, RunPage};
use tenure_core::command::{
    Command, ParkRun, RegisterWorkflow, SignalByKey, SignalRun, SignalStart, StartRun, StartRuns,
};
use tenure_flow::{Definition, yaml};
use tenure_record::id::{RunId, TokenId};
use tenure_record::name::{SignalText, TaskKey};
use tenure_record::terms::Tags;
use tenure_value::Value;

use super::Scene;
use crate::request::AnyRequest;
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

/// One that is knocked at before it opens: what comes early is kept, and given once.
const KNOCK: &str = "workflow: knock
initial_node: a
timeout_ms: 9000
nodes:
  - {ref: a, kind: timer, timer: {delay_ms: 1500}}
  - {ref: b, kind: signal, signal: {name: s}, timeout_ms: 400}
  - {ref: c, kind: signal, signal: {name: s}, timeout_ms: 400}
transitions: [{from: a, to: b}, {from: b, to: c}]
";

/// Branches of two tasks, some of which fail after the first has brought something.
const RACE: &str = "workflow: race
initial_node: a
timeout_ms: 300000
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: QUEUE}, retry: {max_failures: 1}}
  - {ref: c, kind: task, task: {queue: QUEUE}, retry: {max_failures: 1}}
  - {ref: d, kind: pass}
transitions:
  - {ref: t, from: a, to: b, spawn_count: 3}
  - {from: b, to: c}
  - {from: c, to: d, synchronization: {joins_transition: t, on_unreachable: proceed}}
";

/// Many children at once; what one of them does ends the others.
const TREE: &str = "workflow: tree
initial_node: a
timeout_ms: 4000
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: workflow, workflow: {name: leaf}}
  - {ref: c, kind: pass}
transitions:
  - {ref: t, from: a, to: b, spawn_count: 9}
  - {from: b, to: c, synchronization: {joins_transition: t, wait_for: {m_of_n: 2}, on_late: cancel}}
";

/// A child of the tree: tasks, a signal and a timer side by side.
const LEAF: &str = "workflow: leaf
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: QUEUE}, retry: {max_failures: 1}}
  - {ref: c, kind: signal, signal: {name: s}, timeout_ms: 900}
  - {ref: d, kind: timer, timer: {delay_ms: 700}}
  - {ref: e, kind: task, task: {queue: QUEUE}, retry: {max_failures: 1}}
  - {ref: f, kind: pass}
transitions:
  - {from: a, to: b}
  - {from: a, to: c}
  - {from: a, to: d}
  - {from: a, to: e}
  - {from: c, to: f, outcome: error}
";

/// One that starts itself twice, until its tree has as many runs as it may.
const AGAIN: &str = "workflow: again
initial_node: a
timeout_ms: 3000
limits: {max_runs: 12}
nodes:
  - {ref: a, kind: task, task: {queue: QUEUE}, retry: {max_failures: 1}}
  - {ref: b, kind: workflow, workflow: {name: again}, on_failure: catch}
  - {ref: c, kind: workflow, workflow: {name: again}, on_failure: catch}
transitions: [{from: a, to: b}, {from: a, to: c}]
";

/// Groups in groups: the first branch of each inner one ends the others, with all that is in them.
const NEST: &str = "workflow: nest
initial_node: a
timeout_ms: 6000
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: pass}
  - {ref: c, kind: task, task: {queue: QUEUE}, retry: {max_failures: 1}}
  - {ref: d, kind: task, task: {queue: QUEUE}, retry: {max_failures: 1}}
  - {ref: e, kind: signal, signal: {name: s}, timeout_ms: 5000}
  - {ref: f, kind: pass}
  - {ref: g, kind: pass}
transitions:
  - {ref: outer, from: a, to: b, spawn_count: 6}
  - {ref: inner, from: b, to: c, spawn_count: 3}
  - {from: b, to: d}
  - {from: d, to: e}
  - {from: c, to: f, synchronization: {joins_transition: inner, wait_for: any, on_late: cancel}}
  - {from: f, to: g, synchronization: {joins_transition: outer, wait_for: {m_of_n: 4}, on_late: cancel, on_unreachable: fail}}
";

/// Pairs of tasks of which the first that is done ends the other: many of them, so that one batch of
/// reports ends much.
const PAIRS: &str = "workflow: pairs
initial_node: a
timeout_ms: 8000
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: pass}
  - {ref: c, kind: task, task: {queue: QUEUE}, retry: {max_failures: 1}}
  - {ref: d, kind: pass}
  - {ref: e, kind: pass}
transitions:
  - {ref: outer, from: a, to: b, spawn_count: 8}
  - {ref: inner, from: b, to: c, spawn_count: 2}
  - {from: c, to: d, synchronization: {joins_transition: inner, wait_for: any, on_late: cancel}}
  - {from: d, to: e, synchronization: {joins_transition: outer, on_unreachable: proceed}}
";

/// A moment whose record is long: it does not fit where records are short.
const BLOAT: &str = "workflow: bloat
initial_node: a
timeout_ms: 20000
nodes:
  - {ref: a, kind: timer, timer: {delay_ms: 300}}
  - {ref: b, kind: signal, signal: {name: s}, timeout_ms: 2500}
  - {ref: c, kind: pass}
transitions:
  - {ref: t, from: a, to: b, spawn_count: 600}
  - {from: b, to: c, synchronization: {joins_transition: t, on_unreachable: proceed}}
";

/// Why the simulation's operator parks a run.
pub(crate) const OPERATOR: &str = "an operator asked";

/// Live runs that are looked at in one request.
const RUNS_LOOKED_AT: usize = 200;

/// Keys that runs of a workflow are started under. Few, so that some are taken already.
const KEYS: u64 = 4;

/// The part of a client that knows of workflows.
#[derive(Debug, Default)]
pub(crate) struct Starter {
    /// Runs that it was told of.
    runs: Vec<RunId>,
    starts: u64,
    registers: u64,
    /// How many signals it has sent.
    signals: u64,
    /// The run that it has just canceled, which may be ending still.
    canceled: Option<RunId>,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Register,
    Start,
    Signal,
    Cancel,
    Park,
    Unpark,
    Look,
}

const DEEDS: [(u64, Deed); 7] = [
    (25, Deed::Register),
    (45, Deed::Start),
    (22, Deed::Signal),
    (8, Deed::Cancel),
    (3, Deed::Park),
    (6, Deed::Unpark),
    (25, Deed::Look),
];

impl Starter {
    pub(crate) fn heard(&mut self, run: RunId) {
        if self.runs.len() >= RUNS_KEPT {
            self.runs.remove(0);
        }
        self.runs.push(run);
    }

    /// What it asks for next, if it has anything to do with workflows.
    pub(crate) fn act(&mut self, scene: &mut Scene<'_>) -> Option<AnyRequest> {
        if !scene.config.has_runs {
            return None;
        }
        match scene.random.weighted(&DEEDS) {
            Deed::Register if self.registers < scene.config.registers_max => {
                self.registers += 1;
                Some(register(scene).into())
            }
            Deed::Start if self.starts < scene.config.starts_max => {
                self.starts += 1;
                let start = start(scene);
                Some(match scene.random.below(8) {
                    2 => {
                        // Bodies that differ under one key are refused as a whole.
                        let other = StartRun { key: None, ..start.clone() };
                        let runs = vec![start.clone(), other, start];
                        StartRuns { runs }.into()
                    }
                    3 => self.signal_by_key(start, scene)?.into(),
                    _ => start.into(),
                })
            }
            Deed::Start | Deed::Register => None,
            Deed::Signal => Some(self.signal(scene)?.into()),
            Deed::Cancel => {
                let run_id = self.run(scene);
                self.canceled = Some(run_id);
                Some(CancelRun(run_id).into())
            }
            Deed::Park => {
                let run_id = self.run(scene);
                let park = ParkRun { run_id, reason: OPERATOR.to_owned() };
                Some(Maintain(Command::ParkRun(park)).into())
            }
            Deed::Unpark => Some(UnparkRun(self.run(scene)).into()),
            Deed::Look => Some(self.look(scene)),
        }
    }

    /// Signals that follow a cancel at once, for what is ending refuses them.
    pub(crate) fn signals_after_cancel(&mut self, scene: &mut Scene<'_>) -> Vec<SignalRun> {
        let Some(run_id) = self.canceled.take() else { return Vec::new() };
        let signals = (0..2).filter_map(|_| self.signal(scene));
        signals.map(|signal| SignalRun { run_id, ..signal }).collect()
    }

    /// After the trouble: asks for the runs that are not over.
    pub(crate) fn ask_for_live(scene: &Scene<'_>) -> Vec<AnyRequest> {
        let filter =
            |state| RunFilter { state: Some(state), limit: RUNS_LOOKED_AT, ..RunFilter::default() };
        let live = ["RUNNING", "WAITING"].map(|state| ListRuns(filter(state)).into());
        if scene.config.has_runs { live.into() } else { Vec::new() }
    }

    /// Lets the runs go on that are not over. Where records are short some cannot, and are canceled.
    pub(crate) fn let_go_on(page: &RunPage, scene: &Scene<'_>) -> Vec<AnyRequest> {
        let live = page.runs.iter().filter(|run| run.finished_at.is_none()).map(|run| run.id);
        live.map(|id| match scene.config.has_short_records() {
            true => CancelRun(id).into(),
            false => UnparkRun(id).into(),
        })
        .collect()
    }

    /// Some run that it was told of, or hardly ever one that does not exist.
    fn run(&self, scene: &mut Scene<'_>) -> RunId {
        if self.runs.is_empty() || scene.random.chance(30) {
            return RunId(scene.random.between(100_000, 1_000_000));
        }
        // Most is done to what is new.
        match scene.random.chance(500) {
            true => self.runs[self.runs.len() - 1],
            false => scene.random.pick(&self.runs),
        }
    }

    fn look(&self, scene: &mut Scene<'_>) -> AnyRequest {
        let run_id = self.run(scene);
        let name: Arc<str> = scene.random.pick(&["w0", "w1", "child", "tree", "missing"]).into();
        match scene.random.below(7) {
            0 => GetRun { run_id, wait_ms: 0 }.into(),
            1 => GetRun { run_id, wait_ms: scene.random.pick(&[0, 200, 5_000]) }.into(),
            2 => ListRuns(RunFilter { limit: 10, ..RunFilter::default() }).into(),
            3 => ListTokens { run_id, after: TokenId::NONE, limit: 50 }.into(),
            4 => ListArtifacts(run_id).into(),
            5 => GetWorkflow { name, version: None }.into(),
            _ => ListWorkflows(NameRange { after: None, limit: 10 }).into(),
        }
    }

    /// News for the run of a key, which it begins if there is none.
    fn signal_by_key(&mut self, start: StartRun, scene: &mut Scene<'_>) -> Option<SignalByKey> {
        let StartRun { workflow, version, input, tags, .. } = start;
        let key = TaskKey::parse(&format!("run-{}", scene.random.below(KEYS))).ok()?;
        let signal = self.signal(scene)?;
        let start = Some(SignalStart { version, input, tags });
        Some(SignalByKey { workflow, key, signal, start })
    }

    fn signal(&mut self, scene: &mut Scene<'_>) -> Option<SignalRun> {
        self.signals += 1;
        let name = scene.random.pick(&["s", "s", "s", "s", "nobody"]);
        // Some are sent again.
        let id = scene.random.chance(500).then(|| format!("signal-{}", self.signals / 2));
        Some(SignalRun {
            run_id: self.run(scene),
            name: name.into(),
            payload: Value::map(vec![("yes".into(), Value::Bool(true))]),
            correlation: SignalText::parse("").ok()?,
            signal_id: id.and_then(|id| SignalText::parse(&id).ok()),
        })
    }
}

fn register(scene: &mut Scene<'_>) -> RegisterWorkflow {
    let place = scene.queue();
    let text = match scene.random.below(16) {
        0 => CHILD.replace("QUEUE", place.as_str()),
        1 => WIDE.to_owned(),
        2 => PICKY.to_owned(),
        3 => KNOCK.to_owned(),
        4 => RACE.replace("QUEUE", place.as_str()),
        5 => TREE.to_owned(),
        6 => LEAF.replace("QUEUE", place.as_str()),
        7 => AGAIN.replace("QUEUE", place.as_str()),
        8 => NEST.replace("QUEUE", place.as_str()),
        9 => PAIRS.replace("QUEUE", place.as_str()),
        10 => BLOAT.to_owned(),
        number => {
            let text = workflow(scene.random, place.as_str());
            text.replacen("workflow: w\n", &format!("workflow: w{}\n", number % 2), 1)
        }
    };
    let value = yaml::parse(&text).expect("it is written here");
    let definition = Definition::compile(&value).expect("only sound ones are written");
    RegisterWorkflow { definition: Arc::new(definition) }
}

fn start(scene: &mut Scene<'_>) -> StartRun {
    let names = [
        "w0", "w0", "w0", "w0", "w1", "w1", "w1", "w1", "child", "picky", "wide", "missing",
        "knock", "knock", "race", "race", "tree", "tree", "leaf", "again", "nest", "nest", "pairs",
        "pairs", "bloat",
    ];
    let name = scene.random.pick(&names);
    let input = scene
        .random
        .pick(&[r#"{"list":["a","b","c","d"],"none":[],"n":1}"#, r#"{"list":["a"],"none":[]}"#]);
    let key = scene.random.chance(300).then(|| format!("run-{}", scene.random.below(KEYS)));
    StartRun {
        workflow: name.into(),
        version: None,
        input: Value::from_json(input.as_bytes()).expect("it is JSON"),
        key: key.and_then(|key| TaskKey::parse(&key).ok()),
        tags: Tags::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workflow_that_is_brought_is_sound() {
        for text in [CHILD, WIDE, PICKY, KNOCK, RACE, TREE, LEAF, AGAIN, NEST, PAIRS, BLOAT] {
            let compiled = Definition::from_yaml(&text.replace("QUEUE", "q"));
            assert!(compiled.is_ok(), "{text}: {:?}", compiled.err());
        }
    }
}

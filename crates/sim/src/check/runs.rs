//! Runs: their numbers grow, each begins once and ends once, nothing is decided about one that is
//! over, and its tasks are kept as long as it is. After each record the laws of core hold for every
//! run that it touched, and what somebody was told about a run is what the log says.

use std::collections::BTreeSet;

use tenure_core::command::{StartRun, Started, SubmitOutcome};
use tenure_core::state::Facts;
use tenure_core::{Rejection, invariant};
use tenure_record::event::{Record, RunState};
use tenure_record::id::RunId;

use super::{LawResult, hold};
use crate::item::Item;
use crate::ledger::TaskLedger;
use crate::model::Model;
use crate::request::{AnyRequest, AnyResponse};

const GROW: &str = "run ids only grow";
const ONCE: &str = "a run ends once, and nothing happens after that";
const KEY: &str = "the same key never makes two runs";
const KEPT: &str = "a run's tasks are kept as long as the run";
const CHILD: &str = "a child run is kept as long as its parent";
const TOLD: &str = "what is told of a run is in the log";
const CORE: &str = "the laws of runs hold after every record";
const BOOK: &str = "the runs of the state are those of the log";

pub(super) fn item(ledger: &TaskLedger, record: &Record<'_>, item: Item<'_>) -> LawResult {
    let lsn = record.lsn;
    let is_live = |id: RunId| ledger.run(id).is_some_and(|run| run.state == RunState::Running);
    match item {
        Item::Began(run) => {
            let (id, last) = (run.run_id, ledger.runs.keys().next_back().copied());
            hold(GROW, last.is_none_or(|last| id > last), || {
                format!("record {lsn}: run {id} after {last:?}")
            })?;
            let parent = run.parent;
            hold(ONCE, !parent.is_some() || is_live(parent), || {
                format!("record {lsn}: run {id} is a child of {parent}, which is over")
            })?;
            let Some(key) = &run.key else { return Ok(()) };
            let same = ledger.runs.iter().find(|(_, known)| {
                !known.is_purged
                    && known.workflow == run.workflow.as_str()
                    && known.key.as_deref() == Some(key.as_str())
            });
            hold(KEY, same.is_none(), || format!("record {lsn}: {key:?} makes {id}; {same:?}"))
        }
        Item::Decided(id, _) | Item::Finished(id, _) => hold(ONCE, is_live(id), || {
            format!("record {lsn}: {item:?}; {:?}", ledger.runs.get(&id))
        }),
        Item::Purged(id) => {
            let run = ledger.task(id).and_then(|task| task.run);
            hold(KEPT, run.is_none(), || format!("record {lsn} forgets task {id} of run {run:?}"))
        }
        Item::PurgedRun(id) => {
            let is_over = ledger.run(id).is_some_and(|run| run.state.is_terminal());
            hold(KEPT, is_over, || format!("record {lsn} forgets run {id}, which is not over"))?;
            let is_kept = ledger.run(id).is_some_and(|run| ledger.has_parent(run));
            hold(CHILD, !is_kept, || format!("record {lsn} forgets run {id}: {:?}", ledger.run(id)))
        }
        Item::Created(_)
        | Item::Copied { .. }
        | Item::Granted { .. }
        | Item::Extended(_)
        | Item::Checkpoint(..)
        | Item::Ended { .. }
        | Item::Stale { .. }
        | Item::AskedToStop { .. }
        | Item::EndedWaiting { .. }
        | Item::Retried { .. }
        | Item::Stopped(_)
        | Item::Registered { .. }
        | Item::Configured => Ok(()),
    }
}

/// The runs that a record touched, once it is applied.
pub(super) fn touched(facts: &Facts, record: &Record<'_>, items: &[Item<'_>]) -> LawResult {
    let runs: BTreeSet<RunId> = items
        .iter()
        .filter_map(|item| if let Item::Decided(id, _) = item { Some(*id) } else { None })
        .collect();
    for id in runs {
        invariant::check_run(facts, id).or_else(|broken| {
            hold(CORE, false, || format!("after record {}: {broken}: {record:?}", record.lsn))
        })?;
    }
    Ok(())
}

pub(super) fn told(
    ledger: &TaskLedger,
    model: &mut Model,
    ask: &AnyRequest,
    answer: &AnyResponse,
) -> LawResult {
    if let Some(shown) = answer.run() {
        let run = ledger.runs.get(&shown.id);
        hold(TOLD, run.is_some_and(|run| run.workflow == *shown.workflow), || {
            format!("run {} of {} is shown; the log says {run:?}", shown.id, shown.workflow)
        })?;
    }
    if let (AnyRequest::StartRun(sent), AnyResponse::StartRun(began)) = (ask, answer) {
        let started = Started { run_id: began.run.id, outcome: began.outcome };
        return self::started(ledger, model, sent, started);
    }
    if let (AnyRequest::StartRuns(sent), AnyResponse::StartRuns(started)) = (ask, answer) {
        hold(TOLD, sent.runs.len() == started.len(), || format!("{sent:?}: {started:?}"))?;
        let mut each = sent.runs.iter().zip(started);
        return each.try_for_each(|(sent, it)| self::started(ledger, model, sent, *it));
    }
    if let (AnyRequest::SignalByKey(sent), AnyResponse::SignalByKey(signaled)) = (ask, answer) {
        let id = signaled.run_id;
        let run = ledger.runs.get(&id);
        let is_so = run.is_some_and(|run| {
            run.workflow == *sent.workflow && run.key.as_deref() == Some(sent.key.as_str())
        });
        hold(TOLD, is_so, || format!("{sent:?} is for {id}; the log says {run:?}"))?;
        return made(model, id, signaled.outcome);
    }
    if let AnyResponse::RegisterWorkflow(registered) = answer {
        let newest = ledger.workflows.get(&*registered.name).copied().unwrap_or_default();
        return hold(TOLD, registered.version <= newest, || {
            format!("{registered:?}; the log has {newest}")
        });
    }
    if let (AnyRequest::SignalRun(sent), AnyResponse::SignalRun(_)) = (ask, answer) {
        let id = sent.run_id;
        return hold(TOLD, ledger.runs.contains_key(&id), || {
            format!("a signal for {id} was taken")
        });
    }
    Ok(())
}

fn started(ledger: &TaskLedger, model: &mut Model, sent: &StartRun, started: Started) -> LawResult {
    let id = started.run_id;
    let run = ledger.runs.get(&id);
    let is_so = run.is_some_and(|run| {
        run.workflow == *sent.workflow
            && run.key.as_deref() == sent.key.as_ref().map(|key| key.as_str())
    });
    hold(TOLD, is_so, || format!("{sent:?} started {id}; the log says {run:?}"))?;
    made(model, id, started.outcome)
}

fn made(model: &mut Model, id: RunId, outcome: SubmitOutcome) -> LawResult {
    let is_new = outcome == SubmitOutcome::Created;
    hold(TOLD, !is_new || model.runs.insert(id), || format!("run {id} was started twice"))
}

pub(super) fn rejected(ledger: &TaskLedger, model: &Model, rejection: &Rejection) -> LawResult {
    if let Rejection::RunOver { run_id, state } = rejection {
        let run = ledger.runs.get(run_id);
        return hold(TOLD, run.is_some_and(|run| run.state == *state), || {
            format!("{rejection}; the log says {run:?}")
        });
    }
    if let Rejection::RunNotFound { run_id } = rejection {
        let is_there = model.runs.contains(run_id) && ledger.run(*run_id).is_some();
        return hold(TOLD, !is_there, || format!("{rejection}, and somebody was told of it"));
    }
    Ok(())
}

/// The state has the runs that the log has, as it has them, and each that anybody was told of.
pub(super) fn matches_book(ledger: &TaskLedger, model: &Model, facts: &Facts) -> LawResult {
    let there = ledger.runs.values().filter(|run| !run.is_purged).count() as u64;
    hold(BOOK, facts.run_count() == there, || {
        format!("{} runs, and the log has {there}", facts.run_count())
    })?;
    for run in facts.runs() {
        let entry = ledger.run(run.id);
        let is_over = run.finished_at().is_some();
        let is_so = entry.is_some_and(|entry| {
            entry.state.is_terminal() == is_over
                && (!is_over || entry.state.as_str() == run.state())
        });
        hold(BOOK, is_so, || format!("run {} is {}; {entry:?}", run.id, run.state()))?;
    }
    let lost = model.runs.iter().find(|id| !ledger.runs.contains_key(id));
    hold(TOLD, lost.is_none(), || format!("run {lost:?} was told of, and is gone"))
}

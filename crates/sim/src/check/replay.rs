//! Replaying the log gives the state: after a recovery, and while it is lived through. And no state
//! breaks a law of core.

use tenure_core::state::{Facts, StateHash};
use tenure_core::{State, apply, invariant};
use tenure_record::event::{Event, Record, Report};

use super::{LawResult, hold};
use crate::actors::OPERATOR;
use crate::ledger::TaskLedger;
use crate::request::AnyResponse;

const SAME: &str = "a replay gives the same state";
const CORE: &str = "the laws of core hold";
const BOOK: &str = "the state is what the log says";

/// A state that only ever replays.
#[derive(Debug)]
pub(crate) struct Shadow {
    state: State,
}

impl Shadow {
    pub(super) fn new() -> Self {
        Self { state: State::replaying(0x5eed) }
    }

    pub(super) fn record(&mut self, record: &Record<'_>) {
        apply(&mut self.state, record);
    }

    pub(super) fn facts(&self) -> &Facts {
        self.state.facts()
    }

    fn hash(&self) -> StateHash {
        self.state.facts().hash()
    }
}

pub(super) fn recovered(shadow: &Shadow, facts: &Facts) -> LawResult {
    hold(SAME, facts.hash() == shadow.hash(), || {
        format!("the recovered state differs at LSN {}", facts.last_lsn())
    })?;
    invariant::check_facts(facts).or_else(|broken| hold(CORE, false, || broken.to_string()))
}

pub(super) fn settled(shadow: &Shadow, state: &State) -> LawResult {
    hold(SAME, state.facts().hash() == shadow.hash(), || {
        format!("the living state differs at LSN {}", state.last_lsn())
    })?;
    invariant::check(state).or_else(|broken| hold(CORE, false, || broken.to_string()))
}

/// Whoever asks for everything gets what the log says.
pub(super) fn told(shadow: &Shadow, answer: &AnyResponse) -> LawResult {
    let AnyResponse::GetFacts(facts) = answer else { return Ok(()) };
    if facts.last_lsn() != shadow.state.last_lsn() {
        return Ok(());
    }
    hold(SAME, facts.hash() == shadow.hash(), || {
        format!("the facts that were told differ at LSN {}", facts.last_lsn())
    })
}

/// The state has the tasks that the ledger has, as it has them.
pub(super) fn matches_book(ledger: &TaskLedger, facts: &Facts) -> LawResult {
    let there = ledger.tasks.values().filter(|task| !task.is_purged).count() as u64;
    hold(BOOK, facts.task_count() == there, || {
        format!("{} tasks, and the log has {there}", facts.task_count())
    })?;
    for task in facts.tasks() {
        let Some(entry) = ledger.task(task.id) else {
            return hold(BOOK, false, || format!("task {} is not in the log", task.id));
        };
        let lease = task.lease().map(|lease| (lease.lease_id, lease.expires_at));
        let open = ledger.open_lease(task.id).map(|(id, lease)| (id, lease.expires_at()));
        let output = entry.completed.as_ref().map_or(&[][..], |(_, output)| output);
        let is_so = (task.state(), task.attempt(), lease) == (entry.state, entry.grants, open)
            && task.output() == output
            && task.payload() == entry.payload
            && task.key() == entry.key.as_deref()
            && task.dead_letter_of() == entry.copy_of;
        hold(BOOK, is_so, || format!("task {} is {task:?}; the log says {entry:?}", task.id))?;
    }
    Ok(())
}

/// The names of what a record says, for coverage: reports by their own names, and a batch of several.
pub(super) fn names(event: &Event<'_>) -> Vec<&'static str> {
    if let Event::ReportsApplied(event) = event {
        let several = (event.reports.len() > 1).then_some("several reports");
        return event.reports.iter().map(Report::name).chain(several).collect();
    }
    if let Event::RunParked(event) = event
        && event.reason.as_str() == OPERATOR
    {
        return vec!["RunParked as asked"];
    }
    vec![event.name()]
}

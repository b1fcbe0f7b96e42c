//! Reading: runs that are ending or parked, and the tasks that do not move because of them.

use std::sync::Arc;

use tenure_code::Echo;
use tenure_flow::Fault;
use tenure_record::event::RunState;
use tenure_record::id::{RunId, TaskId};
use tenure_record::time::Timestamp;
use tenure_value::Value;

use super::RunView;
use crate::state::facts::run::{Run, Workflow};
use crate::state::{Ledger, Runs, State};

/// How a run ends whose end is decided and not yet complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndingView<'a> {
    /// The state that it will have.
    pub state: RunState,
    /// The error that it will have.
    pub error: Option<&'a Value>,
    /// When its end was decided.
    pub since: Timestamp,
}

/// Why a run is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParkedView<'a> {
    /// What does not fit one record.
    pub reason: &'a Arc<str>,
    /// Since when.
    pub at: Timestamp,
}

/// What keeps a task of a run from being granted and reported on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halted {
    /// Its run, or one above that, is ending.
    Ending {
        /// The run that is ending.
        run_id: RunId,
        /// The state that this run will have.
        state: RunState,
        /// When that was decided.
        since: Timestamp,
    },
    /// A branch that it is in is ending, and its run goes on.
    BranchEnding {
        /// Its run.
        run_id: RunId,
    },
    /// Its run is parked.
    Parked {
        /// Its run.
        run_id: RunId,
        /// Why.
        reason: Arc<str>,
        /// Since when.
        at: Timestamp,
    },
}

impl<'a> RunView<'a> {
    /// The run at the top of its tree of child runs; itself if it has no parent.
    #[must_use]
    pub fn root(&self) -> RunId {
        self.head().top
    }

    /// How it is ending, if it is ending as a whole.
    #[must_use]
    pub fn ending(&self) -> Option<EndingView<'a>> {
        let root = self.head().ending_root()?;
        Some(EndingView { state: root.state, error: root.error.as_ref(), since: root.since })
    }

    /// Why it is parked, if it is.
    #[must_use]
    pub fn parked(&self) -> Option<ParkedView<'a>> {
        let parked = self.head().parked.as_ref()?;
        Some(ParkedView { reason: &parked.reason, at: parked.at })
    }
}

impl State {
    /// How many runs are ending, or have branches that are.
    #[must_use]
    pub fn ending_runs(&self) -> u64 {
        self.live().runs.endings.len() as u64
    }

    /// Live runs whose definition no longer compiles and that are not parked yet, each with why.
    #[must_use]
    pub fn broken_runs(&self) -> Vec<(RunId, String)> {
        let is_broken = |run: &Run| {
            run.workflow.is_broken() && run.parked.is_none() && !run.state.is_terminal()
        };
        let runs = self.facts.runs.iter().filter(|(_, stored)| is_broken(&stored.head));
        let why = |run: &Run| {
            let Workflow { name, version, .. } = &*run.workflow;
            let fault = run.workflow.faults().first().map(Fault::to_string).unwrap_or_default();
            format!("version {version} of workflow {} no longer compiles: {fault}", Echo(name))
        };
        runs.map(|(id, stored)| (RunId(id), why(&stored.head))).collect()
    }

    /// How many runs are parked.
    #[must_use]
    pub fn parked_runs(&self) -> u64 {
        self.live().runs.parked
    }

    /// What keeps a task from moving that has not ended and belongs to a run.
    #[must_use]
    pub fn halted(&self, task_id: TaskId) -> Option<Halted> {
        let task = Ledger::task(self, task_id)?;
        if !task.in_run || task.is_terminal() {
            return None;
        }
        let (run_id, token) = self.cold(task_id)?.run?;
        let scope = Runs::token(self, run_id, token)?.scope;
        if self.is_ending(run_id, scope) {
            return Some(self.ending_above(run_id).unwrap_or(Halted::BranchEnding { run_id }));
        }
        let parked = Runs::run(self, run_id)?.parked.as_ref()?;
        Some(Halted::Parked { run_id, reason: Arc::clone(&parked.reason), at: parked.at })
    }

    /// The nearest run that is ending as a whole: this one, or one of at most
    /// [`CHILD_DEPTH_MAX`](crate::limits::CHILD_DEPTH_MAX) above it.
    fn ending_above(&self, run_id: RunId) -> Option<Halted> {
        let mut run_id = run_id;
        loop {
            let run = Runs::run(self, run_id)?;
            if let Some(root) = run.ending_root() {
                return Some(Halted::Ending { run_id, state: root.state, since: root.since });
            }
            (run_id, _) = run.parent?;
        }
    }
}

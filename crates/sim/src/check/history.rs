//! A task's history has every step that a follower was shown of it.

use tenure_coordinator::history;
use tenure_log::{Log, Maintenance};

use super::{Broken, LawResult, hold};
use crate::check::Laws;
use crate::process::Life;

/// How many tasks are looked at, about: each step is a read of the log.
const TASKS: usize = 24;

const LAW: &str = "a history has every step of its task";

/// Compares the history of some tasks with what the records say.
pub(super) fn ended(laws: &Laws, life: &Life) -> LawResult {
    let mut reader = life.coordinator.log().reader();
    let oldest = life.coordinator.log().extent().oldest;
    let tasks = laws.ledger.tasks.iter().filter(|(_, task)| !task.is_purged);
    for (id, task) in tasks.step_by(1 + laws.ledger.tasks.len() / TASKS) {
        let Some(last) = task.history.last() else { continue };
        let found = history(&mut reader, *id, last.lsn)
            .map_err(|failure| Broken { law: LAW, what: format!("task {id}: {failure}") })?;
        let steps = found.steps.iter().map(|step| (step.lsn, step.event, step.to));
        let shown = laws.feed.of_task(*id);
        // What was trimmed is said to be missing, and nothing else is.
        let from = found.truncated_before.unwrap_or_default();
        let is_trimmed = from.0.saturating_sub(1) < oldest.0;
        let is_so = is_trimmed && shown.filter(|(lsn, ..)| *lsn >= from).eq(steps);
        hold(LAW, is_so, || format!("task {id}: {found:?}; the log begins at {oldest}"))?;
    }
    Ok(())
}

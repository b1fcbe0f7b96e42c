//! A task's history has every step that a follower was shown of it.

use tenure_coordinator::history;
use tenure_wal::Log;

use super::{Broken, Held, hold};
use crate::check::Laws;
use crate::process::Life;

const LAW: &str = "a history has every step of its task";

/// Compares the history of every task with what the records say.
pub(super) fn ended(laws: &Laws, life: &Life) -> Held {
    let mut reader = life.coordinator.log().reader();
    for (id, task) in laws.book.tasks.iter().filter(|(_, task)| !task.is_purged) {
        let Some(last) = task.history.last() else { continue };
        let found = history(&mut reader, *id, last.lsn)
            .map_err(|failure| Broken { law: LAW, what: format!("task {id}: {failure}") })?;
        let steps = found.steps.iter().map(|step| (step.lsn, step.event, step.to));
        let shown = laws.feed.of_task(*id);
        hold(LAW, found.truncated_before.is_none() && shown.eq(steps), || {
            format!("task {id}: {found:?}")
        })?;
    }
    Ok(())
}

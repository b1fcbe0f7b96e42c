//! The laws of dead letters: which tasks leave a copy, and where.

use tenure_record::event::{About, DeadLetter};
use tenure_record::id::ID_MAX;
use tenure_record::state::TaskState;

use super::Audit;
use super::law::{Law, Violation, hold};
use super::table::{Rare, Row};

impl Audit {
    /// Whether a task that goes to a state leaves the copy that its queue asks for, and no other.
    pub(super) fn leaves(
        &mut self,
        about: &About<'_>,
        row: Row,
        to: TaskState,
        item: Option<&DeadLetter<'_>>,
    ) -> Result<(), Violation> {
        let of = about.task_id;
        let has_failed = matches!(to, TaskState::Failed | TaskState::Dead);
        let rare = self.tasks.rare(of);
        let is_copy = rare.is_some_and(|rare| rare.dead_letter_of.is_some());
        let wanted = match has_failed && !is_copy {
            true => self.queues.dead_letter_queue(row.queue),
            false => None,
        };
        let found = item.map(|item| item.queue.as_str());
        hold(Law::DeadLettersFollowSettings, found == wanted.as_deref(), || {
            format!("task {of} becomes {to} and leaves a copy in {found:?}, not in {wanted:?}")
        })?;
        let link = item.map(|item| item.task_id).unwrap_or_default();
        let linked = rare.map(|rare| rare.dead_letter).unwrap_or_default();
        if has_failed && link != linked {
            self.tasks.rare_mut(of).dead_letter = link;
        }
        match item {
            Some(item) => self.copied(about, item),
            None => Ok(()),
        }
    }

    fn copied(&mut self, of: &About<'_>, item: &DeadLetter<'_>) -> Result<(), Violation> {
        let id = item.task_id;
        hold(Law::IdsOnlyGrow, id == self.next_task && id.0 <= ID_MAX, || {
            format!("copy {id} of task {} is made where {} comes next", of.task_id, self.next_task)
        })?;
        let is_bounded = item.max_failures.is_some() && item.max_expiries.is_some();
        hold(Law::OnlyLegalSteps, is_bounded, || format!("copy {id} is made without a budget"))?;
        let queue = self.queues.hold(item.queue.as_str());
        *self.tasks.rare_mut(id) = Rare { dead_letter_of: of.task_id, ..Rare::default() };
        self.next_task = id.next();
        self.summary.created += 1;
        self.tasks.put(
            id,
            Row {
                max_failures: item.max_failures,
                max_expiries: item.max_expiries,
                ..Row::new(queue, of.priority, self.lsn)
            },
        );
        Ok(())
    }
}

//! What retention lets go next: finished tasks and runs, in the order in which they go. Nothing is
//! forgotten here; whoever asks decides what becomes of them first.

use tenure_record::id::{RunId, TaskId};
use tenure_record::time::{Now, Timestamp};

use crate::command::{Rest, Retention};
use crate::limits::{DUE_ITEMS_MAX, FOR_EVER_MS};
use crate::planted::{self, Bug};
use crate::state::{State, Work};

/// What is to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Tasks of no run, those whose time was over first at the front.
    pub tasks: Vec<TaskId>,
    /// Runs, the oldest end first. Their tasks go with them, and their child runs right after them.
    pub runs: Vec<RunId>,
    /// Whether more is due: more than fits into one record, or child runs of those that go.
    pub rest: Rest,
}

impl State {
    /// Finished tasks and runs whose retention is over, as many as one record may forget.
    #[must_use]
    pub fn due(&self, retention: &Retention, now: Now) -> Due {
        if planted::has(Bug::KeptForEver) {
            return Due { tasks: Vec::new(), runs: Vec::new(), rest: Rest::Nothing };
        }
        let indexes = self.live();
        // Beyond the number that is kept, age does not matter: the next in line go.
        let ended = indexes.counts().terminal() - indexes.kept;
        let too_many = ended.saturating_sub(retention.tasks_max);
        let items_max = retention.items_max.min(DUE_ITEMS_MAX);
        let mut due = indexes
            .finished(retention.age_ms.min(FOR_EVER_MS), items_max + 1)
            .zip(0_u64..)
            .take_while(|((over_at, _), nth)| {
                *over_at <= now.log || *nth < too_many || planted::has(Bug::PurgedTooEarly)
            })
            .map(|((_, task_id), _)| task_id);
        let tasks: Vec<_> = due.by_ref().take(items_max).collect();
        let rest = if due.next().is_some() { Rest::More } else { Rest::Nothing };
        let (runs, rest) = self.due_runs(retention, now, tasks.len(), rest);
        Due { tasks, runs, rest }
    }

    /// Runs that are over long enough, or too many, as far as a record has room for their tokens. Runs
    /// go before their children, so no run that can be looked at has a child that cannot.
    fn due_runs(
        &self,
        retention: &Retention,
        now: Now,
        mut items: usize,
        mut rest: Rest,
    ) -> (Vec<RunId>, Rest) {
        let finished = &self.live().runs.finished;
        let too_many = (finished.len() as u64).saturating_sub(retention.tasks_max);
        let mut runs = Vec::new();
        for ((at, run_id), nth) in finished.iter().zip(0_u64..) {
            let is_orphan = *at == Timestamp::ZERO;
            let is_young = at.plus_ms(retention.age_ms.min(FOR_EVER_MS)) > now.log;
            if is_young && !is_orphan && nth >= too_many && !planted::has(Bug::RunPurgedTooEarly) {
                break;
            }
            if items >= DUE_ITEMS_MAX {
                return (runs, Rest::More);
            }
            let stored = self.stored_run(*run_id).expect("an index names runs that exist");
            items += 1 + stored.head.tokens as usize;
            if stored.tokens().any(|(_, token)| matches!(token.work, Work::Child(_))) {
                rest = Rest::More;
            }
            runs.push(*run_id);
        }
        (runs, rest)
    }
}

//! Tasks that took too long are canceled, leased or not.

use super::{Verdict, about, stamp};
use crate::apply;
use crate::command::{Reply, Rest, Swept};
use crate::event::{DeadlinePassed, Event, TimerFired};
use crate::id::{LeaseId, TaskId};
use crate::limits::DUE_ITEMS_MAX;
use crate::state::{Draft, Ledger, StateName};
use crate::time::Now;

pub(super) fn decide(draft: &mut Draft<'_>, now: Now) -> Verdict<'static> {
    sweep(draft, now, Rest::Nothing)
}

/// Fires what is due. `afterwards` says whether the caller has more to do when that is all.
pub(super) fn sweep(draft: &mut Draft<'_>, now: Now, afterwards: Rest) -> Verdict<'static> {
    let mut due = draft.base().live().deadlines.range(..=(now.log, TaskId(u64::MAX)));
    let mut deadlines = Vec::new();
    for &(deadline_at, task_id) in due.by_ref().take(DUE_ITEMS_MAX) {
        let task = *draft.task(task_id).expect("a deadline belongs to a task");
        let item = DeadlinePassed {
            about: about(draft, task_id, &task),
            from: task.name(),
            worker: draft.holder(&task),
            lease_id: match task.name() == StateName::Leased {
                true => task.lease_id,
                false => LeaseId::NONE,
            },
            deadline_at,
        };
        apply::task::deadline_passed(draft, stamp(draft, now), &item);
        deadlines.push(item);
    }
    let rest = if due.next().is_some() { Rest::More } else { afterwards };
    let reply = Reply::Swept(Swept { items: deadlines.len(), rest });
    match deadlines.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::TimerFired(TimerFired { deadlines }), reply),
    }
}

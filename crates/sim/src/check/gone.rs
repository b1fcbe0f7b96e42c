//! Who is gone is given nothing, and what was given to one who left meanwhile goes back at once.

use tenure_record::id::{LeaseId, TaskId};

use super::{LawResult, hold};
use crate::ledger::TaskLedger;
use crate::model::{Delivery, Model};
use crate::process::Life;
use crate::request::{AnyResponse, Outcome};

const NOTHING: &str = "who is gone is given nothing";
const BACK: &str = "what was given to one who left goes back at once";

/// How soon a lost grant is back, beside the time of the disk.
const BACK_MS: u64 = 20;

/// Grants that nobody took.
#[derive(Debug, Default)]
pub(crate) struct GoneLaw {
    lost: Vec<Lost>,
}

#[derive(Debug)]
struct Lost {
    task_id: TaskId,
    lease_id: LeaseId,
    start: u64,
    back_by: u64,
}

impl GoneLaw {
    /// An outcome for somebody who had left.
    pub(super) fn unclaimed(
        &mut self,
        ledger: &TaskLedger,
        model: &mut Model,
        delivery: &Delivery,
        outcome: &Outcome,
        life: &Life,
        now: u64,
    ) -> LawResult {
        let Ok(AnyResponse::Lease(grants)) = outcome else { return Ok(()) };
        for grant in grants {
            let granted = ledger.leases.get(&grant.lease_id).map(|lease| lease.granted);
            let in_time = delivery.gone_at.zip(granted).is_some_and(|(gone, given)| given <= gone);
            hold(NOTHING, in_time, || {
                format!(
                    "lease {} was given with record {granted:?} to one who left at {:?}",
                    grant.lease_id, delivery.gone_at
                )
            })?;
            model.granted.insert(grant.lease_id);
            let (task_id, lease_id) = (grant.task_id, grant.lease_id);
            let back_by = now + BACK_MS + life.slow_ms;
            self.lost.push(Lost { task_id, lease_id, start: life.start, back_by });
        }
        Ok(())
    }

    pub(super) fn stepped(&self, life: &Life, now: u64) -> LawResult {
        let mine = self.lost.iter().filter(|lost| lost.start == life.start);
        for lost in mine.filter(|lost| lost.back_by < now) {
            let held = life.coordinator.state().task(lost.task_id).and_then(|task| task.lease());
            let is_back = held.is_none_or(|held| held.lease_id != lost.lease_id);
            hold(BACK, is_back || life.is_held(), || {
                format!("lease {} of task {} is still held", lost.lease_id, lost.task_id)
            })?;
        }
        Ok(())
    }

    /// Forgets what was checked.
    pub(crate) fn forget(&mut self, now: u64) {
        self.lost.retain(|lost| lost.back_by >= now);
    }
}

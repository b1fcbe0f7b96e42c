//! Soft state: what was heard lately from workers. It decides nothing that is written, and a restart
//! forgets it.

use tenure_core::State;
use tenure_core::command::{Heartbeat, LeaseRef};
use tenure_record::time::Now;

use crate::progress::ProgressTable;
use crate::supply::LastLeases;
use crate::workers::Workers;

/// What is known of workers beside their leases.
#[derive(Debug, Default)]
pub(crate) struct SoftState {
    pub(crate) workers: Workers,
    pub(crate) progress: ProgressTable,
    /// The last leases, which tell whether workers find more work than they take.
    pub(crate) last_leases: LastLeases,
}

impl SoftState {
    /// Notes the worker that holds a lease: it has reported.
    pub(crate) fn saw_holder(&mut self, state: &State, lease: LeaseRef, now: Now) {
        let held = state.task(lease.task_id).and_then(|task| task.lease());
        if let Some(held) = held.filter(|held| held.lease_id == lease.lease_id) {
            self.workers.saw(&held.worker, now.log);
        }
    }

    /// Notes the progress that an accepted heartbeat reports.
    pub(crate) fn heard(&mut self, heartbeat: &Heartbeat, state: &State, now: Now) {
        self.progress.heard(heartbeat, now.wall, state);
    }
}

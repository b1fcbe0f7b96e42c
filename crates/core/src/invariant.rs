//! The laws. Each has a name; a state that breaks one is a bug, never a case to handle.
//!
//! The whole state is checked in tests and when a log is verified. While serving, what a command
//! touched is checked before its record is written, so that a broken law cannot become a crash
//! loop.

mod runs;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tenure_record::id::{ID_MAX, LeaseId, RunId, TaskId};
use tenure_record::state::TaskState;
use tenure_record::time::Timestamp;

use crate::state::{
    Cold, Draft, Facts, Ledger, NameRef, QueueRef, State, Task, TaskPhase, WorkerRef,
};

/// What must always hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// A lease belongs to exactly one task, and a task has at most one (seed 001 §7).
    OneLeasePerTask,
    /// A task that is LEASED has a lease that was given and has an end; one that is not has none
    /// that is open (seed 001 §7).
    LeasedHasALease,
    /// COMPLETED never changes again, and no state is skipped (seed 001 §7).
    OnlyLegalSteps,
    /// Every id was given out by its counter, and none reaches 2^43.
    IdsComeFromCounters,
    /// Lease ids only grow, on a task and over all.
    LeaseIdsGrow,
    /// Every grant ended in at most one way: failures and expiries never exceed attempts.
    EndsNeverExceedGrants,
    /// A task that can still run has budget left.
    LiveHasBudget,
    /// Only a leased or ended task can have been asked to stop.
    WaitingIsNotAskedToStop,
    /// A lease does not outlive its task's deadline, its attempt's deadline or a revocation.
    LeaseEndsInTime,
    /// A revocation belongs to a lease.
    RevocationNeedsALease,
    /// The deadline of an attempt belongs to a lease.
    AttemptNeedsALease,
    /// A stale report was made under a lease that was given.
    StaleLeaseWasGiven,
    /// No two tasks of a queue hold one key.
    KeysAreUnique,
    /// Queues and workers exist exactly while something needs them.
    NothingUnused,
    /// Payloads, outputs and cold parts belong to exactly one task, which exists.
    PartsHaveOneOwner,
    /// A copy is younger than the task that it is of, and has no copy. A queue's dead letter queue is another
    /// queue, which is kept.
    DeadLettersAreLinked,
    /// A task that a run made belongs to the token that has it.
    TasksBelongToTokens,
    /// Every token but the first has a parent that is older.
    TokensHaveParents,
    /// Every live token has something that moves it on: a task, a timer, a signal, a child or
    /// siblings; or it is ending.
    LiveTokensWake,
    /// A live run has a live token, or branches that will begin, or something in it is ending; an
    /// open branch has a live token too.
    LiveRunsGoOn,
    /// A token that has ended never changes, and a run that is over has nothing live.
    TheEndedStaysEnded,
    /// Open, arrived, failed, canceled, timed out and ended branches are all there are.
    GroupsAddUp,
    /// What a run counts is what there is.
    RunsCountRight,
    /// What is derived is what would be derived anew.
    IndexesFollowFacts,
}

/// A law that was broken, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which law.
    pub law: Law,
    /// What was found.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.law, self.found)
    }
}

impl std::error::Error for Violation {}

/// Says that a law is broken unless it holds.
fn hold(law: Law, holds: bool, found: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation { law, found: found() }) }
}

/// Checks a whole state.
pub fn check(state: &State) -> Result<(), Violation> {
    let facts = state.facts();
    check_facts(facts)?;
    state.check_indexes().map_err(|found| Violation { law: Law::IndexesFollowFacts, found })
}

/// Checks facts alone, as after a replay or on a view.
pub fn check_facts(facts: &Facts) -> Result<(), Violation> {
    let mut seen = Seen::default();
    for (id, task) in facts.tasks.iter() {
        let id = TaskId(id);
        check_task(task).map_err(|broken| broken.of(id))?;
        check_bounds(facts, task).map_err(|broken| broken.of(id))?;
        seen.note(facts, id, task)?;
    }
    seen.check(facts)?;
    runs::check_runs(facts)
}

/// Checks one run, and that its tokens' tasks are there.
pub fn check_run(facts: &Facts, id: RunId) -> Result<(), Violation> {
    match facts.runs.get(id.0) {
        Some(stored) => runs::check_run(facts, id, stored),
        None => Ok(()),
    }
}

/// Checks what a draft touched, before it is written: O(1) for each task.
///
/// # Panics
/// If a law is broken.
pub(crate) fn assert_draft(draft: &Draft<'_>) {
    for (id, before, after) in draft.changes() {
        let checked = match after {
            Some(after) => check_task(after)
                .and_then(|()| check_cold(after, draft.cold(id)))
                .and_then(|()| check_step(before, after)),
            None => hold(Law::OnlyLegalSteps, before.is_some_and(Task::is_terminal), || {
                "a task that has not ended is purged".to_owned()
            }),
        };
        if let Err(broken) = checked {
            let broken = broken.of(id);
            assert_eq!(None, Some(&broken), "a decision breaks a law; nothing was written");
        }
    }
    if let Err(broken) = runs::check_draft(draft) {
        assert_eq!(None, Some(&broken), "a decision breaks a law; nothing was written");
    }
}

impl Violation {
    fn of(self, id: TaskId) -> Self {
        Self { found: format!("task {id}: {}", self.found), ..self }
    }
}

/// The laws of one slot.
fn check_task(task: &Task) -> Result<(), Violation> {
    let (failures, expiries) = (u32::from(task.failures), u32::from(task.expiries));
    hold(Law::EndsNeverExceedGrants, failures + expiries <= task.attempt, || {
        format!("{failures} failures and {expiries} expiries in {} attempts", task.attempt)
    })?;
    let is_open = task.lease_end == tenure_record::snapshot::LeaseEnd::Open;
    match task.state {
        TaskPhase::Waiting { .. } => {
            hold(Law::LeasedHasALease, !(is_open && task.lease_id.is_some()), || {
                format!("it is WAITING and lease {} is open", task.lease_id)
            })?;
            hold(Law::WaitingIsNotAskedToStop, !task.cancel_requested, || {
                "it is WAITING and was asked to stop".to_owned()
            })?;
        }
        TaskPhase::Leased { expires_at, .. } => {
            let has_lease = is_open && task.lease_id.is_some() && expires_at > Timestamp::ZERO;
            hold(Law::LeasedHasALease, has_lease, || "it is LEASED without a lease".to_owned())?;
        }
        TaskPhase::Completed { .. } => {
            hold(Law::LeasedHasALease, task.lease_id.is_some(), || {
                "it is COMPLETED and was never leased".to_owned()
            })?;
        }
        TaskPhase::Failed { .. } | TaskPhase::Dead { .. } | TaskPhase::Canceled { .. } => {}
    }
    has_budget(task, None)
}

fn has_budget(task: &Task, cold: Option<&Cold>) -> Result<(), Violation> {
    let has_budget = task.budgets(cold).allow(task.failures, task.expiries);
    hold(Law::LiveHasBudget, task.is_terminal() || has_budget, || {
        let (failures, expiries) = (task.failures, task.expiries);
        format!("it is {} with {failures} failures and {expiries} expiries", task.name())
    })
}

/// The laws of one step.
fn check_step(before: Option<&Task>, after: &Task) -> Result<(), Violation> {
    let Some(before) = before else {
        // A run may need a task no more in the very record in which it made it.
        let begins = after.name() == TaskState::Waiting
            || (after.in_run && after.name() == TaskState::Canceled);
        return hold(Law::OnlyLegalSteps, begins, || format!("it begins as {}", after.name()));
    };
    let (from, to) = (before.name(), after.name());
    // Several items of one record may touch a task: a lease that was released can be reported
    // late in the same request. Each single step is legal; from here only the ends can be seen.
    hold(Law::OnlyLegalSteps, from.may_become(to), || format!("{from} became {to}"))?;
    if from == TaskState::Completed {
        let mut same = *before;
        same.last_lsn = after.last_lsn;
        hold(Law::OnlyLegalSteps, same == *after, || "it is COMPLETED and changed".to_owned())?;
    }
    hold(Law::LeaseIdsGrow, before.lease_id <= after.lease_id, || {
        format!("lease {} came after {}", after.lease_id, before.lease_id)
    })
}

/// The laws that bind a slot to the counters and to what it refers to.
fn check_bounds(facts: &Facts, task: &Task) -> Result<(), Violation> {
    hold(Law::LeaseIdsGrow, task.lease_id < facts.next_lease_id, || {
        format!("lease {} was never given", task.lease_id)
    })?;
    hold(Law::PartsHaveOneOwner, facts.queues.get(task.queue).is_some(), || {
        "its queue does not exist".to_owned()
    })?;
    let cold = facts.cold_of(task);
    hold(Law::PartsHaveOneOwner, task.cold.get().is_none() || cold.is_some(), || {
        "its cold part does not exist".to_owned()
    })?;
    check_cold(task, cold)
}

/// The laws that bind a slot to its cold part.
fn check_cold(task: &Task, cold: Option<&Cold>) -> Result<(), Violation> {
    let Some(cold) = cold else { return Ok(()) };
    has_budget(task, Some(cold))?;
    hold(Law::StaleLeaseWasGiven, cold.stale_lease <= task.lease_id, || {
        format!("lease {} was reported late but never given", cold.stale_lease)
    })?;
    let TaskPhase::Leased { expires_at, .. } = task.state else {
        hold(Law::RevocationNeedsALease, cold.revoke_at == Timestamp::ZERO, || {
            format!("it is {} and its lease is to be revoked", task.name())
        })?;
        return hold(Law::AttemptNeedsALease, cold.attempt_deadline_at == Timestamp::ZERO, || {
            format!("it is {} and its attempt has a deadline", task.name())
        });
    };
    let in_time = |bound: Timestamp| bound == Timestamp::ZERO || expires_at <= bound;
    let bounds = [cold.deadline_at, cold.revoke_at, cold.attempt_deadline_at];
    hold(Law::LeaseEndsInTime, bounds.into_iter().all(in_time), || {
        format!("its lease ends at {expires_at:?}, too late")
    })
}

/// What the walk over all tasks gathers.
#[derive(Default)]
struct Seen {
    leases: BTreeMap<LeaseId, TaskId>,
    keys: BTreeSet<(QueueRef, String)>,
    cold_parts: BTreeSet<u32>,
    tasks_by_queue: BTreeMap<QueueRef, u64>,
    tasks_by_name: BTreeMap<NameRef, u64>,
    leases_by_worker: BTreeMap<WorkerRef, u32>,
}

impl Seen {
    fn note(&mut self, facts: &Facts, id: TaskId, task: &Task) -> Result<(), Violation> {
        let in_range = id.is_some() && id < facts.next_task_id && id.0 <= ID_MAX;
        hold(Law::IdsComeFromCounters, in_range && task.lease_id.0 <= ID_MAX, || {
            format!("task {id} or its lease {} was never given", task.lease_id)
        })?;
        *self.tasks_by_queue.entry(task.queue).or_default() += 1;
        if let Some(name) = task.name.get() {
            *self.tasks_by_name.entry(name).or_default() += 1;
        }
        if task.lease_id.is_some()
            && let Some(other) = self.leases.insert(task.lease_id, id)
        {
            let found = format!("tasks {other} and {id} both had lease {}", task.lease_id);
            return Err(Violation { law: Law::OneLeasePerTask, found });
        }
        if let TaskPhase::Leased { worker, .. } = task.state {
            *self.leases_by_worker.entry(worker).or_default() += 1;
        }
        for (blob, kind) in [(task.payload, "payload"), (task.output, "output")] {
            let owner = facts.blobs.owner(blob);
            hold(Law::PartsHaveOneOwner, owner.is_none_or(|(owner, _)| owner == id), || {
                format!("the {kind} of task {id} belongs to another")
            })?;
        }
        let Some(cold) = task.cold.get() else { return Ok(()) };
        hold(Law::PartsHaveOneOwner, self.cold_parts.insert(cold.0), || {
            format!("task {id} shares its cold part")
        })?;
        if let Some(cold) = facts.cold.get(cold) {
            let (copy, of) = (cold.dead_letter, cold.dead_letter_of);
            let is_copied = of == TaskId::NONE && id < copy && copy < facts.next_task_id;
            hold(
                Law::DeadLettersAreLinked,
                of < id && (copy == TaskId::NONE || is_copied),
                || format!("task {id} is the copy of task {of} and has task {copy} as its copy"),
            )?;
        }
        if let Some(key) = facts.cold.get(cold).and_then(Cold::held_key) {
            let is_new = self.keys.insert((task.queue, key.text.to_string()));
            hold(Law::KeysAreUnique, is_new, || format!("the key {:?} is held twice", key.text))?;
        }
        Ok(())
    }

    fn check(&self, facts: &Facts) -> Result<(), Violation> {
        hold(Law::PartsHaveOneOwner, self.cold_parts.len() == facts.cold.len(), || {
            format!("{} cold parts for {} tasks", facts.cold.len(), self.cold_parts.len())
        })?;
        for (at, queue) in facts.queues.iter() {
            let tasks = self.tasks_by_queue.get(&at).copied().unwrap_or_default();
            let needed = tasks == queue.tasks && (tasks > 0 || queue.configured);
            hold(Law::NothingUnused, needed, || {
                format!("queue {:?} counts {} tasks and has {tasks}", queue.name, queue.tasks)
            })?;
        }
        let kept = facts.queues.iter().map(|(_, queue)| queue).filter(|queue| queue.configured);
        let kept: BTreeSet<&str> = kept.map(|queue| &*queue.name).collect();
        for (_, queue) in facts.queues.iter() {
            let Some(name) = &queue.settings.dead_letter_queue else { continue };
            let is_there = *name != queue.name && kept.contains(&**name);
            hold(Law::DeadLettersAreLinked, is_there, || {
                format!("queue {:?} has {name:?} as its dead letter queue", queue.name)
            })?;
        }
        for (at, name) in facts.task_names.iter() {
            let tasks = self.tasks_by_name.get(&at).copied().unwrap_or_default();
            hold(Law::NothingUnused, tasks == name.tasks && tasks > 0, || {
                format!("name {:?} counts {} tasks and has {tasks}", name.text, name.tasks)
            })?;
        }
        for (at, worker) in facts.workers.iter() {
            let leases = self.leases_by_worker.get(&at).copied().unwrap_or_default();
            hold(Law::NothingUnused, leases == worker.leases && leases > 0, || {
                format!("worker {:?} counts {} leases and has {leases}", worker.name, worker.leases)
            })?;
        }
        Ok(())
    }
}

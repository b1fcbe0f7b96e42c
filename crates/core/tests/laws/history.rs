//! What an observer of the log sees: every task's steps form one chain from its creation, every
//! grant ends once, and nothing is completed twice.

use std::collections::BTreeMap;

use tenure_record::event::Record;
use tenure_record::state::TaskState;
use tenure_record::transition::{Transition, transitions};

use crate::model::Step;

/// Everything told so far, purged tasks included.
#[derive(Default)]
pub(crate) struct History {
    tasks: BTreeMap<u64, Life>,
    last_lease: u64,
}

#[derive(Default)]
struct Life {
    /// LSN of each step, and of the one before it.
    chain: Vec<(u64, u64)>,
    state: TaskState,
    grants: u32,
    ends: u32,
    completions: u32,
}

impl History {
    /// Reads a record and compares it with what the model saw happen.
    pub(crate) fn read(&mut self, record: &Record<'_>, expected: &[Step]) -> Result<(), String> {
        let told = transitions(record);
        for (at, transition) in told.iter().enumerate() {
            if transition.index != at {
                return Err(format!("transition {at} says that it is number {}", transition.index));
            }
            self.step(record.lsn.0, transition)?;
        }
        let told: Vec<_> = told.iter().map(as_step).collect();
        if told != expected {
            return Err(format!("the record tells\n{told:#?}\nbut the model saw\n{expected:#?}"));
        }
        Ok(())
    }

    fn step(&mut self, lsn: u64, told: &Transition<'_>) -> Result<(), String> {
        let id = told.task_id.0;
        let Some(from) = told.from else {
            if self.tasks.last_key_value().is_some_and(|(last, _)| id <= *last) {
                return Err(format!("task {id} was created after a larger one"));
            }
            let life = Life { chain: vec![(lsn, 0)], state: told.to, ..Life::default() };
            self.tasks.insert(id, life);
            return Ok(());
        };
        let Some(life) = self.tasks.get_mut(&id) else {
            return Err(format!("task {id} was never created"));
        };
        if from != life.state {
            return Err(format!("task {id} goes on from {from} but was {}", life.state));
        }
        if life.chain.last().is_none_or(|(last, _)| *last != told.previous.0) {
            return Err(format!("task {id} had no step in record {}", told.previous));
        }
        life.chain.push((lsn, told.previous.0));
        if told.event == "LeaseGranted" {
            life.grants += 1;
            let lease = told.lease_id.map_or(0, |lease| lease.0);
            if lease <= self.last_lease {
                return Err(format!("lease {lease} was given after {}", self.last_lease));
            }
            self.last_lease = lease;
        }
        life.ends += u32::from(from == TaskState::Leased && told.to != TaskState::Leased);
        life.completions += u32::from(told.event == "TaskCompleted");
        life.state = told.to;
        let open = life.grants.checked_sub(life.ends);
        if open != Some(u32::from(life.state == TaskState::Leased)) {
            let (grants, ends) = (life.grants, life.ends);
            return Err(format!("task {id} is {}: {grants} grants, {ends} ends", life.state));
        }
        if life.completions > 1 {
            return Err(format!("task {id} was completed twice"));
        }
        Ok(())
    }

    /// Walks every task's chain from its last step back to its creation.
    pub(crate) fn check_chains(&self) -> Result<(), String> {
        for (id, life) in &self.tasks {
            let mut next = life.chain.last().map_or(0, |(lsn, _)| *lsn);
            for (lsn, previous) in life.chain.iter().rev() {
                if *lsn != next {
                    return Err(format!("the history of task {id} breaks before record {lsn}"));
                }
                next = *previous;
            }
            if next != 0 {
                return Err(format!("the history of task {id} does not begin with its creation"));
            }
        }
        Ok(())
    }

    /// The state that the last step led to.
    pub(crate) fn state(&self, id: u64) -> Option<TaskState> {
        self.tasks.get(&id).map(|life| life.state)
    }
}

fn as_step(told: &Transition<'_>) -> Step {
    Step {
        event: told.event,
        task: told.task_id.0,
        queue: told.queue.to_owned(),
        from: told.from,
        to: told.to,
        worker: told.worker.map(str::to_owned),
        lease: told.lease_id.map(|lease| lease.0),
        attempt: told.attempt,
        priority: told.priority.get(),
        code: told.code.map(str::to_owned),
        reason: told.reason.map(str::to_owned),
        previous: told.previous.0,
        dead_letter_of: told.dead_letter_of.map(|id| id.0),
    }
}

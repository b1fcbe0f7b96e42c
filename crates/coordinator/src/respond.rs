//! Nothing is answered before the log has released it: outcomes wait here for the record that they
//! depend on. The type is the proof: only a committed batch makes a [`Released`].

use std::collections::VecDeque;

use tenure_log::Released;
use tenure_record::id::Lsn;

use crate::ask::{Answer, Caller, Outcome};
use crate::limits::{OUTBOX_ITEM_BYTES, OUTBOX_ITEMS_MAX};
use crate::memory::Budget;
use crate::planted::{self, Bug};

/// Outcomes in the order in which they were decided.
#[derive(Debug)]
pub(crate) struct Outbox<C> {
    waiting: VecDeque<Waiting<C>>,
    /// How much is in those outcomes.
    weight: usize,
    /// The pool in which they count.
    memory: Budget,
    released: Lsn,
}

#[derive(Debug)]
struct Waiting<C> {
    /// The last record when this was decided: what it saw.
    seen: Lsn,
    caller: C,
    outcome: Outcome,
}

impl<C: Caller> Outbox<C> {
    /// Everything up to this record is durable already: it was recovered.
    pub(crate) fn new(released: Lsn, memory: Budget) -> Self {
        Self { waiting: VecDeque::new(), weight: 0, memory, released }
    }

    /// Whether another outcome may wait.
    pub(crate) fn has_room(&self) -> bool {
        self.weight < OUTBOX_ITEMS_MAX && self.memory.used() < self.memory.max()
    }

    /// The last record that may be told.
    pub(crate) fn released(&self) -> Lsn {
        self.released
    }

    /// Tells an outcome when everything up to `seen` may be told, which can be at once.
    pub(crate) fn put(&mut self, seen: Lsn, caller: C, outcome: Outcome, lost: &mut Vec<Outcome>) {
        let early = u64::from(planted::has(Bug::ReleasedOneEarly));
        if seen.0 <= self.released.0 + early {
            lost.extend(caller.tell(outcome).err());
        } else {
            self.weight += weight(&outcome);
            self.waiting.push_back(Waiting { seen, caller, outcome });
            self.count();
        }
    }

    /// Answers what is released now. Outcomes whose callers are gone are given back.
    pub(crate) fn release(&mut self, released: Released, lost: &mut Vec<Outcome>) {
        self.released = self.released.max(Lsn(released.lsn().0));
        while let Some(next) = self.waiting.front()
            && next.seen <= self.released
            && let Some(Waiting { caller, outcome, .. }) = self.waiting.pop_front()
        {
            self.weight -= weight(&outcome);
            lost.extend(caller.tell(outcome).err());
        }
        self.count();
    }

    fn count(&self) {
        self.memory.set(self.weight as u64 * OUTBOX_ITEM_BYTES);
    }

    /// Everybody who still waits, to be told that it is over.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = C> + '_ {
        self.waiting.drain(..).map(|waiting| waiting.caller)
    }
}

/// How many things are in an outcome, about.
fn weight(outcome: &Outcome) -> usize {
    let Ok(answer) = outcome else { return 1 };
    1 + match answer {
        Answer::Submitted(items) => items.len() / 8,
        Answer::StartedMany(items) => items.len() / 8,
        Answer::Leased(grants) => grants.len(),
        Answer::Reported(items) => items.len() / 4,
        Answer::Tasks(page) => page.tasks.len(),
        Answer::Due(due) => due.tasks.len() + due.runs.len(),
        Answer::RunTasks(page) => page.tasks.len(),
        Answer::Runs(page) => page.runs.len(),
        Answer::Tokens(page) => page.tokens.len(),
        Answer::Artifacts(artifacts) => artifacts.len() / 4,
        Answer::Workflows(page) => page.workflows.len(),
        Answer::Queues(page) => page.items.len(),
        Answer::Workers(page) => page.items.len(),
        Answer::Extended(_)
        | Answer::State(..)
        | Answer::Swept(_)
        | Answer::Settings(_)
        | Answer::Skipped(_)
        | Answer::WorkflowVersion(_)
        | Answer::Began(..)
        | Answer::Started(_)
        | Answer::Run(_)
        | Answer::Workflow(_)
        | Answer::RunState(..)
        | Answer::Signaled(_)
        | Answer::SignaledByKey(..)
        | Answer::RunWithKey(_)
        | Answer::Deleted
        | Answer::Task(_)
        | Answer::Explained(_)
        | Answer::Taken(..)
        | Answer::Queue(_)
        | Answer::Registered
        | Answer::SignedOff(_)
        | Answer::Snapshot(_)
        | Answer::Status(_)
        | Answer::Facts(_) => 0,
    }
}

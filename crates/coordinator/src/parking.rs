//! Long polls: lease requests that wait for work and readers that wait for an end, bounded in number
//! and in bytes. They are parked, not polled: what they wait for finds them.

use std::sync::Arc;

use tenure_core::command::{Command, LeaseTasks};
use tenure_log::Log;
use tenure_record::id::{RunId, TaskId};
use tenure_record::time::Now;

use crate::ask::{Answer, Caller, Outcome, Refusal};
use crate::limits::{PARKED_LEASES_MAX, PARKED_READERS_MAX, WAIT_MS_MAX};
use crate::memory::Pool;
use crate::planted::{self, Bug};
use crate::step::Coordinator;
use crate::supply::Rest;
use crate::wait::Wait;

/// What a request that waits takes beside the names of its queues, about.
const PARKED_BYTES: usize = 1_024;
/// What each of those names takes beside its text, about.
const PARKED_ENTRY_BYTES: usize = 64;

/// A worker that waits for work.
#[derive(Debug)]
pub(crate) struct ParkedLease<C> {
    /// Always a lease command: kept as it will be decided.
    pub(crate) command: Arc<Command>,
    pub(crate) caller: C,
}

/// What a reader waits for: its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Awaited {
    Task(TaskId),
    Run(RunId),
}

/// Somebody who waits for a task or a run to end.
#[derive(Debug)]
pub(crate) struct ParkedReader<C> {
    pub(crate) awaited: Awaited,
    pub(crate) caller: C,
}

impl<L: Log, C: Caller> Coordinator<L, C> {
    /// Leases work, or parks the request until there is some.
    pub(crate) fn lease(&mut self, request: LeaseTasks, wait_ms: u64, caller: C, now: Now) {
        if caller.is_gone() && !planted::has(Bug::GrantedToTheGone) {
            return;
        }
        self.workers.saw(request.worker.as_str(), now.log);
        let queues: Vec<Arc<str>> = match wait_ms {
            0 => Vec::new(),
            _ => request.queues.iter().map(|queue| Arc::from(queue.as_str())).collect(),
        };
        let command = Command::LeaseTasks(request);
        let outcome = self.lease_out(&command, now);
        let wait_ms = wait_ms.min(WAIT_MS_MAX);
        if !matches!(&outcome, Ok(Answer::Leased(grants)) if grants.is_empty()) || wait_ms == 0 {
            return self.put(caller, outcome);
        }
        // Each queue is named in the request, in the waiter and in the line of those who wait.
        let names = queues.iter().map(|queue| 2 * (PARKED_ENTRY_BYTES + queue.len()));
        let bytes = (PARKED_BYTES + names.sum::<usize>()) as u64;
        if let Some(refusal) = self.parked_too_large(bytes) {
            return self.put(caller, Err(refusal));
        }
        let parked = ParkedLease { command: Arc::new(command), caller };
        let until = now.log.plus_ms(wait_ms);
        let gone = |parked: &ParkedLease<C>| parked.caller.is_gone();
        let wait = Wait { until, bytes };
        if let Err(parked) = self.parked.park(queues, wait, now.log, parked, gone) {
            let (what, limit) = ("lease requests parked", PARKED_LEASES_MAX);
            self.put(parked.caller, Err(Refusal::Overloaded { what, limit }));
        }
    }

    /// The refusal for a request that would take more memory than all that wait may.
    fn parked_too_large(&self, bytes: u64) -> Option<Refusal> {
        let max = self.memory.pool(Pool::Parked).max();
        let used = self.parked.bytes() + self.readers.bytes();
        let limit = usize::try_from(max).unwrap_or(usize::MAX);
        (used + bytes > max)
            .then_some(Refusal::Overloaded { what: "bytes of requests parked", limit })
    }

    /// Decides a lease command, and notes what it leaves behind.
    pub(crate) fn lease_out(&mut self, command: &Command, now: Now) -> Outcome {
        let outcome = self.run(command, now);
        if let Command::LeaseTasks(request) = command
            && matches!(&outcome, Ok(Answer::Leased(grants)) if !grants.is_empty())
        {
            let rest = match request.queues.iter().any(|name| self.state.has_ready(name.as_str())) {
                true => Rest::Something,
                false => Rest::Nothing,
            };
            self.last_leases.granted(rest, now.log);
        }
        outcome
    }

    /// Answers once a task or a run has ended, or parks the reader until then.
    pub(crate) fn wait_for_end(&mut self, awaited: Awaited, wait_ms: u64, caller: C, now: Now) {
        let outcome = self.look_at(awaited);
        let wait_ms = wait_ms.min(WAIT_MS_MAX);
        let is_over = match &outcome {
            Ok(Answer::Task(task)) => task.state.is_terminal(),
            Ok(Answer::Run(run)) => run.is_over(),
            Ok(_) | Err(_) => true,
        };
        if is_over || wait_ms == 0 {
            return self.put(caller, outcome);
        }
        let until = now.log.plus_ms(wait_ms);
        let gone = |reader: &ParkedReader<C>| reader.caller.is_gone();
        let bytes = PARKED_BYTES as u64;
        if let Some(refusal) = self.parked_too_large(bytes) {
            return self.put(caller, Err(refusal));
        }
        let reader = ParkedReader { awaited, caller };
        let wait = Wait { until, bytes };
        if let Err(reader) = self.readers.park(vec![awaited], wait, now.log, reader, gone) {
            let (what, limit) = ("readers parked", PARKED_READERS_MAX);
            self.put(reader.caller, Err(Refusal::Overloaded { what, limit }));
        }
    }
}

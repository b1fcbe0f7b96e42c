//! Long polls: lease requests that wait for work and readers that wait for an end, bounded in number
//! and in bytes. They are parked, not polled: what they wait for finds them.

use std::sync::Arc;

use tenure_core::command::{Command, Leased};
use tenure_log::Log;
use tenure_record::id::{RunId, TaskId};
use tenure_record::time::{Now, Timestamp};

use crate::info::Grant;
use crate::limits::{PARKED_LEASES_MAX, PARKED_READERS_MAX, WAIT_MS_MAX};
use crate::planted::{self, Bug};
use crate::refusal::Refusal;
use crate::request::{GetRun, GetTask, Lease, Ready, Request, Responder};
use crate::step::Coordinator;
use crate::supply::Rest;
use crate::wait::{Wait, Waiters};

/// What a request that waits takes beside the names of its queues, about.
const PARKED_BYTES: usize = 1_024;
/// What each of those names takes beside its text, about.
const PARKED_ENTRY_BYTES: usize = 64;

/// A worker that waits for work.
#[derive(Debug)]
pub(crate) struct ParkedLease {
    /// Always a lease command: kept as it will be decided.
    pub(crate) command: Arc<Command>,
    pub(crate) to: Responder<Lease>,
}

/// What a reader waits for: its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Awaited {
    Task(TaskId),
    Run(RunId),
}

/// A read that waits for a task or a run to end.
#[derive(Debug)]
pub(crate) enum ParkedReader {
    Task(TaskId, Responder<GetTask>),
    Run(RunId, Responder<GetRun>),
}

impl ParkedReader {
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            ParkedReader::Task(_, to) => to.is_gone(),
            ParkedReader::Run(_, to) => to.is_gone(),
        }
    }

    pub(crate) fn refuse(self, refusal: Refusal) -> Ready {
        match self {
            ParkedReader::Task(_, to) => Request::ready(to, Err(refusal)),
            ParkedReader::Run(_, to) => Request::ready(to, Err(refusal)),
        }
    }

    fn awaited(&self) -> Awaited {
        match self {
            ParkedReader::Task(task_id, _) => Awaited::Task(*task_id),
            ParkedReader::Run(run_id, _) => Awaited::Run(*run_id),
        }
    }
}

/// The long polls of all callers.
#[derive(Debug)]
pub(crate) struct Parking {
    /// Lease requests, by the queues from which they want work.
    pub(crate) leases: Waiters<Arc<str>, ParkedLease>,
    /// Readers, by what they wait for.
    pub(crate) readers: Waiters<Awaited, ParkedReader>,
    /// Queues whose parked lease requests are still to be served.
    pub(crate) ready_queues: Vec<Arc<str>>,
}

impl Default for Parking {
    fn default() -> Self {
        Self {
            leases: Waiters::new(PARKED_LEASES_MAX),
            readers: Waiters::new(PARKED_READERS_MAX),
            ready_queues: Vec::new(),
        }
    }
}

impl Parking {
    /// Bytes of memory that parked requests take, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.leases.bytes() + self.readers.bytes()
    }

    /// When the first parked request has waited long enough.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        [self.leases.next_deadline(), self.readers.next_deadline()].into_iter().flatten().min()
    }

    /// Removes requests whose callers are gone.
    pub(crate) fn sweep(&mut self, now: Now) {
        self.leases.sweep(now.log, |parked| parked.to.is_gone());
        self.readers.sweep(now.log, ParkedReader::is_gone);
    }

    /// Notes that something became ready in a queue, if a request waits for it. A request that is
    /// parked later looks at the queue itself first.
    pub(crate) fn note_ready(&mut self, queue: Arc<str>) {
        if self.leases.first(&queue).is_some() {
            self.ready_queues.push(queue);
        }
    }

    /// Refuses all parked requests.
    pub(crate) fn refuse_all(&mut self, refusal: &Refusal) -> Vec<Ready> {
        let leases = self.leases.remove_if(|_| true).into_iter();
        let leases = leases.map(|parked| Request::ready(parked.to, Err(refusal.clone())));
        let readers = self.readers.remove_if(|_| true).into_iter();
        leases.chain(readers.map(|reader| reader.refuse(refusal.clone()))).collect()
    }
}

impl<L: Log> Coordinator<L> {
    /// Leases work, or parks the request until there is some.
    pub(crate) fn lease(&mut self, lease: Lease, to: Responder<Lease>, now: Now) {
        let Lease { request, wait_ms } = lease;
        if to.is_gone() && !planted::has(Bug::GrantedToTheGone) {
            return;
        }
        self.soft.workers.saw(request.worker.as_str(), now.log);
        let queues: Vec<Arc<str>> = match wait_ms {
            0 => Vec::new(),
            _ => request.queues.iter().map(|queue| Arc::from(queue.as_str())).collect(),
        };
        let command = Command::LeaseTasks(request);
        let outcome = self.lease_out(&command, now);
        let wait_ms = wait_ms.min(WAIT_MS_MAX);
        if !outcome.as_ref().is_ok_and(Vec::is_empty) || wait_ms == 0 {
            return self.put(to, outcome);
        }
        // Each queue is named in the request, in the waiter and in the line of those who wait.
        let names = queues.iter().map(|queue| 2 * (PARKED_ENTRY_BYTES + queue.len()));
        let bytes = (PARKED_BYTES + names.sum::<usize>()) as u64;
        if let Some(refusal) = self.parked_too_large(bytes) {
            return self.put(to, Err(refusal));
        }
        let parked = ParkedLease { command: Arc::new(command), to };
        let until = now.log.plus_ms(wait_ms);
        let gone = |parked: &ParkedLease| parked.to.is_gone();
        let wait = Wait { until, bytes };
        if let Err(parked) = self.parking.leases.park(queues, wait, now.log, parked, gone) {
            let (what, limit) = ("lease requests parked", PARKED_LEASES_MAX);
            self.put(parked.to, Err(Refusal::Overloaded { what, limit }));
        }
    }

    /// The refusal for a request that would take more memory than all that wait may.
    fn parked_too_large(&self, bytes: u64) -> Option<Refusal> {
        let (max, used) = (self.housekeeping.parked_bytes_max(), self.parking.bytes());
        let limit = usize::try_from(max).unwrap_or(usize::MAX);
        (used + bytes > max)
            .then_some(Refusal::Overloaded { what: "bytes of requests parked", limit })
    }

    /// Decides a lease command, and notes what it leaves behind.
    pub(crate) fn lease_out(&mut self, command: &Command, now: Now) -> Result<Vec<Grant>, Refusal> {
        let leases: Vec<Leased> = self.run_as(command, now)?;
        if let Command::LeaseTasks(request) = command
            && !leases.is_empty()
        {
            let rest = match request.queues.iter().any(|name| self.state.has_ready(name.as_str())) {
                true => Rest::Something,
                false => Rest::Nothing,
            };
            self.soft.last_leases.granted(rest, now.log);
        }
        Ok(leases.iter().map(|lease| self.grant(lease)).collect())
    }

    /// Answers once a task has ended, or parks the read until then.
    pub(crate) fn wait_for_task(&mut self, request: GetTask, to: Responder<GetTask>, now: Now) {
        let GetTask { task_id, wait_ms } = request;
        let outcome = self.task(task_id);
        let is_over = outcome.as_ref().is_ok_and(|task| task.state.is_terminal());
        if outcome.is_err() || is_over || wait_ms == 0 {
            return self.put(to, outcome);
        }
        self.park_reader(ParkedReader::Task(task_id, to), wait_ms, now);
    }

    /// Answers once a run is over, or parks the read until then.
    pub(crate) fn wait_for_run(&mut self, request: GetRun, to: Responder<GetRun>, now: Now) {
        let GetRun { run_id, wait_ms } = request;
        let outcome = self.run_info(run_id);
        let is_over = outcome.as_ref().is_ok_and(|run| run.is_over());
        if outcome.is_err() || is_over || wait_ms == 0 {
            return self.put(to, outcome);
        }
        self.park_reader(ParkedReader::Run(run_id, to), wait_ms, now);
    }

    /// Answers a parked read with what it waited for, as it is.
    pub(crate) fn show_to(&mut self, reader: ParkedReader) {
        match reader {
            ParkedReader::Task(task_id, to) => self.put(to, self.task(task_id)),
            ParkedReader::Run(run_id, to) => self.put(to, self.run_info(run_id)),
        }
    }

    fn park_reader(&mut self, reader: ParkedReader, wait_ms: u64, now: Now) {
        let bytes = PARKED_BYTES as u64;
        if let Some(refusal) = self.parked_too_large(bytes) {
            return self.put_ready(reader.refuse(refusal));
        }
        let wait = Wait { until: now.log.plus_ms(wait_ms.min(WAIT_MS_MAX)), bytes };
        let awaited = vec![reader.awaited()];
        let parked =
            self.parking.readers.park(awaited, wait, now.log, reader, ParkedReader::is_gone);
        if let Err(reader) = parked {
            let (what, limit) = ("readers parked", PARKED_READERS_MAX);
            self.put_ready(reader.refuse(Refusal::Overloaded { what, limit }));
        }
    }
}

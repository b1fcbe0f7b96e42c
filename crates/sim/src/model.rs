//! What the outside asked for, and what it was told. It never looks inside.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tenure_coordinator::request::{CompleteTask, SubmitTask};
use tenure_core::command::NewTask;
use tenure_record::id::{LeaseId, Lsn, RunId, TaskId};

use crate::callers::CallerId;
use crate::check::AskedToForget;
use crate::request::AnyRequest;

/// A request of an actor; it may reach the coordinator in several copies.
pub(crate) type RequestId = u64;

/// Tasks that were sent together, however often.
pub(crate) type SubmissionId = u64;

/// One copy of a request at the coordinator.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) request: RequestId,
    pub(crate) actor: usize,
    pub(crate) ask: Rc<AnyRequest>,
    /// Which start of the coordinator it reached.
    pub(crate) start: u64,
    /// When it came, by virtual time.
    pub(crate) at: u64,
    /// The last record that could be told by then: an answer may not be older.
    pub(crate) after: Lsn,
    /// The last record that was decided when its caller left.
    pub(crate) gone_at: Option<Lsn>,
}

/// Tasks that were sent together.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) tasks: Vec<NewTask>,
    /// Copies that reached the coordinator.
    pub(crate) copies: u64,
    /// Copies that were refused.
    pub(crate) refused: u64,
    /// Records that took them.
    pub(crate) taken: u64,
}

/// All that was asked and told.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// Copies that are at the coordinator and were not answered.
    pub(crate) waiting: BTreeMap<CallerId, Delivery>,
    pub(crate) submissions: BTreeMap<SubmissionId, Submission>,
    /// Tasks that somebody was told of, and the payload that they must have.
    pub(crate) acknowledged: BTreeMap<TaskId, Vec<u8>>,
    /// Tasks that somebody was told to have made.
    pub(crate) made: BTreeSet<TaskId>,
    /// Leases that somebody was told of, or would have been.
    pub(crate) granted: BTreeSet<LeaseId>,
    /// Outputs that were sent under each lease.
    pub(crate) outputs: BTreeMap<LeaseId, BTreeSet<Vec<u8>>>,
    pub(crate) told: u64,
    /// Runs that somebody was told to have started.
    pub(crate) runs: BTreeSet<RunId>,
    /// What anybody asked to be forgotten.
    pub(crate) purges: AskedToForget,
}

impl Model {
    /// A copy has reached the coordinator.
    pub(crate) fn delivered(&mut self, caller: CallerId, delivery: Delivery) {
        self.note(&delivery.ask);
        self.waiting.insert(caller, delivery);
    }

    /// A task was purged long ago.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.acknowledged.remove(&task);
        self.made.remove(&task);
    }

    fn note(&mut self, request: &AnyRequest) {
        self.purges.note_request(request);
        let mut sent = |complete: &CompleteTask| {
            let outputs = self.outputs.entry(complete.lease.lease_id).or_default();
            outputs.insert(complete.output.as_bytes().to_vec());
        };
        if let AnyRequest::CompleteTask(complete) = request {
            sent(complete);
        }
        if let AnyRequest::ReportTasks(report) = request {
            report.completes.iter().for_each(sent);
        }
        if let AnyRequest::SubmitTasks(submit) = request {
            self.note_submit(&submit.tasks);
        }
        if let AnyRequest::SubmitTask(SubmitTask(task)) = request {
            self.note_submit(std::slice::from_ref(task));
        }
    }

    fn note_submit(&mut self, tasks: &[NewTask]) {
        let first = tasks.first().and_then(|task| nonce(task.payload.as_bytes()));
        let Some((id, _)) = first else { return };
        let fresh = || Submission { tasks: tasks.to_vec(), copies: 0, refused: 0, taken: 0 };
        self.submissions.entry(id).or_insert_with(fresh).copies += 1;
    }
}

/// The payload of a task: which submission it is from, and its place there.
pub(crate) fn payload(id: SubmissionId, index: usize, padding: &str) -> Vec<u8> {
    format!("{id}.{index}.{padding}").into_bytes()
}

/// What is behind the place of a task that takes its worker with it.
pub(crate) const POISON: &str = "poison";

/// Whether a task takes its worker with it.
pub(crate) fn is_poison(payload: &[u8]) -> bool {
    payload.ends_with(POISON.as_bytes())
}

/// Reads what [`payload`] wrote.
pub(crate) fn nonce(payload: &[u8]) -> Option<(SubmissionId, usize)> {
    let text = std::str::from_utf8(payload).ok()?;
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

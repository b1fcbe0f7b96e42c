//! Coverage: how often each path was taken, and which never was and so is not tested.

use std::collections::BTreeMap;

use tenure_coordinator::Refusal;
use tenure_coordinator::request::REQUEST_NAMES;
use tenure_core::Rejection;

use crate::check::wait_ms;
use crate::request::{AnyRequest, AnyResponse, Outcome};

/// Refusals that need more than a world of ten minutes holds, and where each is tested instead.
pub const OUT_OF_REACH: [(&str, &str); 9] = [
    ("TooManyQueues", "100,000 queues: core/src/decide/tests/submit_tasks.rs"),
    ("TooManyWorkflows", "10,000 workflows: core/src/decide/tests/register_workflow.rs"),
    ("TooManyVersions", "10,000 versions: core/src/decide/tests/register_workflow.rs"),
    ("ValueTooLarge", "a value of more than 1 MiB: core/tests/runs/bounds.rs"),
    ("SignalBytesFull", "16 MiB of signals that no token takes: core/tests/runs/bounds.rs"),
    ("SignalsFull", "1,000 signals that nobody takes: core/tests/runs/bounds.rs"),
    ("IdsExhausted", "2^43 ids: core/src/decide/tests/skip_ids.rs"),
    ("MemoryFull", "a budget of memory: cli/tests/it/memory.rs"),
    ("Trimmed", "is told by the server's own reader: cli/tests/it/wal/trimmed.rs"),
];

/// Everything that a simulation must see over the seeds of a change, by kind. It must also send every
/// request of the coordinator but [`NOT_SENT`].
const EXPECTED: [(&str, &[&str]); 5] = [
    (
        "event",
        &[
            "TaskCreated",
            "LeaseGranted",
            "LeaseExtended",
            "LeaseExpired",
            "LeaseReleased",
            "TaskCompleted",
            "TaskFailed",
            "StaleReportRejected",
            "dead letter",
            "several reports",
            "CancelRequested",
            "TaskRetried",
            "TimerFired",
            "QueueConfigured",
            "QueueDeleted",
            "RunsStarted",
            "RunStartedBySignal",
            "TasksPurged",
            "WorkflowRegistered",
            "RunStarted",
            "SignalReceived",
            "RunCancelRequested",
            "DispatchContinued",
            "EndContinued",
            "RunParked",
            "RunParked as asked",
            "RunUnparked",
            "IdsSkipped",
        ],
    ),
    (
        "refusal",
        // Not `WorkflowBroken`: only another release's compiler finds faults in a stored definition
        // (`core/tests/runs/broken.rs`).
        &[
            "QueueFull",
            "TaskNotFound",
            "LeaseLost",
            "TaskTerminal",
            "NotRetryable",
            "KeyConflict",
            "RunKeyConflict",
            "KeyTwice",
            "BatchTooLarge",
            "RecordTooLarge",
            "Overloaded",
            "DiskFull",
            "Unavailable",
            "RunNotFound",
            "WorkflowNotFound",
            "SignalUnknown",
            "RunOver",
            "RunEnding",
            "RunParked",
            "TaskOfRun",
            "InputInvalid",
            "NoRunForArtifacts",
        ],
    ),
    (
        "fault",
        &[
            "crash at a call",
            "crash in recovery",
            "killed",
            "power lost",
            "stopped in order",
            "Eio",
            "Enospc",
            "Eintr",
            "Short",
            "disk full",
            "clock ahead",
            "clock back",
            "fault ends it",
            "recovery fails",
            "torn end",
            "scar",
            "records that nobody was told of",
            "bad snapshot",
            "slow disk",
            "bit rot",
            "misdirected write",
            "blank sector",
            "damage refused",
            "damage without harm",
            "clock drift",
            "short records",
            "long names",
            "silent follower",
            "worker silence",
            "worker death",
            "poison",
            "zombie",
            "flood",
        ],
    ),
    (
        "log",
        &[
            "committed here",
            "committed beside",
            "frame held",
            "mark",
            "snapshot",
            "snapshot given up",
            "segment trimmed",
            "start from a snapshot",
        ],
    ),
    (
        "network",
        &[
            "request lost",
            "request doubled",
            "reply lost",
            "reply doubled",
            "nobody there",
            "given up",
            "left",
            "unclaimed grant",
            "follower cut",
            "empty lease",
            "overtaken",
            "late",
        ],
    ),
];

/// Requests that the simulation does not send, and where each is tested instead.
const NOT_SENT: [(&str, &str); 5] = [
    ("DeleteWorkflow", "coordinator/tests/golden.rs"),
    ("FindRun", "cli/tests/it/flows/by_key.rs"),
    ("ListDue", "coordinator/tests/it/archive.rs"),
    ("ListRunTasks", "coordinator/tests/it/archive.rs"),
    ("PurgeArchived", "coordinator/tests/it/archive.rs"),
];

/// Requests that are counted apart when they wait.
const WAITS: [&str; 3] = ["Lease and wait", "GetTask and wait", "GetRun and wait"];

/// Counts by kind and name.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<(&'static str, &'static str), u64>,
}

impl Coverage {
    pub(crate) fn add(&mut self, kind: &'static str, name: &'static str) {
        self.add_many(kind, name, 1);
    }

    pub(crate) fn add_many(&mut self, kind: &'static str, name: &'static str, count: u64) {
        if count > 0 {
            *self.counts.entry((kind, name)).or_default() += count;
        }
    }

    /// How often it happened.
    #[must_use]
    pub fn count(&self, kind: &str, name: &str) -> u64 {
        let found = self.counts.iter().find(|((k, n), _)| *k == kind && *n == name);
        found.map_or(0, |(_, count)| *count)
    }

    /// All of a kind together.
    #[must_use]
    pub fn total(&self, kind: &str) -> u64 {
        self.counts.iter().filter(|((k, _), _)| *k == kind).map(|(_, count)| count).sum()
    }

    /// Adds another run's counts.
    pub fn merge(&mut self, other: &Self) {
        for ((kind, name), count) in &other.counts {
            self.add_many(kind, name, *count);
        }
    }

    /// Counts of a kind, by name.
    pub fn of(&self, kind: &str) -> impl Iterator<Item = (&'static str, u64)> {
        let all = self.counts.iter().filter(move |((k, _), _)| *k == kind);
        all.map(|((_, name), count)| (*name, *count))
    }

    /// The kinds there are.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        std::iter::once("ask").chain(EXPECTED.iter().map(|(kind, _)| *kind))
    }

    /// What should have happened and never did.
    #[must_use]
    pub fn never(&self) -> Vec<String> {
        let is_sent = |name: &&&str| NOT_SENT.iter().all(|(not_sent, _)| not_sent != *name);
        let asks = REQUEST_NAMES.iter().filter(is_sent).chain(&WAITS).map(|name| ("ask", *name));
        let others = EXPECTED.iter().flat_map(|(kind, names)| names.iter().map(|n| (*kind, *n)));
        let never = asks.chain(others).filter(|(kind, name)| self.count(kind, name) == 0);
        never.map(|(kind, name)| format!("{kind}: {name}")).collect()
    }
}

pub(crate) fn request_name(request: &AnyRequest) -> &'static str {
    match (request.name(), wait_ms(request)) {
        ("Lease", 1..) => WAITS[0],
        ("GetTask", 1..) => WAITS[1],
        ("GetRun", 1..) => WAITS[2],
        (name, _) => name,
    }
}

pub(crate) fn count_outcome(coverage: &mut Coverage, outcome: &Outcome) {
    match outcome {
        Ok(AnyResponse::Lease(grants)) if grants.is_empty() => {
            coverage.add("network", "empty lease");
        }
        Ok(AnyResponse::ReportTasks(reports)) => {
            for report in reports {
                if let Err(rejection) = &report.result {
                    coverage.add("refusal", rejection_name(rejection));
                }
            }
        }
        Ok(_) => {}
        Err(refusal) => coverage.add("refusal", refusal_name(refusal)),
    }
}

fn refusal_name(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Rejected(rejection) => rejection_name(rejection),
        Refusal::Overloaded { .. } => "Overloaded",
        Refusal::DiskFull => "DiskFull",
        Refusal::MemoryFull { .. } => "MemoryFull",
        Refusal::Trimmed { .. } => "Trimmed",
        Refusal::Unavailable(_) => "Unavailable",
    }
}

fn rejection_name(rejection: &Rejection) -> &'static str {
    if let Rejection::InBatch { rejection, .. } = rejection {
        return rejection_name(rejection);
    }
    rejection.name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_reach_is_tried_where_it_says() {
        for (name, why) in OUT_OF_REACH {
            let (_, path) = why.rsplit_once(": ").expect("it names a file");
            let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&path).expect("the file is there");
            let plain = text.to_lowercase().replace('_', "");
            assert!(plain.contains(&name.to_lowercase()), "{name} is not in {path}");
        }
    }
}

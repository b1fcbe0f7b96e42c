//! The status of a server, and its snapshots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The status of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Status {
    /// The server's version.
    pub version: String,
    /// The server's role, such as `leader`.
    pub role: String,
    /// The LSN of the last record.
    pub lsn: u64,
    /// The LSN of the last durable record.
    pub durable_lsn: u64,
    /// The epoch of the coordinator.
    pub epoch: u64,
    /// The hash of the whole state, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_hash: Option<String>,
    /// The number of tasks in each state, such as `WAITING`.
    pub tasks: BTreeMap<String, u64>,
    /// The number of runs in each state, such as `RUNNING`.
    pub runs: BTreeMap<String, u64>,
    /// The number of runs that are ending over several records, or have branches that are.
    pub ending_runs: u64,
    /// The number of parked runs.
    pub parked_runs: u64,
    /// The number of workflows.
    pub workflows: u64,
    /// The number of lease requests that wait for tasks.
    pub parked_leases: u64,
    /// The number of requests that wait for a task or a run to end.
    pub parked_readers: u64,
    /// The LSN up to which the newest snapshot reaches; `None` if there is no snapshot.
    pub snapshot_lsn: Option<u64>,
    /// The LSN of the oldest record in the log.
    pub log_oldest_lsn: u64,
    /// The size of the log on disk.
    pub log_bytes: u64,
    /// The status of the archive; `None` if the server has none.
    pub archive: Option<ArchiveStatus>,
    /// How far log time is ahead of the wall clock; 0 if it is not. Leases and delays follow log time,
    /// calendar times the wall clock.
    pub log_time_ahead_ms: u64,
    /// The memory budget.
    pub memory: MemoryStatus,
    /// The time since the server started.
    pub uptime_ms: u64,
    /// The server's wall clock.
    pub now: Timestamp,
}

/// The memory budget of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemoryStatus {
    /// The bytes that all pools hold, approximately.
    pub used_bytes: u64,
    /// The bytes that the process may use.
    pub max_bytes: u64,
    /// Whether new work is refused for lack of memory.
    pub full: bool,
    /// The bytes that each pool holds, approximately.
    pub pools: BTreeMap<String, u64>,
}

/// The status of the archive, which receives ended tasks and runs before they are purged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ArchiveStatus {
    /// The folder on the server's machine.
    pub folder: String,
    /// The number of tasks and runs archived since the start.
    pub archived: u64,
    /// The number of bytes written since the start.
    pub bytes: u64,
    /// Why nothing can be archived now; `None` if it can. Until then nothing is purged.
    pub failing: Option<String>,
    /// How long the archive has been failing.
    pub failing_ms: u64,
}

/// A snapshot that is on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Snapshot {
    /// The LSN of the last record whose effect is in the snapshot.
    pub lsn: u64,
    /// The hash of the state.
    pub state_hash: String,
    /// The number of tasks in the snapshot.
    pub tasks: u64,
    /// The size of the snapshot file.
    pub bytes: u64,
    /// How long the snapshot took; 0 if nothing changed since an earlier process took it.
    pub took_ms: u64,
}

//! A line of an archive, as far as it is needed to choose and to list it. The rest of a line is read
//! only for the one that is shown.

use serde::Deserialize;
use tenure_sdk::Timestamp;
use tenure_sdk::api::{TaskError, TaskOfRun};

/// A task or a run.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Item {
    pub(super) id: u64,
    /// Of several lines about one item, the one with the largest LSN counts.
    pub(super) last_lsn: u64,
    pub(super) state: String,
    pub(super) finished_at: Option<Timestamp>,
    pub(super) key: Option<String>,
    /// The error of a task, or as much of a run's.
    pub(super) error: Option<TaskError>,
    /// Of a task.
    pub(super) queue: Option<String>,
    pub(super) attempt: Option<u32>,
    pub(super) run: Option<TaskOfRun>,
    /// Of a run.
    pub(super) workflow: Option<String>,
}

//! A line of an archive, as far as it is needed to choose and to list it.

use serde::Deserialize;

/// A task or a run.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Item {
    pub(super) id: u64,
    /// Of several lines about one thing, the one with the largest counts.
    pub(super) last_lsn: u64,
    pub(super) state: String,
    pub(super) archived_at: String,
    pub(super) finished_at: Option<String>,
    pub(super) key: Option<String>,
    pub(super) error: Option<Error>,
    /// Of a task.
    pub(super) queue: Option<String>,
    pub(super) attempt: Option<u32>,
    pub(super) run: Option<OfRun>,
    /// Of a run.
    pub(super) workflow: Option<String>,
    pub(super) version: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Error {
    #[serde(default)]
    pub(super) code: String,
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct OfRun {
    pub(super) run_id: u64,
    pub(super) node: String,
}

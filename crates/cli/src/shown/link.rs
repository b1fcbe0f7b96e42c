//! A task that another one names.

use serde::Serialize;
use tenure_sdk::wire;

/// Another task, which may be purged.
#[derive(Debug, Serialize)]
pub(super) struct ShownLink {
    task_id: u64,
}

impl ShownLink {
    pub(super) fn of(link: &wire::TaskLink) -> Self {
        Self { task_id: link.task_id }
    }
}

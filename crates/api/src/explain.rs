//! Why a task is not done yet.

use serde::{Deserialize, Serialize};

use crate::{TaskState, Timestamp};

/// Why a task is not done yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explanation {
    /// The task's state.
    pub state: TaskState,
    /// The position in its queue, 1 for the next task; `None` if the task is not in line, or further
    /// behind than is counted.
    pub position: Option<u64>,
    /// What the task waits for, or how it ended.
    pub reasons: Vec<Reason>,
    /// The earliest time at which the task can start, if that is known.
    pub earliest_start_at: Option<Timestamp>,
}

/// One thing that a task waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reason {
    /// The reason, for programs; stable.
    pub code: String,
    /// The reason, for people.
    pub message: String,
    /// When the reason ends, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The worker that the reason is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

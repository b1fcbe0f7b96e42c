//! Tokens: the places in a run where execution is or has been.

use serde::{Deserialize, Serialize};

use crate::text::text_enum;
use crate::{Payload, Timestamp};

text_enum! {
    /// The state of a token.
    #[derive(Default)]
    TokenState {
        /// The token exists and has not started.
        #[default]
        Pending = "pending",
        /// The token has a task that waits for a worker.
        Dispatched = "dispatched",
        /// A worker executes the token's task.
        Executing = "executing",
        /// The token waits for a run of another workflow.
        WaitingForWorkflow = "waiting_for_workflow",
        /// The token waits for a signal.
        WaitingForSignal = "waiting_for_signal",
        /// The token waits for a time.
        WaitingForTimer = "waiting_for_timer",
        /// The token waits for the branches of its group to join.
        WaitingForSiblings = "waiting_for_siblings",
        /// The token's node is done.
        Completed = "completed",
        /// The token's node failed, or the token could not continue.
        Failed = "failed",
        /// The token exceeded its time limit.
        TimedOut = "timed_out",
        /// The token is no longer needed.
        Canceled = "canceled",
    }
}

/// A place in a run where execution is or has been.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Token {
    /// The token's number in its run.
    pub id: u32,
    /// The node.
    pub node: String,
    /// The scope, such as `root/bids#1[4]`.
    pub path: String,
    /// The token that this one comes from.
    pub parent: Option<u32>,
    /// The token's state.
    pub state: TokenState,
    /// The transition that led here, if it has a name.
    pub via: Option<String>,
    /// The group of branches that the token is in.
    pub group: Option<u32>,
    /// The token's branch in that group, from 0.
    pub branch_index: Option<u32>,
    /// The number of branches in that group.
    pub branch_total: Option<u32>,
    /// The token's task.
    pub task_id: Option<u64>,
    /// The child run that the token waits or waited for.
    pub child_run_id: Option<u64>,
    /// The signal that the token waits or waited for.
    pub signal: Option<SignalWait>,
    /// The time that the token waits for.
    pub wakes_at: Option<Timestamp>,
    /// When the token's time limit is reached.
    pub deadline_at: Option<Timestamp>,
    /// Why the token failed, or the error that it handles, as JSON; empty for none.
    pub error: Payload,
}

/// The signal that a token waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignalWait {
    /// The signal's name.
    pub name: String,
    /// The signal's correlation; empty for none.
    pub correlation: String,
}

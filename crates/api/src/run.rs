//! Runs of workflows, their history and artifacts, and the signals that they receive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::text::text_enum;
use crate::{Payload, Timestamp, tags};

text_enum! {
    /// The state of a run.
    #[derive(Default)]
    RunState {
        /// Something in the run is being executed.
        #[default]
        Running = "RUNNING",
        /// Everything live in the run waits for a signal, a timer or another run.
        Waiting = "WAITING",
        /// The run came to its end.
        Completed = "COMPLETED",
        /// The run failed.
        Failed = "FAILED",
        /// The run was canceled.
        Canceled = "CANCELED",
        /// The run exceeded its time limit.
        TimedOut = "TIMED_OUT",
    }
}

impl RunState {
    /// Whether the run has ended.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::TimedOut)
    }
}

/// A run of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Run {
    /// The run's id.
    pub id: u64,
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's version.
    pub version: u32,
    /// The run's state.
    pub state: RunState,
    /// The input, as JSON.
    pub input: Payload,
    /// The context, as JSON.
    pub context: Payload,
    /// The output, as JSON; empty unless the run is COMPLETED.
    pub output: Payload,
    /// The error as JSON, `{code, message, node, attempts, details, causes}`; empty if there is none.
    pub error: Payload,
    /// When the run started.
    pub started_at: Timestamp,
    /// When the run ended.
    pub finished_at: Option<Timestamp>,
    /// When the run's time limit is reached.
    pub deadline_at: Option<Timestamp>,
    /// The token that waits for this run, if it is a child run.
    pub parent: Option<Parent>,
    /// The run at the top of the tree of child runs; the run itself if it has no parent.
    pub root: u64,
    /// How the run is ending, if its end is decided and not yet complete.
    pub ending: Option<Ending>,
    /// Why the run is parked, if it is.
    pub parked: Option<Parking>,
    /// The idempotency key.
    pub key: Option<String>,
    /// Labels for people and filters.
    pub tags: BTreeMap<String, String>,
    /// The number of tokens that the run has had.
    pub tokens: u64,
    /// The number of tokens that are live.
    pub live_tokens: u32,
    /// The number of buffered signals.
    pub kept_signals: u64,
}

/// The token that waits for a child run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Parent {
    /// The parent run's id.
    pub run_id: u64,
    /// The token of the parent run.
    pub token: u32,
}

/// How a run ends whose end is decided: what is live in it ends over the next records. Until the last
/// of them the run is RUNNING, and reports of its workers are refused with `lease_lost`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ending {
    /// The state that the run will have: FAILED, CANCELED or TIMED_OUT.
    pub state: RunState,
    /// The error that the run will have, as JSON; empty for none.
    pub error: Payload,
    /// When the end was decided.
    pub since: Timestamp,
}

/// Why a run is parked. It does nothing until it is canceled or unparked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Parking {
    /// What does not fit into one record.
    pub reason: String,
    /// When the run was parked.
    pub at: Timestamp,
}

/// A run to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// The input as JSON, which the workflow's input schema describes; `{}` if not given.
    #[serde(default, skip_serializing_if = "Payload::is_empty")]
    pub input: Payload,
    /// The idempotency key: starting a run with an equal input under the same key returns the existing
    /// run; another input is a conflict.
    #[cfg_attr(feature = "openapi", schema(max_length = 256, min_length = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The version of the workflow; the newest if not given.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Labels for people and filters.
    #[serde(
        default,
        deserialize_with = "tags::unique",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub tags: BTreeMap<String, String>,
}

/// Runs of one workflow to start together, all or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewRuns {
    /// The runs, at most 1,000.
    #[cfg_attr(feature = "openapi", schema(max_items = 1_000))]
    pub runs: Vec<NewRun>,
}

/// A reference to a run: by its id, or by the key that it holds in its workflow.
///
/// ```
/// use tenure_api::RunRef;
///
/// let (by_id, by_key) = (RunRef::from(17), RunRef::key("order", "A-1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunRef {
    /// The run with this id.
    Id(u64),
    /// The run of a workflow that holds a key.
    Key {
        /// The workflow's name.
        workflow: String,
        /// The key.
        key: String,
    },
}

impl RunRef {
    /// The run of a workflow that holds a key.
    pub fn key(workflow: impl Into<String>, key: impl Into<String>) -> Self {
        Self::Key { workflow: workflow.into(), key: key.into() }
    }
}

impl From<u64> for RunRef {
    fn from(run_id: u64) -> Self {
        Self::Id(run_id)
    }
}

/// Which runs to list, and which page of them. A filter that is not given matches every run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct RunFilter {
    /// Runs of this workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Runs in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<RunState>,
    /// Runs with this tag, as `key:value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The run with this key. Keys belong to a workflow, so `workflow` must be given too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The maximum number of runs, from 1 to 1,000; 100 if not given.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// One step of a run's history: what one cause did to the run. Several reports in one record are
/// several causes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunStep {
    /// The LSN of the record.
    pub lsn: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened, as JSON: `{event, …}`.
    pub cause: Payload,
    /// The decisions that followed, in order, each as JSON: `{decision, run_id, …}`. What a condition
    /// read is in `why`.
    pub decisions: Vec<Payload>,
}

/// A signal for a run. Its name is part of the address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Signal {
    /// The payload as JSON; `null` if not given.
    #[serde(default, skip_serializing_if = "Payload::is_empty")]
    pub payload: Payload,
    /// The correlation, which tells the signal from others of its name.
    #[cfg_attr(feature = "openapi", schema(max_length = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<String>,
    /// The idempotency key: an equal signal under the same id counts once; another one is a conflict.
    #[cfg_attr(feature = "openapi", schema(max_length = 256, min_length = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal_id: Option<String>,
    /// How to start the run if no run holds the key; only for a run that is named by its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<SignalStart>,
}

/// A run that a signal starts if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignalStart {
    /// The input as JSON; `{}` if not given.
    #[serde(default, skip_serializing_if = "Payload::is_empty")]
    pub input: Payload,
    /// The version of the workflow; the newest if not given.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Labels for people and filters.
    #[serde(
        default,
        deserialize_with = "tags::unique",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub tags: BTreeMap<String, String>,
}

text_enum! {
    /// What became of a signal.
    SignalOutcome {
        /// A token received the signal.
        Given = "given",
        /// The run buffers the signal for the next token that waits for it.
        Kept = "kept",
        /// The run received the signal before, under the same id.
        Known = "known",
    }
}

/// The outcome of a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Signaled {
    /// The run that received the signal.
    pub run_id: u64,
    /// The signal's name.
    pub signal: String,
    /// What became of the signal.
    pub outcome: SignalOutcome,
    /// The token that received the signal.
    pub token: Option<u32>,
    /// Whether the signal started the run.
    pub started: bool,
}

/// What was decided in a record of a run, and what the present rules decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Redecided {
    /// The run's id.
    pub run_id: u64,
    /// The LSN of the record.
    pub lsn: u64,
    /// When the record was written.
    pub at: Timestamp,
    /// Whether the present rules decide the same.
    pub same: bool,
    /// What happened, as JSON.
    pub cause: Payload,
    /// The decisions about the run, in order.
    pub decisions: Vec<DecisionPair>,
    /// Why the present rules decide nothing, if they refuse the request.
    pub refused: Option<Refusal>,
}

/// A decision as it was recorded, and as the present rules take it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DecisionPair {
    /// Whether both are the same.
    pub same: bool,
    /// The recorded decision, as JSON; empty if the decision would be new.
    pub recorded: Payload,
    /// The present decision, as JSON; empty if it would not be taken.
    pub decided: Payload,
}

/// Why the present rules refuse a request that was accepted once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refusal {
    /// The stable error code, for programs.
    pub code: String,
    /// What is wrong, for people.
    pub detail: String,
}

text_enum! {
    /// How far an artifact is on its way to the store.
    ArtifactState {
        /// The run may still drop the artifact.
        Staged = "staged",
        /// The run has ended and keeps the artifact.
        Committed = "committed",
        /// The artifact is a file in the store.
        Published = "published",
    }
}

/// A file that a task of a run produced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Artifact {
    /// A relative path, such as `report.pdf`.
    pub name: String,
    /// The media type.
    pub media_type: String,
    /// The size.
    pub bytes: u64,
    /// The SHA-256 in hexadecimal.
    pub sha256: String,
    /// The node whose task produced the file.
    pub node: String,
    /// How far the artifact is on its way to the store.
    pub state: ArtifactState,
}

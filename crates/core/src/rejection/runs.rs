//! The sentences of refusals about workflows, runs and signals.

use std::fmt;

use tenure_code::Echo;

use super::Rejection;
use crate::limits::{
    DELETED_WORKFLOWS_MAX, SIGNAL_IDS_MAX, SIGNALS_KEPT_BYTES_MAX, SIGNALS_KEPT_MAX,
    WORKFLOW_VERSIONS_MAX, WORKFLOWS_MAX,
};

impl Rejection {
    /// What is said about workflows, runs and signals.
    #[expect(clippy::too_many_lines, reason = "one sentence for each refusal")]
    #[expect(clippy::wildcard_enum_match_arm, reason = "the caller's match is exhaustive")]
    pub(super) fn about_runs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::RunKeyConflict { key, run_id } => write!(
                f,
                "the key {} belongs to run {run_id}, which was started with another input, version or \
                 tags; use another key, or repeat that start unchanged",
                Echo(key.as_str())
            ),
            Rejection::SignalConflict { run_id, signal_id } => write!(
                f,
                "run {run_id} took a signal with the id {} and another name, correlation or payload; \
                 use another id, or repeat that signal unchanged",
                Echo(signal_id.as_str())
            ),
            Rejection::RunNotFound { run_id } => write!(
                f,
                "there is no run {run_id}; it never existed, or was purged after its retention"
            ),
            Rejection::WorkflowNotFound { name, version: None } => {
                write!(f, "there is no workflow {}; put its definition first", Echo(name))
            }
            Rejection::WorkflowNotFound { name, version: Some(version) } => {
                write!(f, "there is no version {version} of workflow {}", Echo(name))
            }
            Rejection::WorkflowInUse { name, version, need } => {
                match version {
                    Some(version) => write!(f, "version {version} of workflow {}", Echo(name))?,
                    None => write!(f, "workflow {}", Echo(name))?,
                }
                write!(f, " {need}")
            }
            Rejection::TooManyDeletedWorkflows => write!(
                f,
                "the names of {DELETED_WORKFLOWS_MAX} deleted workflows are remembered already; keep \
                 this one, or delete all of its versions but one"
            ),
            Rejection::RunKeyNotFound { workflow, key } => write!(
                f,
                "no run of workflow {} holds the key {}; start one, or send the signal with `start`",
                Echo(workflow),
                Echo(key.as_str())
            ),
            Rejection::RunKeyTwice { key, first } => write!(
                f,
                "the key {} is that of runs[{first}], which has another input, version or tags; use \
                 another key, or repeat that start unchanged",
                Echo(key.as_str())
            ),
            Rejection::WorkflowSignalUnknown { workflow, name } => write!(
                f,
                "workflow {} has no node that waits for a signal {}; look at its definition",
                Echo(workflow),
                Echo(name)
            ),
            Rejection::InBatch { index, rejection } => write!(f, "runs[{index}]: {rejection}"),
            Rejection::BatchTooHeavy { fits } => write!(
                f,
                "the first {fits} runs are as much as one record may begin; send batches of at most \
                 {fits}"
            ),
            Rejection::SignalUnknown { run_id, name } => write!(
                f,
                "run {run_id} has no node that waits for a signal {}; look at its definition",
                Echo(name)
            ),
            Rejection::RunOver { run_id, state } => {
                write!(f, "run {run_id} is {state}; nothing reaches it any more")
            }
            Rejection::RunEnding { run_id, state } => {
                write!(f, "run {run_id} is ending as {state}; nothing reaches it any more")
            }
            Rejection::WorkflowBroken { name, version, message } => write!(
                f,
                "version {version} of workflow {} no longer compiles: {message}; register a \
                 definition that does, or go back to the release that took this one",
                Echo(name)
            ),
            Rejection::RunParked { run_id } => write!(
                f,
                "run {run_id} is parked: it cannot go on by itself; look at why with `tenure run get \
                 {run_id}`, then cancel it, or let it go on with `tenure run unpark {run_id}` and \
                 report again"
            ),
            Rejection::TaskOfRun { task_id, run_id } => write!(
                f,
                "task {task_id} belongs to run {run_id}, which has gone on without it; start a new \
                 run"
            ),
            Rejection::NoRunForArtifacts { task_id } => write!(
                f,
                "task {task_id} belongs to no run, and only runs keep artifacts; complete it without \
                 `artifacts`, and put what must be kept into `output` or elsewhere"
            ),
            Rejection::SignalsFull { run_id } => write!(
                f,
                "run {run_id} keeps {SIGNALS_KEPT_MAX} signals that no token waits for, or took \
                 {SIGNAL_IDS_MAX} with an id; come back when some were used"
            ),
            Rejection::SignalBytesFull { run_id, bytes } => write!(
                f,
                "run {run_id} would keep {bytes} bytes of signals that no token waits for; at most \
                 {SIGNALS_KEPT_BYTES_MAX} are allowed, so send it again when some were used"
            ),
            Rejection::ValueTooLarge { what, bytes, bytes_max } => write!(
                f,
                "{what} takes {bytes} bytes as a value, where each number takes 8; at most \
                 {bytes_max} are allowed, so put large data into an object store and pass its \
                 address"
            ),
            Rejection::InputInvalid { message } => f.write_str(message),
            Rejection::TooManyVersions { name } => write!(
                f,
                "workflow {} has {WORKFLOW_VERSIONS_MAX} versions already; use another name",
                Echo(name)
            ),
            Rejection::TooManyWorkflows => {
                write!(f, "there are {WORKFLOWS_MAX} workflows already; use a name that exists")
            }
            _ => unreachable!("the other sentences are written where tasks are"),
        }
    }
}

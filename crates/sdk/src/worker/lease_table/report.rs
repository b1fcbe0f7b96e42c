//! Reports of a worker: completions, failures and releases.

use std::time::Duration;

use tenure_code::Code;
use tenure_proto::v1;

use crate::worker::outcome::{Artifact, Failure, Output, Then};

/// The largest output that a server accepts.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Bytes of all artifacts in one completion.
const ARTIFACTS_BYTES_MAX: usize = 8 << 20;

/// A report that the server has not accepted yet.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) task_id: u64,
    pub(super) lease_id: u64,
    pub(super) outcome: Outcome,
    /// The report is sent in a message of its own, to find out which one of several was refused.
    pub(super) alone: bool,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Complete(Output),
    Fail(Failure),
    Release { delay: Duration, checkpoint: Vec<u8> },
}

impl Outcome {
    /// The outcome of a handler; `checkpoint` is one that was saved and not sent yet.
    pub(super) fn of(result: Result<Output, Failure>, checkpoint: Vec<u8>) -> Self {
        let result = result.map_err(|failure| match failure.checkpoint.is_empty() {
            true => Failure { checkpoint, ..failure },
            false => failure,
        });
        match result {
            Ok(output) if output.bytes.len() > OUTPUT_BYTES_MAX => {
                let len = output.bytes.len();
                let reason =
                    format!("output has {len} bytes; at most {OUTPUT_BYTES_MAX} are allowed");
                Self::Fail(too_large(reason))
            }
            Ok(output) if output.artifact_bytes() > ARTIFACTS_BYTES_MAX => {
                let len = output.artifact_bytes();
                let reason = format!(
                    "the artifacts have {len} bytes; at most {ARTIFACTS_BYTES_MAX} go with a \
                     completion: upload large ones first, with PUT /v1/blobs/{{sha256}}"
                );
                Self::Fail(too_large(reason))
            }
            Ok(output) => Self::Complete(output),
            Err(Failure { then: Then::Release(delay), checkpoint, .. }) => {
                Self::Release { delay, checkpoint }
            }
            Err(failure) => Self::Fail(failure),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Complete(output) => output.bytes.len() + output.artifact_bytes(),
            Self::Fail(failure) => failure.reason.len() + failure.checkpoint.len(),
            Self::Release { checkpoint, .. } => checkpoint.len(),
        }
    }

    /// The order of kinds in a message, and of their results.
    pub(super) fn order(&self) -> u8 {
        match self {
            Self::Complete(_) => 0,
            Self::Fail(_) => 1,
            Self::Release { .. } => 2,
        }
    }
}

fn too_large(reason: String) -> Failure {
    Failure::permanent(reason).code(Code::PayloadTooLarge.as_str())
}

/// The message that carries heartbeats and reports.
pub(super) fn encode(
    sequence: u64,
    heartbeats: &[v1::HeartbeatReport],
    reports: &[Report],
) -> v1::Reports {
    let mut message =
        v1::Reports { sequence, heartbeats: heartbeats.to_vec(), ..Default::default() };
    for Report { task_id, lease_id, outcome, .. } in reports {
        let (task_id, lease_id) = (*task_id, *lease_id);
        match outcome {
            Outcome::Complete(done) => message.completes.push(v1::CompleteReport {
                task_id,
                lease_id,
                output: done.bytes.clone(),
                artifacts: done.artifacts.iter().map(Artifact::to_wire).collect(),
                // The stream knows its worker.
                worker: None,
            }),
            Outcome::Fail(failure) => message.fails.push(v1::FailReport {
                task_id,
                lease_id,
                reason: failure.reason.clone(),
                code: failure.code.clone(),
                retryable: Some(failure.then != Then::Permanent),
                retry_after_ms: match failure.then {
                    Then::RetryAfter(delay) => Some(delay.as_millis() as u64),
                    Then::Backoff | Then::Permanent | Then::Release(_) => None,
                },
                worker: None,
                checkpoint: failure.checkpoint.clone(),
            }),
            Outcome::Release { delay, checkpoint } => message.releases.push(v1::ReleaseReport {
                task_id,
                lease_id,
                delay_ms: Some(delay.as_millis() as u64).filter(|ms| *ms > 0),
                priority: None,
                checkpoint: checkpoint.clone(),
                worker: None,
            }),
        }
    }
    message
}

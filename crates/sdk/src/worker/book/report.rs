//! What a worker says about its tasks: results, failures and leases that it gives back.

use std::time::Duration;

use tenure_code::Code;
use tenure_proto::v1;

use crate::worker::task::{Failure, Output, Then};

/// The largest output that a server takes.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Bytes of all artifacts that travel with one output.
const ARTIFACTS_BYTES_MAX: usize = 8 << 20;

/// A word on a task, until the server has taken it.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) task_id: u64,
    pub(super) lease_id: u64,
    pub(super) what: What,
    /// It goes alone, to find out which one of several was refused.
    pub(super) alone: bool,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Complete(Output),
    Fail(Failure),
    Release { wait: Duration, checkpoint: Vec<u8> },
}

impl What {
    /// `checkpoint` is what the handler left for another attempt and was not sent yet.
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
                Self::Fail(Failure::new(reason).code(Code::PayloadTooLarge.as_str()).last())
            }
            Ok(output) if output.artifact_bytes() > ARTIFACTS_BYTES_MAX => {
                let len = output.artifact_bytes();
                let reason = format!(
                    "the artifacts have {len} bytes; at most {ARTIFACTS_BYTES_MAX} go with a \
                     completion: upload large ones first, with PUT /v1/blobs/{{sha256}}"
                );
                Self::Fail(Failure::new(reason).code(Code::PayloadTooLarge.as_str()).last())
            }
            Ok(output) => Self::Complete(output),
            Err(Failure { then: Then::GiveBack(wait), checkpoint, .. }) => {
                Self::Release { wait, checkpoint }
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

    /// Results come in this order.
    pub(super) fn place(&self) -> u8 {
        match self {
            Self::Complete(_) => 0,
            Self::Fail(_) => 1,
            Self::Release { .. } => 2,
        }
    }
}

/// What is sent of these.
pub(super) fn written(
    sequence: u64,
    heartbeats: &[v1::HeartbeatReport],
    reports: &[Report],
) -> v1::Reports {
    let mut message =
        v1::Reports { sequence, heartbeats: heartbeats.to_vec(), ..Default::default() };
    for Report { task_id, lease_id, what, .. } in reports {
        let (task_id, lease_id) = (*task_id, *lease_id);
        match what {
            What::Complete(done) => message.completes.push(v1::CompleteReport {
                task_id,
                lease_id,
                output: done.bytes.clone(),
                artifacts: done.artifacts.clone(),
                // The stream knows its worker.
                worker: None,
            }),
            What::Fail(failure) => message.fails.push(v1::FailReport {
                task_id,
                lease_id,
                reason: failure.reason.clone(),
                code: failure.code.clone(),
                retryable: Some(failure.then != Then::Nothing),
                retry_after_ms: match failure.then {
                    Then::After(wait) => Some(wait.as_millis() as u64),
                    Then::Backoff | Then::Nothing | Then::GiveBack(_) => None,
                },
                worker: None,
                checkpoint: failure.checkpoint.clone(),
            }),
            What::Release { wait, checkpoint } => message.releases.push(v1::ReleaseReport {
                task_id,
                lease_id,
                delay_ms: Some(wait.as_millis() as u64).filter(|ms| *ms > 0),
                priority: None,
                checkpoint: checkpoint.clone(),
                worker: None,
            }),
        }
    }
    message
}

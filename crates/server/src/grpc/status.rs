//! How things stand; and refusals as gRPC has them, which are statuses too.

use std::sync::atomic::Ordering;

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use prost::Message;
use tenure_coordinator::{Answer, Ask, Query, RUN_STATES, Since};
use tenure_core::state::StateName;
use tenure_flow::Fault;
use tenure_proto::v1;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Request, Status};

use super::{Door, Outcome, backup, show_run, unexpected};
use crate::archive::ArchiveNews;
use crate::limits::FAULTS_BYTES_MAX;
use crate::problem::{Problem, RETRY_AFTER_MS};

/// The metadata that has our code.
const CODE: &str = "tenure-code";
/// The metadata that says when to come back.
const RETRY_AFTER: &str = "tenure-retry-after-ms";
/// The metadata that has the faults of a definition.
const FAULTS: &str = "tenure-faults-bin";

/// The gRPC code that fits the HTTP status of ours.
fn code_of(code: &str) -> Code {
    match code {
        "invalid_request" | "json_too_deep" | "payload_too_large" | "unsupported_media_type" => {
            Code::InvalidArgument
        }
        "unauthorized" => Code::Unauthenticated,
        "forbidden" | "bad_host" => Code::PermissionDenied,
        "not_found" => Code::NotFound,
        "method_not_allowed" => Code::Unimplemented,
        "request_timeout" => Code::DeadlineExceeded,
        "conflict" | "lease_lost" | "task_terminal" => Code::FailedPrecondition,
        "log_trimmed" => Code::OutOfRange,
        "overloaded" | "too_many_queues" | "too_many_workflows" | "disk_full" => {
            Code::ResourceExhausted
        }
        "unavailable" => Code::Unavailable,
        _ => Code::Internal,
    }
}

impl From<Problem> for Status {
    fn from(problem: Problem) -> Self {
        let mut metadata = MetadataMap::new();
        metadata.insert(CODE, MetadataValue::from_static(problem.code));
        if problem.is_for_now() {
            metadata.insert(RETRY_AFTER, MetadataValue::from(RETRY_AFTER_MS));
        }
        if !problem.faults.is_empty() {
            let faults = some_faults(&problem.faults).encode_to_vec();
            metadata.insert_bin(FAULTS, MetadataValue::from_bytes(&faults));
        }
        Status::with_metadata(code_of(problem.code), problem.detail, metadata)
    }
}

/// As many faults of a definition as fit into metadata.
fn some_faults(faults: &[Fault]) -> v1::Faults {
    let mut bytes = 0;
    let fits = faults.iter().map(show_run::fault).take_while(|fault| {
        bytes += fault.encoded_len();
        bytes <= FAULTS_BYTES_MAX
    });
    v1::Faults { faults: fits.collect(), total: faults.len() as u32 }
}

/// A refusal inside of a stream.
pub(super) fn shown(problem: Problem) -> v1::Problem {
    let retry_after_ms = problem.is_for_now().then_some(RETRY_AFTER_MS);
    v1::Problem { code: problem.code.to_owned(), message: problem.detail, retry_after_ms }
}

/// Whether somebody speaks gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type.is_some_and(|media_type| media_type.starts_with("application/grpc"))
}

/// The answer to somebody who speaks gRPC: as it is, or as a status if no service gave it.
pub(crate) fn as_grpc(answer: Result<Response, Problem>) -> Response {
    match answer {
        Ok(response) if is_grpc(response.headers()) => response,
        Ok(_) => {
            let metadata = MetadataMap::new();
            let message = "there is no such method; see the reflection service";
            Status::with_metadata(Code::Unimplemented, message, metadata)
                .into_http::<axum::body::Body>()
                .into_response()
        }
        Err(problem) => Status::from(problem).into_http::<axum::body::Body>().into_response(),
    }
}

#[tonic::async_trait]
impl v1::status_server::Status for Door {
    type BackupStream = backup::Parts;

    async fn backup(&self, request: Request<v1::BackupRequest>) -> Outcome<Self::BackupStream> {
        let since = match request.into_inner().whole {
            true => Since::Oldest,
            false => Since::Snapshot,
        };
        Ok(tonic::Response::new(backup::begin(&self.app, since).await?))
    }

    async fn get(&self, request: Request<v1::GetStatusRequest>) -> Outcome<v1::ServerStatus> {
        let Answer::Status(status) = self.ask(Ask::Query(Query::Status)).await? else {
            return unexpected();
        };
        let state_hash = match request.into_inner().hash {
            true => Some(self.state_hash().await?),
            false => None,
        };
        let count = |state: StateName| (state.as_str().to_owned(), status.tasks.of(state));
        Ok(tonic::Response::new(v1::ServerStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            role: "leader".to_owned(),
            lsn: status.lsn.0,
            durable_lsn: status.released.0,
            epoch: status.epoch,
            state_hash,
            tasks: StateName::ALL.into_iter().map(count).collect(),
            parked_leases: status.parked_leases as u64,
            parked_readers: status.parked_readers as u64,
            uptime_ms: self.app.started.elapsed().as_millis() as u64,
            now: status.now.0,
            snapshot_lsn: status.kept.newest.map(|newest| newest.lsn.0),
            log_oldest_lsn: status.kept.extent.oldest.0,
            log_bytes: status.kept.extent.bytes,
            runs: RUN_STATES.into_iter().map(str::to_owned).zip(status.runs).collect(),
            workflows: status.workflows as u64,
            archive: self.app.archive.as_deref().map(archive_status),
        }))
    }

    async fn take_snapshot(&self, _: Request<v1::TakeSnapshotRequest>) -> Outcome<v1::Snapshot> {
        let Answer::Snapshot(taken) = self.ask(Ask::TakeSnapshot).await? else {
            return unexpected();
        };
        Ok(tonic::Response::new(v1::Snapshot {
            lsn: taken.lsn.0,
            state_hash: taken.state_hash.to_string(),
            tasks: taken.tasks,
            bytes: taken.bytes,
            took_ms: taken.took_ms,
        }))
    }
}

fn archive_status(archive: &ArchiveNews) -> v1::ArchiveStatus {
    let failing = archive.failing();
    v1::ArchiveStatus {
        folder: archive.folder.clone(),
        archived: archive.archived.load(Ordering::Relaxed),
        bytes: archive.bytes.load(Ordering::Relaxed),
        failing_ms: failing.as_ref().map_or(0, |it| it.since.elapsed().as_millis() as u64),
        failing: failing.map(|it| it.why),
    }
}

impl Door {
    /// Reads everything, so it works on a view and beside the others.
    async fn state_hash(&self) -> Result<String, Status> {
        let Answer::Facts(facts) = self.ask(Ask::Query(Query::Facts)).await? else {
            return unexpected();
        };
        let hash = tokio::task::spawn_blocking(move || facts.hash().to_string()).await;
        Ok(hash.map_err(|_| Problem::new("unavailable", "the server is stopping"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_code_and_says_when_to_come_back() {
        let status = Status::from(Problem::new("overloaded", "too much"));
        assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "too much"));
        assert_eq!(status.metadata().get(CODE).unwrap(), "overloaded");
        assert_eq!(status.metadata().get(RETRY_AFTER).unwrap(), "1000");
        let status = Status::from(Problem::new("lease_lost", "over"));
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.metadata().get(RETRY_AFTER).is_none());
    }
}

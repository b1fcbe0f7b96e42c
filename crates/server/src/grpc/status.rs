//! How things stand; and refusals as gRPC has them, which are statuses too.

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use prost::Message;
use tenure_code::Code;
use tenure_coordinator::Since;
use tenure_coordinator::request::TakeSnapshot;
use tenure_flow::Fault;
use tenure_proto::v1;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Status, Streaming};

use super::{Door, Outcome, backup};
use crate::limits::{FAULTS_BYTES_MAX, GRPC_MESSAGE_BYTES_MAX, MESSAGE_CHARS_MAX};
use crate::problem::{Problem, RETRY_AFTER_MS};
use crate::show;

/// The metadata that has our code.
const CODE: &str = "tenure-code";
/// The metadata that says when to come back.
const RETRY_AFTER: &str = "tenure-retry-after-ms";
/// The metadata that has the faults of a definition.
const FAULTS: &str = "tenure-faults-bin";

impl From<Problem> for Status {
    fn from(problem: Problem) -> Self {
        let mut metadata = MetadataMap::new();
        metadata.insert(CODE, MetadataValue::from_static(problem.code.as_str()));
        if problem.code.is_retryable() {
            metadata.insert(RETRY_AFTER, MetadataValue::from(RETRY_AFTER_MS));
        }
        if !problem.faults.is_empty() {
            let faults = some_faults(&problem.faults).encode_to_vec();
            metadata.insert_bin(FAULTS, MetadataValue::from_bytes(&faults));
        }
        let code = tonic::Code::from_i32(problem.code.grpc_status().number());
        Status::with_metadata(code, problem.detail, metadata)
    }
}

/// A status of the gRPC library with our code. The library rejects a message that it cannot decode
/// with INTERNAL, and one over the size limit with OUT_OF_RANGE; both are faults of the request.
/// Statuses that have our code already are passed on.
fn of_library(status: Status) -> Status {
    if status.metadata().contains_key(CODE) {
        return status;
    }
    if status.code() == tonic::Code::Internal {
        // It names fields and quotes nothing of the message.
        let message: String = status.message().chars().take(MESSAGE_CHARS_MAX).collect();
        let detail =
            format!("the message cannot be decoded: {message}; send it as tenure.v1 has it");
        return Problem::invalid(detail).into();
    }
    if status.code() == tonic::Code::OutOfRange {
        let detail = format!(
            "the message has more than {GRPC_MESSAGE_BYTES_MAX} bytes; send less, or in several \
             requests"
        );
        return Problem::new(Code::PayloadTooLarge, detail).into();
    }
    status
}

/// The next message of a client; none once the client has sent all, or is gone.
pub(super) async fn next_message<T>(incoming: &mut Streaming<T>) -> Result<Option<T>, Status> {
    match incoming.message().await.map_err(of_library) {
        // A connection that broke: there is no one left to tell.
        Err(status) if !status.metadata().contains_key(CODE) => Ok(None),
        message => message,
    }
}

/// As many faults of a definition as fit into metadata.
fn some_faults(faults: &[Fault]) -> v1::Faults {
    let mut bytes = 0;
    let fits = faults.iter().map(|fault| v1::Fault::from(show::workflow::fault(fault))).take_while(
        |fault| {
            bytes += fault.encoded_len();
            bytes <= FAULTS_BYTES_MAX
        },
    );
    v1::Faults { faults: fits.collect(), total: faults.len() as u32 }
}

/// A refusal inside of a stream.
pub(super) fn shown(problem: Problem) -> v1::Problem {
    let retry_after_ms = problem.code.is_retryable().then_some(RETRY_AFTER_MS);
    v1::Problem { code: problem.code.to_string(), message: problem.detail, retry_after_ms }
}

/// Whether somebody speaks gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type.is_some_and(|media_type| media_type.starts_with("application/grpc"))
}

/// The code of a call that was refused before anything was sent.
pub(crate) fn code_of(headers: &HeaderMap) -> Option<Code> {
    headers.get(CODE)?.to_str().ok()?.parse().ok()
}

/// The response to a gRPC client. Every refusal has our code, also those of the gRPC library and of
/// the fallback for unknown routes.
pub(crate) fn as_grpc(answer: Result<Response, Problem>) -> Response {
    let status = match answer {
        Ok(response) if is_grpc(response.headers()) => {
            match Status::from_header_map(response.headers()) {
                Some(status) if !response.headers().contains_key(CODE) => of_library(status),
                Some(_) | None => return response,
            }
        }
        Ok(_) => unknown_method(),
        Err(problem) => problem.into(),
    };
    status.into_http::<axum::body::Body>().into_response()
}

fn unknown_method() -> Status {
    let detail = "there is no such method; see the reflection service";
    Problem::new(Code::MethodNotAllowed, detail).into()
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
        let status = show::status::status(&self.app, request.into_inner().hash).await?;
        Ok(tonic::Response::new(status.into()))
    }

    async fn take_snapshot(&self, _: Request<v1::TakeSnapshotRequest>) -> Outcome<v1::Snapshot> {
        let taken = self.app.ask(TakeSnapshot).await?;
        Ok(tonic::Response::new(show::status::snapshot(&taken).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_code_and_says_when_to_come_back() {
        let status = Status::from(Problem::new(Code::Overloaded, "too much"));
        assert_eq!((status.code(), status.message()), (tonic::Code::ResourceExhausted, "too much"));
        assert_eq!(status.metadata().get(CODE).unwrap(), "overloaded");
        assert_eq!(status.metadata().get(RETRY_AFTER).unwrap(), "1000");
        let status = Status::from(Problem::new(Code::LeaseLost, "over"));
        assert_eq!(status.code(), tonic::Code::FailedPrecondition);
        assert!(status.metadata().get(RETRY_AFTER).is_none());
    }
}

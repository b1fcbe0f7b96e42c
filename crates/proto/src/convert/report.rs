//! Reports of workers. Only clients read a result from its message: the server writes the message
//! itself, with the expiry by its log clock, which the outward model does not have.

use bytes::Bytes;
use tenure_api::{
    Binary, CompleteReport, Extension, FailReport, HeartbeatReport, NewArtifact, ReleaseReport,
    ReportResult, Timestamp,
};

use super::{all, given, task};
use crate::v1;
use crate::v1::new_artifact::Content;

impl From<HeartbeatReport> for v1::HeartbeatReport {
    fn from(report: HeartbeatReport) -> Self {
        let HeartbeatReport { task_id, lease_id, progress, message, checkpoint, lease_ms, worker } =
            report;
        let (task_id, checkpoint) = (task_id.unwrap_or_default(), checkpoint.into());
        Self { task_id, lease_id, progress, message, checkpoint, lease_ms, worker }
    }
}

impl From<v1::HeartbeatReport> for HeartbeatReport {
    fn from(report: v1::HeartbeatReport) -> Self {
        let v1::HeartbeatReport {
            task_id,
            lease_id,
            progress,
            message,
            checkpoint,
            lease_ms,
            worker,
        } = report;
        let (task_id, checkpoint) = (given(task_id), checkpoint.into());
        Self { task_id, lease_id, progress, message, checkpoint, lease_ms, worker }
    }
}

impl From<Extension> for v1::HeartbeatResponse {
    fn from(Extension { expires_at, cancel_requested }: Extension) -> Self {
        Self { expires_at: expires_at.as_ms(), cancel_requested }
    }
}

impl From<v1::HeartbeatResponse> for Extension {
    fn from(response: v1::HeartbeatResponse) -> Self {
        let v1::HeartbeatResponse { expires_at, cancel_requested } = response;
        Self { expires_at: Timestamp(expires_at), cancel_requested }
    }
}

impl From<CompleteReport> for v1::CompleteReport {
    fn from(report: CompleteReport) -> Self {
        let CompleteReport { task_id, lease_id, output, artifacts, worker } = report;
        let artifacts = all(artifacts.unwrap_or_default());
        let (task_id, output) = (task_id.unwrap_or_default(), output.into());
        Self { task_id, lease_id, output, artifacts, worker }
    }
}

impl From<v1::CompleteReport> for CompleteReport {
    fn from(report: v1::CompleteReport) -> Self {
        let v1::CompleteReport { task_id, lease_id, output, artifacts, worker } = report;
        let (task_id, output) = (given(task_id), output.into());
        let artifacts = (!artifacts.is_empty()).then(|| all(artifacts));
        Self { task_id, lease_id, output, artifacts, worker }
    }
}

impl From<NewArtifact> for v1::NewArtifact {
    fn from(NewArtifact { name, media_type, data, blob }: NewArtifact) -> Self {
        let data = data.map(|Binary(data)| Content::Data(data.into()));
        let content = data.or(blob.map(Content::Blob));
        Self { name, media_type, content }
    }
}

impl From<v1::NewArtifact> for NewArtifact {
    fn from(v1::NewArtifact { name, media_type, content }: v1::NewArtifact) -> Self {
        let (data, blob) = match content {
            Some(Content::Data(data)) => (Some(Binary(Bytes::from(data))), None),
            Some(Content::Blob(blob)) => (None, Some(blob)),
            None => (None, None),
        };
        Self { name, media_type, data, blob }
    }
}

impl From<FailReport> for v1::FailReport {
    fn from(report: FailReport) -> Self {
        let FailReport {
            task_id,
            lease_id,
            reason,
            code,
            retryable,
            retry_after_ms,
            checkpoint,
            worker,
        } = report;
        let (task_id, checkpoint) = (task_id.unwrap_or_default(), checkpoint.into());
        Self { task_id, lease_id, reason, code, retryable, retry_after_ms, worker, checkpoint }
    }
}

impl From<v1::FailReport> for FailReport {
    fn from(report: v1::FailReport) -> Self {
        let v1::FailReport {
            task_id,
            lease_id,
            reason,
            code,
            retryable,
            retry_after_ms,
            worker,
            checkpoint,
        } = report;
        let (task_id, checkpoint) = (given(task_id), checkpoint.into());
        Self { task_id, lease_id, reason, code, retryable, retry_after_ms, checkpoint, worker }
    }
}

impl From<ReleaseReport> for v1::ReleaseReport {
    fn from(report: ReleaseReport) -> Self {
        let ReleaseReport { task_id, lease_id, delay_ms, priority, checkpoint, worker } = report;
        let (task_id, checkpoint) = (task_id.unwrap_or_default(), checkpoint.into());
        Self { task_id, lease_id, delay_ms, priority, checkpoint, worker }
    }
}

impl From<v1::ReleaseReport> for ReleaseReport {
    fn from(report: v1::ReleaseReport) -> Self {
        let v1::ReleaseReport { task_id, lease_id, delay_ms, priority, checkpoint, worker } =
            report;
        let (task_id, checkpoint) = (given(task_id), checkpoint.into());
        Self { task_id, lease_id, delay_ms, priority, checkpoint, worker }
    }
}

impl From<v1::ReportResult> for ReportResult {
    fn from(result: v1::ReportResult) -> Self {
        let v1::ReportResult {
            task_id,
            code,
            message,
            state,
            expires_at,
            log_expires_at: _,
            cancel_requested,
        } = result;
        let expires_at = given(expires_at).map(Timestamp);
        Self {
            task_id,
            ok: code.is_empty(),
            state: task::state(state),
            code: given(code),
            message: given(message),
            expires_at,
            cancel_requested: expires_at.map(|_| cancel_requested),
        }
    }
}

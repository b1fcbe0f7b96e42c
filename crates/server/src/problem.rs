//! A refusal as it goes over the wire: RFC 9457, with a code for programs and a sentence for
//! people.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tenure_code::Code;
use tenure_coordinator::{Error, Refusal};
use tenure_flow::Fault;
use tenure_proto::Malformed;
use tenure_record::name::Invalid;

use crate::show;

/// How long a client should wait before it tries again, in seconds.
const RETRY_AFTER_S: &str = "1";
/// [`RETRY_AFTER_S`] in milliseconds, as gRPC has it.
pub(crate) const RETRY_AFTER_MS: u64 = 1_000;
/// The media type of a refusal.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not done.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The stable error code.
    pub code: Code,
    /// For people: what is wrong and what to do.
    pub detail: String,
    /// Of a definition: all that is wrong with it.
    pub faults: Vec<Fault>,
}

impl Problem {
    /// A refusal with its code and a sentence that says what to do.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), faults: Vec::new() }
    }

    /// The request must be mended.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    /// A definition that must be mended.
    pub(crate) fn faulty(faults: Vec<Fault>) -> Self {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        let detail = match faults.len() {
            0 | 1 => format!("the definition has a fault: {first}"),
            count => format!("the definition has {count} faults; the first is {first}"),
        };
        Self { faults, ..Self::invalid(detail) }
    }

    /// The server is stopping: what was asked for is not done, or its outcome is unknown.
    pub(crate) fn stopping() -> Self {
        Self::new(Code::Unavailable, "the server is stopping")
    }

    /// The problem with its place in the request before the sentence.
    pub(crate) fn within(self, place: &str) -> Self {
        Self { detail: format!("{place}{}", self.detail), ..self }
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.http_status())
            .expect("every code has a status that HTTP knows")
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code(), refusal.to_string())
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self::invalid(invalid.to_string())
    }
}

impl From<Malformed> for Problem {
    fn from(malformed: Malformed) -> Self {
        Self::invalid(malformed.to_string())
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = tenure_api::Problem {
            r#type: self.code.type_uri().to_owned(),
            title: self.code.title().to_owned(),
            status: status.as_u16(),
            code: self.code.as_str().to_owned(),
            detail: self.detail,
            faults: self.faults.iter().map(show::workflow::fault).collect(),
        };
        let text = serde_json::to_string(&body).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response();
        let headers = response.headers_mut();
        if self.code.is_retryable() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
        }
        if self.code == Code::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self.code);
        response
    }
}

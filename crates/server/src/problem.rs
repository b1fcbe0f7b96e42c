//! A refusal as it goes over the wire: RFC 9457, with a code for programs and a sentence for
//! people.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tenure_code::Code;
use tenure_coordinator::{Error, Refusal};
use tenure_flow::Fault;
use tenure_record::name::Invalid;

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

/// RFC 9457.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Body<'a> {
    r#type: &'a str,
    title: &'a str,
    status: u16,
    code: &'a str,
    detail: &'a str,
    /// Of a definition: all that is wrong with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    faults: Vec<ShownFault<'a>>,
}

/// One thing that is wrong with a definition.
#[derive(Serialize, utoipa::ToSchema)]
struct ShownFault<'a> {
    /// Where: a JSON pointer; empty for the whole of it.
    pointer: &'a str,
    code: &'static str,
    message: &'a str,
    /// Where in the text, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

impl<'a> ShownFault<'a> {
    fn of(fault: &'a Fault) -> Self {
        Self {
            pointer: &fault.pointer,
            code: fault.code.as_str(),
            message: &fault.message,
            line: fault.place.map(|place| place.line),
            column: fault.place.map(|place| place.column),
        }
    }
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

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = Body {
            r#type: self.code.type_uri(),
            title: self.code.title(),
            status: status.as_u16(),
            code: self.code.as_str(),
            detail: &self.detail,
            faults: self.faults.iter().map(ShownFault::of).collect(),
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

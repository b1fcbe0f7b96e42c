//! A refusal as it goes over the wire: RFC 9457, with a code for programs and a sentence for
//! people.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tenure_coordinator::{Error, Refusal};
use tenure_core::name::Invalid;
use tenure_flow::Fault;

/// How long a client should wait before it tries again, in seconds.
const RETRY_AFTER_S: &str = "1";
/// The same in milliseconds.
pub(crate) const RETRY_AFTER_MS: u64 = 1_000;
/// The media type of a refusal.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not done.
#[derive(Clone, Debug)]
pub struct Problem {
    /// For programs; stable, with a page in the book.
    pub code: &'static str,
    /// For people: what is wrong and what to do.
    pub detail: String,
    /// Of a definition: all that is wrong with it.
    pub faults: Vec<Fault>,
}

/// RFC 9457.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Body<'a> {
    r#type: String,
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
    /// A refusal with a code of [`status_of`].
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), faults: Vec::new() }
    }

    /// The request must be mended.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new("invalid_request", detail)
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

    /// Whether the same request may be taken a little later.
    pub(crate) fn is_for_now(&self) -> bool {
        matches!(self.code, "overloaded" | "too_many_queues" | "unavailable" | "disk_full")
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        status_of(self.code)
    }
}

/// The HTTP status of each code.
#[must_use]
pub fn status_of(code: &str) -> StatusCode {
    match code {
        "invalid_request" | "json_too_deep" => StatusCode::BAD_REQUEST,
        "unauthorized" => StatusCode::UNAUTHORIZED,
        "forbidden" => StatusCode::FORBIDDEN,
        "not_found" => StatusCode::NOT_FOUND,
        "method_not_allowed" => StatusCode::METHOD_NOT_ALLOWED,
        "request_timeout" => StatusCode::REQUEST_TIMEOUT,
        "conflict" | "lease_lost" | "task_terminal" => StatusCode::CONFLICT,
        "log_trimmed" => StatusCode::GONE,
        "payload_too_large" => StatusCode::PAYLOAD_TOO_LARGE,
        "bad_host" => StatusCode::MISDIRECTED_REQUEST,
        "overloaded" | "too_many_queues" | "too_many_workflows" => StatusCode::TOO_MANY_REQUESTS,
        "unavailable" => StatusCode::SERVICE_UNAVAILABLE,
        "disk_full" => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn title_of(code: &str) -> String {
    let mut title = code.replace('_', " ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    title
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
        let (status, is_for_now) = (self.status(), self.is_for_now());
        let body = Body {
            r#type: format!("urn:tenure:code:{}", self.code),
            title: &title_of(self.code),
            status: status.as_u16(),
            code: self.code,
            detail: &self.detail,
            faults: self.faults.iter().map(ShownFault::of).collect(),
        };
        let text = serde_json::to_string(&body).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response();
        let headers = response.headers_mut();
        if is_for_now {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
        }
        if self.code == "unauthorized" {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

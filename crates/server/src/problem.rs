//! A refusal as it goes over the wire: RFC 9457, with a code for programs and a sentence for
//! people.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tenure_coordinator::{Error, Refusal};
use tenure_core::name::Invalid;

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
}

impl Problem {
    /// A refusal with a code of [`status_of`].
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }

    /// The request must be mended.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new("invalid_request", detail)
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

//! The guard before every route: well-formed heads, web pages of other origins, the API key, media
//! types and admission, in this order and before a body is read.

use std::sync::Arc;
use std::time::Instant;

use axum::body::HttpBody;
use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tenure_code::Code;
use tenure_coordinator::RequestClass;

use super::{media, origin, strict};
use crate::admission::body_budget::drain;
use crate::admission::connections::Connection;
use crate::admission::response_budget::InFlight;
use crate::admission::submit_limiter::Permit;
use crate::answer;
use crate::app::App;
use crate::auth::key::ApiKey;
use crate::auth::media::Presence;
use crate::grpc::{as_grpc, class_of, code_of, is_grpc, is_stream};
use crate::http::Classes;
use crate::limits::BATCH_BODY_BYTES_MAX;
use crate::problem::Problem;

/// The rules of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) api_key: Option<ApiKey>,
    pub(crate) is_loopback: bool,
}

/// What the middleware needs.
#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) app: Arc<App>,
    pub(crate) guard: Guard,
    pub(crate) classes: Arc<Classes>,
}

/// Lets a request in, or not, and counts it.
pub(crate) async fn guard(
    State(guarded): State<Guarded>,
    request: Request,
    next: Next,
) -> Response {
    let start = Instant::now();
    let version = request.version();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map(MatchedPath::as_str);
    let is_grpc = is_grpc(request.headers());
    let app = &guarded.app;
    // What is larger than any body may be is refused where that is known.
    let announced = (request.body().size_hint().lower() as usize).min(BATCH_BODY_BYTES_MAX);
    let class = match (is_grpc, route) {
        (true, _) => class_of(request.uri().path()),
        (false, Some(route)) => guarded.classes.of(request.method(), route),
        (false, None) => None,
    };
    let pending = app.answers.pending(request.extensions().get::<Arc<InFlight>>());
    let authority = strict::authority(version, request.headers(), request.uri());
    // After a malformed head it is not certain where the next request of the connection begins.
    let ends_connection = authority.is_err() && version < Version::HTTP_2;
    let checked = authority.and_then(|named| guarded.guard.check(&request, route, named.as_ref()));
    let admitted = match checked {
        Ok(()) => match pending.admit(class).await {
            Ok(()) => admit(app, class, announced).await,
            Err(problem) => Err(problem),
        },
        Err(problem) => Err(problem),
    };
    // A turn is held until there is an answer.
    let answer = match admitted {
        Ok(_turn) if is_grpc => {
            let request = match is_stream(request.uri().path()) {
                true => request.map(|body| app.bodies.meter_stream(body)),
                false => request.map(|body| app.bodies.meter(body)),
            };
            Ok(pending.during(next.run(request)).await)
        }
        Ok(_turn) => Ok(pending.during(next.run(request)).await),
        Err(problem) => {
            // Over HTTP/2 the rest of a request can be refused on its own, and who asks before it
            // sends has sent nothing.
            let asks_first = request.headers().contains_key(header::EXPECT);
            if version < Version::HTTP_2 && !asks_first {
                drain(request.into_body());
            }
            Err(problem)
        }
    };
    let mut response = match is_grpc {
        true => as_grpc(answer),
        false => answer.unwrap_or_else(IntoResponse::into_response),
    };
    answer::complete(response.headers_mut());
    if ends_connection {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let refused = response.extensions().get::<Code>().copied();
    if let Some(code) = refused.or_else(|| code_of(response.headers())) {
        app.metrics.refused(code);
    }
    let (route, status) = (route.unwrap_or("none"), response.status().as_u16());
    guarded.app.metrics.answered(route, status, start.elapsed().as_secs_f64());
    response.map(|body| pending.attach(body, version))
}

/// Refuses before the body is read what would be refused after that. New work waits for its turn.
async fn admit(
    app: &App,
    class: Option<RequestClass>,
    announced: usize,
) -> Result<Option<Permit>, Problem> {
    let Some(class) = class else { return Ok(None) };
    let admitted = match app.tenure.room_for(class, announced) {
        Ok(()) if class == RequestClass::Submit => {
            app.submit_limiter.enter(announced as u64).await.map(Some)
        }
        Ok(()) => Ok(None),
        Err(refusal) => Err(refusal.into()),
    };
    admitted.inspect_err(|_| {
        app.metrics.refused_unread.inc();
    })
}

impl Guard {
    /// Judges a request by its head, and by the host that it names.
    fn check(
        &self,
        request: &Request,
        route: Option<&str>,
        authority: Option<&Authority>,
    ) -> Result<(), Problem> {
        let (headers, path) = (request.headers(), request.uri().path());
        if self.is_loopback {
            origin::check(request.method(), path, headers, authority)?;
        }
        let is_open =
            matches!(path, "/healthz" | "/readyz") || path.starts_with("/grpc.health.v1.Health/");
        match &self.api_key {
            Some(_) if is_open => {}
            Some(key) => {
                key.check(headers)?;
                admitted(request);
            }
            None => admitted(request),
        }
        // What leads nowhere is told so by the fallback.
        let Some(route) = route else { return Ok(()) };
        let body = match request.body().is_end_stream() {
            true => Presence::Empty,
            false => Presence::Some,
        };
        media::check(request.method(), route, headers, body)
    }
}

/// The connection belongs to a client that may use this server.
fn admitted(request: &Request) {
    if let Some(connection) = request.extensions().get::<Arc<Connection>>() {
        connection.admit();
    }
}

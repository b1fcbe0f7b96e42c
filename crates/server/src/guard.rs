//! Who may come in: the right key, and on a loopback address only pages and programs that mean
//! this very server. A web page of a stranger must not be able to use a server on your machine.

use std::sync::Arc;
use std::time::Instant;

use axum::body::HttpBody;
use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, HeaderValue, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tenure_coordinator::Kind;

use crate::admit::{drain, is_stream, kind_of, kind_of_method};
use crate::app::App;
use crate::grpc::{as_grpc, is_grpc};
use crate::limits::BATCH_BODY_BYTES_MAX;
use crate::problem::Problem;
use crate::turnstile::Turn;

/// The rules of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) api_key: Option<Arc<str>>,
    pub(crate) is_loopback: bool,
}

/// What the middleware needs.
#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) app: Arc<App>,
    pub(crate) guard: Guard,
}

/// Lets a request in, or not, and counts it.
pub(crate) async fn guard(
    State(guarded): State<Guarded>,
    request: Request,
    next: Next,
) -> Response {
    let start = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map(MatchedPath::as_str);
    let is_grpc = is_grpc(request.headers());
    let app = &guarded.app;
    // What is larger than any body may be is refused where that is known.
    let announced = (request.body().size_hint().lower() as usize).min(BATCH_BODY_BYTES_MAX);
    let kind = match (is_grpc, route) {
        (true, _) => kind_of_method(request.uri().path()),
        (false, Some(route)) => kind_of(request.method(), route),
        (false, None) => None,
    };
    let admitted = match guarded.guard.check(request.headers(), request.uri()) {
        Ok(()) => admit(app, kind, announced).await,
        Err(problem) => Err(problem),
    };
    // A turn is held until there is an answer.
    let answer = match admitted {
        Ok(_turn) if is_grpc => {
            let request = match is_stream(request.uri().path()) {
                true => request.map(|body| app.bodies.meter_stream(body)),
                false => request.map(|body| app.bodies.meter(body)),
            };
            Ok(next.run(request).await)
        }
        Ok(_turn) => Ok(next.run(request).await),
        Err(problem) => {
            // Over HTTP/2 the rest of a request can be refused on its own, and who asks before it
            // sends has sent nothing.
            let asks_first = request.headers().contains_key(header::EXPECT);
            if request.version() < Version::HTTP_2 && !asks_first {
                drain(request.into_body());
            }
            Err(problem)
        }
    };
    let response = match is_grpc {
        true => as_grpc(answer),
        false => {
            let mut response = answer.unwrap_or_else(IntoResponse::into_response);
            // What strangers put into a payload is never taken for a page or a script.
            let headers = response.headers_mut();
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            response
        }
    };
    let (route, status) = (route.unwrap_or("none"), response.status().as_u16());
    guarded.app.metrics.answered(route, status, start.elapsed().as_secs_f64());
    response
}

/// Refuses before the body is read what would be refused after that. New work waits for its turn.
async fn admit(app: &App, kind: Option<Kind>, announced: usize) -> Result<Option<Turn>, Problem> {
    let Some(kind) = kind else { return Ok(None) };
    let admitted = match app.tenure.room_for(kind, announced) {
        Ok(()) if kind == Kind::Submit => app.turnstile.enter(announced as u64).await.map(Some),
        Ok(()) => Ok(None),
        Err(refusal) => Err(refusal.into()),
    };
    admitted.inspect_err(|_| {
        app.metrics.refused_unread.inc();
    })
}

impl Guard {
    fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
        let path = uri.path();
        if self.is_loopback {
            check_host(headers, uri)?;
            check_origin(headers)?;
        }
        let is_open =
            matches!(path, "/healthz" | "/readyz") || path.starts_with("/grpc.health.v1.Health/");
        match &self.api_key {
            Some(key) if !is_open => check_key(headers, key),
            _ => Ok(()),
        }
    }
}

fn check_host(headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    // HTTP/2 has its host in the URI. A missing one is an old client.
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    let Some(name) = host.or(uri.authority().map(Authority::as_str)) else { return Ok(()) };
    match is_loopback_name(name) {
        true => Ok(()),
        false => Err(Problem::new(
            "bad_host",
            "this server listens on a loopback address and the Host header names another one; \
             use 127.0.0.1 or localhost",
        )),
    }
}

fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let host = origin.split_once("://").map_or("", |(_, host)| host);
    match is_loopback_name(host) {
        true => Ok(()),
        false => Err(Problem::new(
            "forbidden",
            "a page of another origin may not use a server on a loopback address",
        )),
    }
}

/// Whether a host, with or without a port, is this machine.
fn is_loopback_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn check_key(headers: &HeaderMap, key: &str) -> Result<(), Problem> {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    // Takes as long for a wrong key as for a right one.
    let differs = given.len() != key.len()
        || given.bytes().zip(key.bytes()).fold(0, |bits, (a, b)| bits | (a ^ b)) != 0;
    match differs {
        false => Ok(()),
        true => Err(Problem::new(
            "unauthorized",
            "this server needs its API key; send it as `Authorization: Bearer KEY`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for name in ["localhost", "LOCALHOST:7070", "127.0.0.1", "127.3.2.1:80", "[::1]:7070"] {
            assert!(is_loopback_name(name), "{name}");
        }
        for name in
            ["", "example.org", "127.0.0.1.example.org", "localhost.example.org:80", "[::2]"]
        {
            assert!(!is_loopback_name(name), "{name}");
        }
    }
}

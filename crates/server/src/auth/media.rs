//! Media types and content codings of requests: a body must say that it is what the route takes.
//!
//! A web page can make a browser send only a few media types to another origin without asking first,
//! and `application/json` is not one of them.

use axum::http::{HeaderMap, Method, header};
use tenure_code::Code;

use crate::problem::Problem;

const JSON: &str = "application/json";
/// What YAML is called.
const YAML: [&str; 4] = ["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"];
const GRPC: &str = "application/grpc";

/// What the body of a request may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Json,
    JsonOrYaml,
    Grpc,
    /// The bytes of a file, or nothing that is looked at.
    Anything,
}

impl Takes {
    fn of(method: &Method, route: &str) -> Self {
        match (method.as_str(), route) {
            _ if route.starts_with("/tenure.v1.") || route.starts_with("/grpc.") => Takes::Grpc,
            ("PUT", "/v1/blobs/{sha256}") => Takes::Anything,
            ("PUT", "/v1/workflows/{name}") => Takes::JsonOrYaml,
            ("GET" | "HEAD" | "OPTIONS", _) => Takes::Anything,
            _ => Takes::Json,
        }
    }

    fn includes(self, media_type: &str) -> bool {
        let is = |wanted: &str| media_type.eq_ignore_ascii_case(wanted);
        match self {
            Takes::Json => is(JSON),
            Takes::JsonOrYaml => is(JSON) || is_yaml(media_type),
            // Or one that names the encoding of its messages, such as `application/grpc+proto`.
            Takes::Grpc => {
                media_type.split('+').next().is_some_and(|it| it.eq_ignore_ascii_case(GRPC))
            }
            Takes::Anything => true,
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Takes::Json => {
                "the body must be JSON and say so: add the header `content-type: application/json`; \
                 `curl -d` sends application/x-www-form-urlencoded unless it is told with -H"
            }
            Takes::JsonOrYaml => {
                "a definition must say what it is written in: add the header `content-type: \
                 application/json` or `content-type: application/yaml`"
            }
            Takes::Grpc => "this is a gRPC method: call it with `content-type: application/grpc`",
            Takes::Anything => "",
        }
    }
}

/// What is known about a body before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Empty,
    Some,
}

/// Checks what the headers say about the body of a request to a known route. One without a body
/// needs no media type, but must not have a wrong one.
pub(crate) fn check(
    method: &Method,
    route: &str,
    headers: &HeaderMap,
    body: Presence,
) -> Result<(), Problem> {
    let codings = headers.get_all(header::CONTENT_ENCODING).iter();
    let is_plain = |value: &header::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !codings.into_iter().all(is_plain) {
        return Err(unsupported(
            "a compressed body is not understood; send it as it is, without `content-encoding`",
        ));
    }
    let takes = Takes::of(method, route);
    let mut media_types = headers.get_all(header::CONTENT_TYPE).iter();
    let fits = match (media_types.next(), media_types.next()) {
        (None, _) => body == Presence::Empty && takes != Takes::Grpc,
        (Some(_), None) => takes.includes(essence(headers)),
        (Some(_), Some(_)) => false,
    };
    match fits || takes == Takes::Anything {
        true => Ok(()),
        false => Err(unsupported(takes.sentence())),
    }
}

/// Whether the body is said to be YAML.
pub(crate) fn says_yaml(headers: &HeaderMap) -> bool {
    is_yaml(essence(headers))
}

fn is_yaml(media_type: &str) -> bool {
    YAML.iter().any(|yaml| media_type.eq_ignore_ascii_case(yaml))
}

/// The media type without its parameters, such as a charset.
fn essence(headers: &HeaderMap) -> &str {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim()
}

fn unsupported(detail: &str) -> Problem {
    Problem::new(Code::UnsupportedMediaType, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: &str, route: &str, lines: &[(&str, &str)], body: Presence) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap());
        }
        let checked = check(&method.parse().unwrap(), route, &headers, body);
        checked.map_err(|problem| assert_eq!(problem.code, Code::UnsupportedMediaType)).is_ok()
    }

    #[test]
    fn a_body_says_that_it_is_what_the_route_takes() {
        let typed = |method, route, media_type: &str| {
            ask(method, route, &[("content-type", media_type)], Presence::Some)
        };
        for wrong in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonp",
            "text/plain; application/json",
            "application/yaml",
            "application/grpc",
            "",
        ] {
            assert!(!typed("POST", "/v1/tasks", wrong), "{wrong}");
            let empty =
                ask("POST", "/v1/tasks/{id}/cancel", &[("content-type", wrong)], Presence::Empty);
            assert!(!empty, "a form without fields: {wrong}");
        }
        assert!(!ask("POST", "/v1/tasks", &[], Presence::Some), "no type at all");
        let twice = [("content-type", "application/json"), ("content-type", "text/plain")];
        assert!(!ask("POST", "/v1/tasks", &twice, Presence::Some));
        assert!(typed("POST", "/v1/tasks", "application/json"));
        assert!(typed("POST", "/v1/tasks", "Application/JSON; charset=utf-8"));
        assert!(ask("POST", "/v1/tasks/{id}/cancel", &[], Presence::Empty));
        assert!(ask("DELETE", "/v1/workers/{id}", &[], Presence::Empty));
        for right in ["application/json", "application/yaml", "text/x-yaml;charset=utf-8"] {
            assert!(typed("PUT", "/v1/workflows/{name}", right), "{right}");
        }
        assert!(!typed("PUT", "/v1/workflows/{name}", "text/plain"));
        // The bytes of a file may be anything, and a page cannot PUT without asking first.
        assert!(ask("PUT", "/v1/blobs/{sha256}", &[], Presence::Some));
        assert!(typed("PUT", "/v1/blobs/{sha256}", "image/tiff"));
        assert!(typed("GET", "/v1/tasks", "text/plain"));
    }

    #[test]
    fn a_grpc_method_is_called_with_grpc() {
        let method = "/tenure.v1.Tasks/{*rest}";
        for right in ["application/grpc", "application/grpc+proto"] {
            assert!(ask("POST", method, &[("content-type", right)], Presence::Some), "{right}");
        }
        for wrong in ["application/json", "text/plain"] {
            assert!(!ask("POST", method, &[("content-type", wrong)], Presence::Some), "{wrong}");
        }
        assert!(!ask("POST", method, &[], Presence::Empty));
    }

    #[test]
    fn a_compressed_body_is_refused_and_identity_is_none() {
        let coded = |route, coding: &str| {
            let lines = [("content-type", "application/json"), ("content-encoding", coding)];
            ask("POST", route, &lines, Presence::Some)
        };
        for coding in ["gzip", "br", "zstd", "identity, gzip", ""] {
            assert!(!coded("/v1/tasks", coding), "{coding}");
        }
        assert!(coded("/v1/tasks", "Identity"));
        let file = [("content-encoding", "gzip")];
        assert!(!ask("PUT", "/v1/blobs/{sha256}", &file, Presence::Some), "files too");
    }
}

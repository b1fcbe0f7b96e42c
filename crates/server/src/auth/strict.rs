//! Rules of RFC 9110, 9112 and 9113 for the head of a request that the HTTP library leaves to us:
//! one authority, named once, and no transfer coding but `chunked`.
//!
//! What the library decides by itself is described in the book's page about the server.

use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, HeaderValue, Version, header};

use crate::problem::Problem;

/// The port that a host without one stands for.
const DEFAULT_PORT: &str = ":80";

/// Checks the head of a request, and gives the host and port that it is for. Only HTTP/1.0 may leave
/// them out: health checks of load balancers do.
pub(crate) fn authority(
    version: Version,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Option<Authority>, Problem> {
    check_codings(headers)?;
    let host = host(headers)?;
    match (uri.authority(), host) {
        (Some(target), Some(host)) if !is_same(target.as_str(), host.as_str()) => {
            Err(Problem::invalid(
                "the request's target and its Host header name different hosts; send the host of \
                 the URL in both",
            ))
        }
        (None, Some(host)) => Ok(Some(host)),
        (Some(target), Some(_)) => Ok(Some(target.clone())),
        // HTTP/1.1 needs the header, even if the target has a host too.
        (Some(target), None) if version != Version::HTTP_11 => Ok(Some(target.clone())),
        (None, None) if version < Version::HTTP_11 => Ok(None),
        (_, None) => Err(Problem::invalid(
            "the request names no host; send a Host header, or :authority over HTTP/2",
        )),
    }
}

fn host(headers: &HeaderMap) -> Result<Option<Authority>, Problem> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let Some(host) = hosts.next() else { return Ok(None) };
    if hosts.next().is_some() {
        return Err(Problem::invalid("the request has more than one Host header; send one"));
    }
    let host = host.to_str().ok().filter(|host| !host.contains('@'));
    let host = host.and_then(|host| host.parse().ok());
    host.map(Some).ok_or_else(|| {
        Problem::invalid("the Host header is not a host and a port; send the host of the URL")
    })
}

fn check_codings(headers: &HeaderMap) -> Result<(), Problem> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(only), None) if is_chunked(only) => Ok(()),
        (Some(_), _) => Err(Problem::invalid(
            "the only transfer coding that is understood is chunked, given once; send \
             `transfer-encoding: chunked` or a content-length",
        )),
    }
}

/// Whether two hosts, each with or without a port, are one over plain HTTP.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|host| host.strip_suffix(DEFAULT_PORT).unwrap_or(host));
    one.eq_ignore_ascii_case(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: Version, uri: &str, headers: &[(&str, &str)]) -> Result<String, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap());
        }
        match authority(version, &map, &uri.parse().unwrap()) {
            Ok(authority) => Ok(authority.map(|it| it.to_string()).unwrap_or_default()),
            Err(problem) => Err(format!("{} {}", problem.code, problem.detail)),
        }
    }

    #[test]
    fn a_request_names_one_host() {
        for (version, uri, headers) in [
            (Version::HTTP_11, "/", &[][..]),
            (Version::HTTP_2, "/", &[]),
            (Version::HTTP_11, "http://localhost/", &[]),
            (Version::HTTP_11, "/", &[("host", "a"), ("host", "b")]),
            (Version::HTTP_11, "/", &[("host", "a"), ("host", "a")]),
            (Version::HTTP_11, "/", &[("host", "")]),
            (Version::HTTP_11, "/", &[("host", "localhost, evil.example")]),
            (Version::HTTP_11, "/", &[("host", "localhost@evil.example")]),
            (Version::HTTP_11, "http://evil.example/", &[("host", "localhost")]),
            (Version::HTTP_11, "http://localhost:1/", &[("host", "localhost:2")]),
            (Version::HTTP_2, "http://localhost/", &[("host", "evil.example")]),
        ] {
            let refused = check(version, uri, headers).unwrap_err();
            assert!(refused.starts_with("invalid_request"), "{uri} {headers:?}: {refused}");
        }
        for (version, uri, headers, wanted) in [
            (Version::HTTP_10, "/", &[][..], ""),
            (Version::HTTP_11, "/", &[("host", "localhost:7070")], "localhost:7070"),
            (Version::HTTP_11, "/", &[("host", "[::1]:7070")], "[::1]:7070"),
            (Version::HTTP_11, "http://a:80/", &[("host", "A")], "a:80"),
            (Version::HTTP_2, "http://a:1/", &[], "a:1"),
            (Version::HTTP_2, "http://a:1/", &[("host", "a:1")], "a:1"),
        ] {
            assert_eq!(check(version, uri, headers).unwrap(), wanted, "{uri} {headers:?}");
        }
    }

    #[test]
    fn chunked_is_the_only_transfer_coding() {
        let with = |codings: &[&str]| {
            let mut headers = vec![("host", "a")];
            headers.extend(codings.iter().map(|coding| ("transfer-encoding", *coding)));
            check(Version::HTTP_11, "/", &headers)
        };
        for codings in
            [&["identity, chunked"][..], &["gzip, chunked"], &["chunked", "chunked"], &["gzip"]]
        {
            assert!(with(codings).unwrap_err().contains("chunked"), "{codings:?}");
        }
        assert!(with(&["Chunked"]).is_ok() && with(&[]).is_ok());
    }
}

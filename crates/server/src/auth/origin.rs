//! Protection of a server on a loopback address from web pages: DNS rebinding (`Host`), and requests
//! that a page of another origin makes a browser send (`Origin`, `Sec-Fetch-Site`).

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, header};
use tenure_code::Code;

use crate::auth::strict::is_same;
use crate::problem::Problem;

/// What browsers say about the page that a request comes from (the fetch metadata).
const FETCH_SITE: &str = "sec-fetch-site";
const FETCH_MODE: &str = "sec-fetch-mode";
const FETCH_DEST: &str = "sec-fetch-dest";

/// Checks a request to a loopback address; `authority` is the host that it names, if it does.
pub(crate) fn check(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    authority: Option<&Authority>,
) -> Result<(), Problem> {
    let authority = authority.map(Authority::as_str);
    if authority.is_some_and(|authority| !is_loopback_name(authority)) {
        return Err(Problem::new(
            Code::BadHost,
            "this server listens on a loopback address and the Host header names another one; \
             use 127.0.0.1 or localhost",
        ));
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let is_own_origin = match (origins.next(), origins.next()) {
        (None, _) => true,
        (Some(origin), None) => {
            // This server speaks plain HTTP, so that is its scheme.
            let host = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            host.zip(authority).is_some_and(|(host, authority)| is_same(host, authority))
        }
        (Some(_), Some(_)) => false,
    };
    let is_own_page = match headers.get(FETCH_SITE).map(|site| site.as_bytes()) {
        // A program, an old browser, the server's own page, or an address that was typed in.
        None | Some(b"same-origin" | b"none") => true,
        // Another port of this machine is the same site, and still a stranger.
        Some(_) => is_link_to_page(method, path, headers),
    };
    match is_own_origin && is_own_page {
        true => Ok(()),
        false => Err(Problem::new(
            Code::Forbidden,
            "a page of another origin may not use a server on a loopback address; use a program, \
             or open the address itself",
        )),
    }
}

/// Whether somebody follows a link to the page that shows how things stand. Another page can make a
/// browser go there, but can neither see what it shows nor put it into a frame.
fn is_link_to_page(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let says = |name: &str, value: &str| headers.get(name).is_some_and(|it| it == value);
    method == Method::GET
        && path == "/"
        && says(FETCH_MODE, "navigate")
        && says(FETCH_DEST, "document")
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

    fn ask(method: &Method, path: &str, host: &str, lines: &[(&str, &str)]) -> Result<(), Problem> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap());
        }
        check(method, path, &headers, Some(&host.parse().unwrap()))
    }

    #[test]
    fn only_the_servers_own_origin_is_trusted() {
        let from =
            |origin: &str| ask(&Method::POST, "/v1/tasks", "localhost:7070", &[("origin", origin)]);
        for origin in [
            "http://evil.example",
            "null",
            "",
            "http://localhost",
            "http://localhost:3000",
            "http://127.0.0.1:7070",
            "https://localhost:7070",
            "http://localhost:7070.evil.example",
            "localhost:7070",
        ] {
            assert_eq!(from(origin).unwrap_err().code, Code::Forbidden, "{origin}");
        }
        assert!(from("http://localhost:7070").is_ok() && from("http://LocalHost:7070").is_ok());
        let own = [("origin", "http://localhost")];
        assert!(ask(&Method::POST, "/", "localhost:80", &own).is_ok(), "the default port");
        let two = [("origin", "http://localhost"), ("origin", "http://evil.example")];
        assert!(ask(&Method::POST, "/", "localhost", &two).is_err());
    }

    #[test]
    fn what_a_page_of_another_site_makes_a_browser_ask_is_refused_but_for_a_link_to_the_page() {
        let host = "localhost:7070";
        for site in ["cross-site", "same-site", "future-site"] {
            for path in ["/v1/status", "/", "/metrics"] {
                let image = [(FETCH_SITE, site), (FETCH_MODE, "no-cors"), (FETCH_DEST, "image")];
                assert_eq!(
                    ask(&Method::GET, path, host, &image).unwrap_err().code,
                    Code::Forbidden
                );
            }
            let link = [(FETCH_SITE, site), (FETCH_MODE, "navigate"), (FETCH_DEST, "document")];
            assert!(ask(&Method::GET, "/", host, &link).is_ok());
            assert!(ask(&Method::GET, "/v1/status", host, &link).is_err());
            assert!(ask(&Method::POST, "/", host, &link).is_err(), "a form");
            let frame = [(FETCH_SITE, site), (FETCH_MODE, "navigate"), (FETCH_DEST, "iframe")];
            assert!(ask(&Method::GET, "/", host, &frame).is_err());
        }
        for site in ["same-origin", "none"] {
            assert!(ask(&Method::GET, "/v1/status", host, &[(FETCH_SITE, site)]).is_ok());
        }
    }
}

//! A task's payload as a request.

use bytes::Bytes;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Method, Uri};
use serde_json::Value;
use tenure_sdk::Failure;

use crate::worker::verbatim;

/// Methods that a payload may name.
const METHODS: [Method; 5] =
    [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::GET];
/// Headers that belong to the connection.
const RESERVED: [HeaderName; 8] =
    [CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// A request to make.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Call {
    /// Whom it goes to, with the port if that is in the URL.
    pub(super) fn host(&self) -> &str {
        self.url.authority().map_or("", |authority| authority.as_str())
    }
}

/// A host that may be called, with any port or with one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AllowedHost {
    host: String,
    port: Option<u16>,
}

impl AllowedHost {
    /// Reads `example.org`, `example.org:8443`, `127.0.0.1` or `[::1]:80`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "a host is like example.org or example.org:8443".to_owned();
        let authority: hyper::http::uri::Authority = text.parse().map_err(|_| wrong())?;
        let port = authority.port_u16();
        let is_whole = match port {
            Some(port) => text == format!("{}:{port}", authority.host()),
            None => text == authority.host(),
        };
        match is_whole && !authority.host().is_empty() && !text.contains('*') {
            true => Ok(Self { host: authority.host().to_ascii_lowercase(), port }),
            false => Err(wrong()),
        }
    }

    fn allows(&self, url: &Uri) -> bool {
        let default = if url.scheme_str() == Some("https") { 443 } else { 80 };
        let port = url.port_u16().unwrap_or(default);
        url.host().is_some_and(|host| host.eq_ignore_ascii_case(&self.host))
            && self.port.is_none_or(|allowed| allowed == port)
    }
}

/// Reads a payload. With no allowed hosts, all are. What is wrong with it will be wrong at the next
/// attempt too.
pub(super) fn parse(payload: &Bytes, allowed: &[AllowedHost]) -> Result<Call, Failure> {
    let call = read(payload);
    let call = call.map_err(|sentence| Failure::permanent(sentence).code("invalid_payload"))?;
    if !allowed.is_empty() && !allowed.iter().any(|host| host.allows(&call.url)) {
        let reason = format!(
            "this worker does not call {:?}; submit to another queue, or start the worker with \
             --allow-host for it",
            call.host()
        );
        return Err(Failure::permanent(reason).code("host_not_allowed"));
    }
    Ok(call)
}

fn read(bytes: &Bytes) -> Result<Call, String> {
    let payload: Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("the payload is not JSON that can be read: {error}"))?;
    let Value::Object(payload) = payload else {
        return Err("the payload must be an object with `url`".to_owned());
    };
    let method = method(payload.get("method"))?;
    let body = match (payload.get("body"), &method) {
        (None, &Method::GET) => Bytes::new(),
        (Some(_), &Method::GET) => return Err("a GET has no `body`; leave it out".to_owned()),
        (Some(_), _) => verbatim::field(bytes, "body").unwrap_or_default().into(),
        (None, _) => bytes.clone(),
    };
    let mut headers = headers(payload.get("headers"))?;
    if !body.is_empty() {
        let json = HeaderValue::from_static("application/json");
        headers.entry(CONTENT_TYPE).or_insert(json);
    }
    Ok(Call { method, url: url(payload.get("url"))?, headers, body })
}

fn method(method: Option<&Value>) -> Result<Method, String> {
    let Some(method) = method.filter(|method| !method.is_null()) else { return Ok(Method::POST) };
    let known = METHODS.into_iter().find(|known| method.as_str() == Some(known.as_str()));
    known.ok_or_else(|| "`method` must be POST, PUT, PATCH, DELETE or GET".to_owned())
}

fn url(url: Option<&Value>) -> Result<Uri, String> {
    let wrong = || "`url` must be an address such as \"https://example.org/hook\"".to_owned();
    let text = url.and_then(Value::as_str).ok_or_else(wrong)?;
    // A fragment is never sent.
    let text = text.split_once('#').map_or(text, |(before, _)| before);
    let url: Uri = text.parse().map_err(|_| wrong())?;
    let has_scheme = matches!(url.scheme_str(), Some("http" | "https"));
    if !has_scheme || url.host().is_none_or(str::is_empty) {
        return Err(wrong());
    }
    if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("`url` must have no user and password; put them into \
                    `headers.authorization`"
            .to_owned());
    }
    Ok(url)
}

fn headers(headers: Option<&Value>) -> Result<HeaderMap, String> {
    let headers = match headers {
        None | Some(Value::Null) => return Ok(HeaderMap::new()),
        Some(Value::Object(headers)) => headers,
        Some(_) => return Err("`headers` must be an object of strings".to_owned()),
    };
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong = |why: &str| format!("`headers` has {name:?}, {why}");
        let header: HeaderName =
            name.parse().map_err(|_| wrong("which cannot be the name of a header"))?;
        let is_ours = header.as_str().starts_with("tenure-") || header == "idempotency-key";
        if is_ours || RESERVED.contains(&header) {
            return Err(wrong("which the worker sets itself; leave it out"));
        }
        let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
        let value = value.ok_or_else(|| wrong("whose value must be a string of visible ASCII"))?;
        map.insert(header, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests;

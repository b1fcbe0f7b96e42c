//! One attempt: a request, and what its answer means.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT,
};
use hyper::{Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tenure_sdk::{Failure, LeasedTask, Output};

use super::payload::Call;
use crate::worker::output;

/// How much of a refusal's body becomes the reason.
const REASON_BODY_BYTES_MAX: usize = 2_048;
/// However long a server asks to wait, it is tried again after this.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Connections that are kept for the next request, for each host, and for how long.
const IDLE_CONNECTIONS_MAX: usize = 32;
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Makes requests. It follows no redirect, and uses no proxy.
pub(super) type Caller =
    hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// What makes requests, with the system's root certificates.
pub(super) fn caller() -> Result<Caller, rustls::Error> {
    let provider = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new();
    let builder = match builder.with_provider_and_native_roots(provider.clone()) {
        Ok(builder) => builder,
        Err(error) => {
            tracing::warn!("no root certificates, so https will not work: {error}");
            let config = rustls::ClientConfig::builder_with_provider(provider.into())
                .with_safe_default_protocol_versions()?
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth();
            HttpsConnectorBuilder::new().with_tls_config(config)
        }
    };
    let connector = builder.https_or_http().enable_http1().build();
    let mut client = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    client.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_MAX);
    client.pool_max_idle_per_host(IDLE_CONNECTIONS_MAX);
    Ok(client.build(connector))
}

/// Makes a request for a task, and judges the answer.
pub(super) async fn run(
    task: &LeasedTask,
    call: Call,
    caller: &Caller,
    limits: Limits,
) -> Result<Output, Failure> {
    let host = call.host().to_owned();
    let request = request(task, call);
    let answer = async {
        let answer = caller.request(request).await;
        let answer = answer.map_err(|error| unreachable(&host, &error))?;
        judge(answer, limits.output_max).await
    };
    tokio::select! {
        biased;
        answer = tokio::time::timeout(limits.timeout, answer) => answer.unwrap_or_else(|_| {
            let ms = limits.timeout.as_millis();
            Err(Failure::new(format!("{host} gave no answer within {ms} ms")).code("timeout"))
        }),
        () = task.canceled() => {
            Err(Failure::new("the task was canceled, and the request was dropped").code("canceled"))
        }
    }
}

/// What a request may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) timeout: Duration,
    pub(super) output_max: usize,
}

fn request(task: &LeasedTask, call: Call) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(call.body));
    (*request.method_mut(), *request.uri_mut()) = (call.method, call.url);
    let headers = request.headers_mut();
    *headers = call.headers;
    let user_agent = HeaderValue::from_static(concat!("tenure/", env!("CARGO_PKG_VERSION")));
    headers.entry(USER_AGENT).or_insert(user_agent);
    // Nothing here decodes a body, so none is asked for.
    headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
    headers.insert("tenure-task-id", task.id().into());
    headers.insert("tenure-lease-id", task.lease_id().into());
    headers.insert("tenure-attempt", task.attempt().into());
    // The same at every attempt, so that the other side can tell a repeated request.
    headers.insert("idempotency-key", task.id().into());
    // A trace that cannot be sent is no reason not to do the work.
    let traceparent = task.traceparent().and_then(|text| HeaderValue::from_str(text).ok());
    if let Some(traceparent) = traceparent {
        headers.insert("traceparent", traceparent);
    }
    request
}

fn unreachable(host: &str, error: &hyper_util::client::legacy::Error) -> Failure {
    let mut sentence = format!("{host}: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        sentence = format!("{sentence}: {error}");
        cause = error.source();
    }
    let code = if error.is_connect() { "cannot_connect" } else { "connection_lost" };
    Failure::new(sentence).code(code)
}

async fn judge(answer: Response<Incoming>, output_max: usize) -> Result<Output, Failure> {
    let (head, body) = answer.into_parts();
    if head.status.is_success() {
        return match read(body, output_max).await? {
            Body::Whole(bytes) => match encoding(&head.headers) {
                Some(encoding) if !bytes.is_empty() => Err(encoded(&encoding)),
                Some(_) | None => output::of(&bytes),
            },
            Body::Beginning(_) => Err(output::too_large(format!(
                "the answer has more than {output_max} bytes; answer with less, or with where it is"
            ))),
        };
    }
    let status = head.status;
    let failure = refusal(status, &head.headers, body).await;
    let failure = failure.code(format!("http_{}", status.as_u16()));
    if !may_be_repeated(status) {
        return Err(failure.into_permanent());
    }
    Err(match retry_after(&head.headers, SystemTime::now()) {
        Some(wait) => failure.retry_after(wait),
        None => failure,
    })
}

async fn refusal(status: StatusCode, headers: &HeaderMap, body: Incoming) -> Failure {
    if status.is_redirection() {
        let to = headers.get(LOCATION).map_or(&b""[..], HeaderValue::as_bytes);
        let to = String::from_utf8_lossy(to);
        return Failure::new(format!(
            "the answer is {status} to {to:?}, and no redirect is followed"
        ));
    }
    // Encoded bytes are not text.
    if let Some(encoding) = encoding(headers) {
        let said = format!("the answer is {status}, with a body encoded as {encoding:?}");
        return Failure::new(said);
    }
    // The status says enough if the body cannot be read.
    let (Body::Whole(bytes) | Body::Beginning(bytes)) =
        read(body, REASON_BODY_BYTES_MAX).await.unwrap_or(Body::Whole(Vec::new()));
    match String::from_utf8_lossy(&bytes).trim() {
        "" => Failure::new(format!("the answer is {status}")),
        text => Failure::new(format!("the answer is {status}: {text}")),
    }
}

/// How the body is encoded, if it is.
fn encoding(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let codings = values.iter().flat_map(|value| value.split(',')).map(str::trim);
    let is_coding = |coding: &&str| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity");
    let codings: Vec<_> = codings.filter(is_coding).collect();
    (!codings.is_empty()).then(|| codings.join(", "))
}

/// The other side would encode it again, so it is not called again.
fn encoded(encoding: &str) -> Failure {
    let said = format!(
        "the answer is encoded as {encoding:?}, and this worker asked for it as it is \
         (Accept-Encoding: identity); turn compression off for this URL"
    );
    Failure::permanent(said).code("answer_encoded")
}

fn may_be_repeated(status: StatusCode) -> bool {
    let is_for_now =
        [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    status.is_server_error() || is_for_now.contains(&status)
}

/// Seconds, or a moment.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

/// A body, or as much of it as was wanted.
enum Body {
    Whole(Vec<u8>),
    Beginning(Vec<u8>),
}

async fn read(mut body: Incoming, max: usize) -> Result<Body, Failure> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Failure::new(format!("the answer broke off: {error}")).code("connection_lost")
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let room = max - bytes.len();
        bytes.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Ok(Body::Beginning(bytes));
        }
    }
    Ok(Body::Whole(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_tried_again() {
        let may = |code: u16| may_be_repeated(StatusCode::from_u16(code).unwrap());
        for code in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert!(may(code), "{code}");
        }
        for code in [301, 302, 307, 400, 401, 403, 404, 409, 410, 413, 422] {
            assert!(!may(code), "{code}");
        }
    }

    #[test]
    fn only_a_coding_other_than_identity_counts_as_encoded() {
        let of = |values: &[&'static str]| {
            let header = |value: &&'static str| (CONTENT_ENCODING, HeaderValue::from_static(value));
            encoding(&values.iter().map(header).collect())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["identity"]), None);
        assert_eq!(of(&["", " Identity , identity"]), None);
        assert_eq!(of(&["gzip"]), Some("gzip".to_owned()));
        assert_eq!(of(&["identity, br", "zstd"]), Some("br, zstd".to_owned()));
    }

    #[test]
    fn a_server_may_say_when_to_come_back() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let wait = |text: &str| {
            let headers = [(RETRY_AFTER, HeaderValue::from_str(text).unwrap())];
            retry_after(&headers.into_iter().collect(), now)
        };
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:47 GMT"), Some(Duration::from_secs(10)));
        assert_eq!(wait("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO), "long past");
        assert_eq!(wait("99999999999"), Some(RETRY_AFTER_MAX));
        assert_eq!(wait("99999999999999999999999"), None);
        assert_eq!(wait("soon"), None);
    }
}

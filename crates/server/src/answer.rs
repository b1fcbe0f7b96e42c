//! Headers that every answer has: the date, and what keeps browsers from using an answer for
//! anything but what it is.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// For answers that do not say more: data is neither a page nor part of one.
const DATA_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// Completes the headers of an answer.
pub(crate) fn complete(headers: &mut HeaderMap) {
    // No page of another origin gets to see it, not even as an image that is broken.
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    // What a client put into a payload is never taken for a page or a script.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(DATA_POLICY);
    if let Some(date) = date(SystemTime::now()) {
        headers.insert(header::DATE, date);
    }
}

/// A moment as RFC 9110 writes it. There is none before 1970: no clock is right that says so, and a
/// server without a clock must not send a date.
fn date(now: SystemTime) -> Option<HeaderValue> {
    thread_local!(static LAST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) });
    let second = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
    LAST.with_borrow_mut(|last| match last {
        Some((written, date)) if *written == second => Some(date.clone()),
        _ => {
            let moment = Timestamp::from_second(i64::try_from(second).ok()?).ok()?;
            let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&moment).ok()?;
            let date = HeaderValue::try_from(text).ok()?;
            *last = Some((second, date.clone()));
            Some(date)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_date_is_written_as_http_wants_it_and_left_out_where_there_is_none() {
        let at = |s: u64| date(UNIX_EPOCH + Duration::from_secs(s));
        for _ in 0..2 {
            assert_eq!(at(784_111_777).unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
            assert_eq!(at(0).unwrap(), "Thu, 01 Jan 1970 00:00:00 GMT");
        }
        assert_eq!(date(UNIX_EPOCH - Duration::from_secs(1)), None);
        assert_eq!(at(1 << 40), None, "far beyond the year 9999");
    }

    #[test]
    fn an_answer_keeps_the_policy_that_it_has() {
        let mut headers = HeaderMap::new();
        complete(&mut headers);
        assert_eq!(headers[header::CONTENT_SECURITY_POLICY], DATA_POLICY);
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
        complete(&mut headers);
        assert_eq!(headers[header::CONTENT_SECURITY_POLICY], "sandbox");
        assert_eq!(headers[RESOURCE_POLICY], "same-origin");
    }
}

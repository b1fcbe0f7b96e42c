//! Moments: for programs as the HTTP API writes them, for people as how long ago.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::ui::span;

/// RFC 3339 with milliseconds, in UTC.
pub(crate) fn rfc_3339(ms: u64) -> String {
    tenure_server::moment::show(ms)
}

/// The time of the day with milliseconds, in UTC.
pub(crate) fn clock(ms: u64) -> String {
    let whole = rfc_3339(ms);
    match whole.split_once('T') {
        Some((_, clock)) => clock.trim_end_matches('Z').to_owned(),
        None => whole,
    }
}

/// Milliseconds since 1970 of a moment such as `2026-11-15T22:40:00Z`.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    tenure_server::moment::parse_ms(text)
}

/// Milliseconds since 1970, by this machine's clock.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// How long ago it was, or in how long it will be.
pub(crate) fn relative(ms: u64, now: u64) -> String {
    match (ms, now) {
        (ms, now) if ms.abs_diff(now) < 1_000 => "now".to_owned(),
        (ms, now) if ms < now => format!("{} ago", span::rough(now - ms)),
        (ms, now) => format!("in {}", span::rough(ms - now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_and_shown() {
        assert_eq!(parse("2026-11-15T22:40:00.5Z"), Ok(1_794_782_400_500));
        assert_eq!(parse("2026-11-15T23:40:00.5+01:00"), Ok(1_794_782_400_500));
        assert_eq!(rfc_3339(1_794_782_400_500), "2026-11-15T22:40:00.500Z");
        assert_eq!(clock(1_794_782_400_500), "22:40:00.500");
        assert!(parse("tomorrow").unwrap_err().contains("like 2026"));
        assert!(parse("1969-12-31T23:59:59Z").unwrap_err().contains("1970"));
    }

    #[test]
    fn people_see_how_long_ago_it_was() {
        let now = 1_000_000_000;
        assert_eq!(relative(now - 3_400, now), "3s ago");
        assert_eq!(relative(now + 120_000, now), "in 2m");
        assert_eq!(relative(now + 200, now), "now");
    }
}

//! Times for people: how long ago, and the time of day.

use std::time::{SystemTime, UNIX_EPOCH};

use tenure_sdk::Timestamp;

use crate::ui::span;

/// The time of the day with milliseconds, in UTC.
pub(crate) fn clock(at: Timestamp) -> String {
    let whole = at.to_string();
    match whole.split_once('T') {
        Some((_, clock)) => clock.trim_end_matches('Z').to_owned(),
        None => whole,
    }
}

/// A time such as `2026-11-15T22:40:00Z`.
pub(crate) fn parse(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|invalid: tenure_sdk::api::InvalidTimestamp| invalid.to_string())
}

/// The time by this machine's clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// How long ago it was, or in how long it will be.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    match (at.0, now.0) {
        (at, now) if at.abs_diff(now) < 1_000 => "now".to_owned(),
        (at, now) if at < now => format!("{} ago", span::rough(now - at)),
        (at, now) => format!("in {}", span::rough(at - now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown() {
        let at = Timestamp(1_794_782_400_500);
        assert_eq!(parse("2026-11-15T22:40:00.5Z"), Ok(at));
        assert_eq!(parse("2026-11-15T23:40:00.5+01:00"), Ok(at));
        assert_eq!(clock(at), "22:40:00.500");
        assert!(parse("tomorrow").unwrap_err().contains("like 2026"));
        assert!(parse("1969-12-31T23:59:59Z").unwrap_err().contains("1970"));
    }

    #[test]
    fn people_see_how_long_ago_it_was() {
        let now = Timestamp(1_000_000_000);
        assert_eq!(relative(Timestamp(now.0 - 3_400), now), "3s ago");
        assert_eq!(relative(Timestamp(now.0 + 120_000), now), "in 2m");
        assert_eq!(relative(Timestamp(now.0 + 200), now), "now");
    }
}

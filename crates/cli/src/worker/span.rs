//! Lengths of time on the command line: `500ms`, `30s`, `5m`, `1h`.

use std::time::Duration;

/// The longest that any of our flags takes.
const SPAN_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Reads a length of time.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit_ms = match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let span = number.parse::<u64>().ok().zip(unit_ms).and_then(|(n, ms)| n.checked_mul(ms));
    let span = span.map(Duration::from_millis).filter(|span| *span <= SPAN_MAX);
    span.ok_or_else(|| "a length of time is like 500ms, 30s, 5m or 1h, at most 24h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_a_unit_and_a_bound() {
        for wrong in ["", "5", "s", "-1s", "1.5s", "1d", "25h", "99999999999999999999s", "5 s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse("24h"), Ok(SPAN_MAX));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
    }
}

//! Spans of time as people write them: `500ms`, `5s`, `2m`, `1h`, `1d`, and several together.

use std::time::Duration;

use tenure_code::DURATION_UNITS as UNITS;
pub(crate) use tenure_code::duration_text as exact;

const DAY_MS: u64 = 86_400_000;

/// What a span looks like, for those who wrote another thing.
const ADVICE: &str = "a span is a number with a unit, such as 500ms, 5s, 2m, 1h or 1d, or several, \
                      such as 1h30m";

/// Reads a span.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let mut rest = text;
    let mut total_ms = 0_u64;
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit_ms = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ms)| *ms);
        let (Ok(number), Some(unit_ms)) = (number.parse::<u64>(), unit_ms) else {
            return Err(ADVICE.to_owned());
        };
        let added = number.checked_mul(unit_ms).and_then(|ms| total_ms.checked_add(ms));
        total_ms = added.ok_or("it is too long")?;
        rest = after;
    }
    Ok(Duration::from_millis(total_ms))
}

/// Reads a span of a day at the most: one that somebody waits for.
pub(crate) fn parse_to_a_day(text: &str) -> Result<Duration, String> {
    let span = parse(text)?;
    match span <= Duration::from_millis(DAY_MS) {
        true => Ok(span),
        false => Err("it must be a day at the most".to_owned()),
    }
}

/// A span in its largest unit, from seconds on.
pub(crate) fn rough(ms: u64) -> String {
    let largest = UNITS.iter().find(|(_, unit_ms)| ms >= *unit_ms && *unit_ms >= 1_000);
    largest.map_or_else(|| "0s".to_owned(), |(unit, unit_ms)| format!("{}{unit}", ms / unit_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_without_a_known_unit_is_refused() {
        for text in ["", "5", "s", "5x", "5 s", "-5s", "1.5s", "5s ", "s5", "5S"] {
            assert_eq!(parse(text), Err(ADVICE.to_owned()), "{text:?}");
        }
        assert_eq!(parse("99999999999999999999d"), Err(ADVICE.to_owned()));
        assert_eq!(parse("9999999999999999d"), Err("it is too long".to_owned()));
    }

    #[test]
    fn what_somebody_waits_for_is_a_day_at_the_most() {
        assert_eq!(parse_to_a_day("24h"), Ok(Duration::from_millis(DAY_MS)));
        assert!(parse_to_a_day("24h1ms").unwrap_err().contains("a day"));
    }

    #[test]
    fn spans_are_read_and_shown() {
        for (text, ms) in [
            ("0s", 0),
            ("500ms", 500),
            ("5s", 5_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text:?}");
            assert_eq!(exact(ms), text);
        }
        assert_eq!(exact(90_061_001), "1d1h");
        assert_eq!(rough(999), "0s");
        assert_eq!(rough(61_000), "1m");
        assert_eq!(rough(172_800_000), "2d");
    }
}

//! Moments on the wire: RFC 3339 with milliseconds, in UTC. Every moment that is accepted can be shown
//! again.

use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use tenure_code::Echo;
use tenure_flow::limits::MOMENT_MS_MAX;
use tenure_record::time::Timestamp;

use crate::problem::Problem;

/// Where milliseconds are counted from.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
/// Milliseconds of a day: no offset from UTC is as large.
const DAY_MS: i128 = 86_400_000;

/// A moment as people and programs read it. One beyond [`MOMENT_MS_MAX`] is shown as that.
#[must_use]
pub fn show(ms: u64) -> String {
    let since = SignedDuration::from_millis(ms.min(MOMENT_MS_MAX) as i64);
    format!("{:.3}Z", EPOCH.saturating_add(since))
}

/// Milliseconds since 1970 of an RFC 3339 text, or what it must be.
pub fn parse_ms(text: &str) -> Result<u64, String> {
    let pieces = Pieces::parse(text).ok();
    let pieces = pieces.and_then(|it| Some((it.date(), it.time()?, it.to_numeric_offset()?)));
    let Some((date, time, offset)) = pieces else {
        return Err("it must be a time like 2026-11-15T22:40:00.000Z".to_owned());
    };
    let ahead_ms = i128::from(offset.seconds()) * 1_000;
    if ahead_ms.abs() >= DAY_MS {
        return Err("its offset must be less than 24 hours".to_owned());
    }
    let ms = date.to_datetime(time).duration_since(EPOCH).as_millis() - ahead_ms;
    let late = |_| "it must not be before 1970".to_owned();
    within(u64::try_from(ms).map_err(late)?)
}

fn within(ms: u64) -> Result<u64, String> {
    match ms <= MOMENT_MS_MAX {
        true => Ok(ms),
        false => Err(format!("the latest moment is {}", show(MOMENT_MS_MAX))),
    }
}

/// A moment as HTTP has it.
pub(crate) fn parse(field: &str, text: &str) -> Result<Timestamp, Problem> {
    let wrong = |why| Problem::invalid(format!("{field} is {}; {why}", Echo(text)));
    parse_ms(text).map(Timestamp).map_err(wrong)
}

/// A moment as gRPC has it: milliseconds since 1970.
pub(crate) fn checked(field: &str, ms: u64) -> Result<Timestamp, Problem> {
    let wrong = |why| Problem::invalid(format!("{field} is {ms} ms after 1970; {why}"));
    within(ms).map(Timestamp).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_moment_is_refused_with_what_it_must_be() {
        for (text, why) in [
            ("tomorrow", "like 2026"),
            ("2026-11-15", "like 2026"),
            ("2026-11-15T22:40:00", "like 2026"),
            ("2026-11-15T22:40:00+25:00", "less than 24 hours"),
            ("2026-11-15T22:40:00-24:00", "less than 24 hours"),
            ("1969-12-31T23:59:59Z", "before 1970"),
            ("9999-12-31T23:59:59-00:01", "the latest moment is 9999-12-31T23:59:59.999Z"),
        ] {
            let refused = parse("run_at", text).unwrap_err().detail;
            assert!(refused.contains(text) && refused.contains(why), "{refused}");
        }
        for ms in [MOMENT_MS_MAX + 1, 1 << 53, u64::MAX] {
            let refused = checked("run_at", ms).unwrap_err().detail;
            assert!(
                refused.contains(&ms.to_string()) && refused.contains("9999-12-31"),
                "{refused}"
            );
        }
    }

    #[test]
    fn what_is_taken_is_shown_again() {
        for (text, shown) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
            ("2026-11-15T22:40:00.5678Z", "2026-11-15T22:40:00.567Z"),
            ("2026-11-15T23:40:00.5+01:00", "2026-11-15T22:40:00.500Z"),
            ("9999-12-31T00:00:00Z", "9999-12-31T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(show(parse("run_at", text).unwrap().0), shown);
        }
        assert_eq!(parse_ms("9999-12-31T23:59:59.999Z"), Ok(MOMENT_MS_MAX));
    }
}

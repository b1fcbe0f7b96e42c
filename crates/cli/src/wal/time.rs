//! Moments as people write them: RFC 3339 with milliseconds, in UTC.

use serde_json::Value;
use tenure_record::time::Timestamp;

const MS_PER_DAY: u64 = 86_400_000;
/// The first millisecond of the year 10000, which RFC 3339 cannot write.
const TOO_LATE: u64 = 253_402_300_800_000;

/// A moment as text; as a number of milliseconds if it is beyond the year 9999.
pub(super) fn moment(at: Timestamp) -> Value {
    match at.0 {
        ms if ms < TOO_LATE => Value::from(rfc_3339(ms)),
        ms => Value::from(ms),
    }
}

/// A moment for which zero stands for none.
pub(super) fn moment_or_null(at: Timestamp) -> Value {
    if at == Timestamp::ZERO { Value::Null } else { moment(at) }
}

/// A moment as people read it.
pub(super) fn text(at: Timestamp) -> String {
    moment(at).as_str().map_or_else(|| at.0.to_string(), str::to_owned)
}

fn rfc_3339(ms: u64) -> String {
    let (year, month, day) = date(ms / MS_PER_DAY);
    let ms = ms % MS_PER_DAY;
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    let ms = ms % 1_000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of a number of days since 1970. Counts in years that begin in March, so that
/// a leap day is the last day of its year.
fn date(days: u64) -> (u64, u64, u64) {
    // From the first of March of the year 0.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_000_000_000_000, "2001-09-09T01:46:40.000Z"),
            (1_735_689_599_001, "2024-12-31T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (TOO_LATE - 1, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc_3339(ms), text);
        }
        assert_eq!(moment(Timestamp(TOO_LATE)), Value::from(TOO_LATE));
        assert_eq!(moment(Timestamp::MAX), Value::from(u64::MAX));
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut expected = (1970, 1, 1);
        for days in 0..TOO_LATE / MS_PER_DAY {
            assert_eq!(date(days), expected);
            let (year, month, day) = expected;
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = lengths[month as usize - 1] + u64::from(leap && month == 2);
            expected = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, last) if last == length => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
    }
}

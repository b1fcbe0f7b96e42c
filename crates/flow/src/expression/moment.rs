//! A moment, as a timer's `until` gives it.

use tenure_code::Echo;
use tenure_value::Value;

use super::EvaluationError;
use crate::limits::MOMENT_MS_MAX;

/// Milliseconds since 1970 in UTC: of an RFC 3339 text with its offset, or of an integer that says
/// just that. Moments before 1970 are long over and count as 0.
pub fn moment_ms(value: &Value) -> Result<u64, EvaluationError> {
    let moment = match value {
        Value::Int(ms) => Some(*ms),
        Value::Text(text) => parse(text),
        Value::Null | Value::Bool(_) | Value::Uint(_) | Value::Float(_) => None,
        Value::List(_) | Value::Map(_) => None,
    };
    let Some(moment) = moment else {
        return Err(EvaluationError::other(format!(
            "{} is no moment; give an RFC 3339 text such as \"2030-01-31T12:00:00Z\", or an \
             integer of milliseconds since 1970",
            if let Value::Text(text) = value {
                Echo(text).to_string()
            } else {
                value.kind().into()
            }
        )));
    };
    let moment = u64::try_from(moment).unwrap_or(0);
    match moment <= MOMENT_MS_MAX {
        true => Ok(moment),
        false => Err(EvaluationError::other(format!(
            "the moment is {moment} ms after 1970; the latest is {MOMENT_MS_MAX}, which is \
             9999-12-31T23:59:59.999Z"
        ))),
    }
}

fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (date, rest) = (bytes.get(..10)?, bytes.get(10..)?);
    let (year, month, day) = (digits(&date[..4])?, digits(&date[5..7])?, digits(&date[8..])?);
    let (separator, rest) = rest.split_first()?;
    let clock = rest.get(..8)?;
    let (hour, minute, second) =
        (digits(&clock[..2])?, digits(&clock[3..5])?, digits(&clock[6..])?);
    let fits = date[4] == b'-'
        && date[7] == b'-'
        && matches!(separator, b'T' | b't' | b' ')
        && clock[2] == b':'
        && clock[5] == b':'
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        // A leap second is the moment after it.
        && second <= 60;
    if !fits {
        return None;
    }
    let (fraction_ms, zone) = fraction(&rest[8..])?;
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((seconds - offset_seconds(zone)?) * 1_000 + fraction_ms)
}

/// `.5` and what follows it; anything finer than a millisecond is cut.
fn fraction(rest: &[u8]) -> Option<(i64, &[u8])> {
    let Some(rest) = rest.strip_prefix(b".") else { return Some((0, rest)) };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let (fraction, zone) = rest.split_at(count);
    let ms = (0..3)
        .fold(0, |ms, at| ms * 10 + fraction.get(at).map_or(0, |digit| i64::from(digit - b'0')));
    Some((ms, zone))
}

fn offset_seconds(zone: &[u8]) -> Option<i64> {
    match zone {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
            let seconds = hours * 3_600 + minutes * 60;
            (hours < 24 && minutes < 60).then_some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
    })
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let before_year = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    let before_month: i64 = (1..month).map(|month| days_in(year, month)).sum();
    before_year + before_month + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> Option<u64> {
        moment_ms(&Value::text(text)).ok()
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for bad in [
            "",
            "tomorrow",
            "2030-01-31",
            "2030-01-31T12:00:00",
            "2030-02-29T00:00:00Z",
            "2030-13-01T00:00:00Z",
            "2030-01-00T00:00:00Z",
            "2030-01-01T24:00:00Z",
            "2030-01-01T00:00:00.Z",
            "2030-01-01T00:00:00+25:00",
            "2030-01-01T00:00:00+1:00",
            "2030-01-01T00:00:00Zz",
            "2030-01-01T00-00-00Z",
            "２030-01-01T00:00:00Z",
        ] {
            assert_eq!(ms(bad), None, "{bad:?}");
        }
        assert!(moment_ms(&Value::Float(1.5)).is_err() && moment_ms(&Value::Null).is_err());
    }

    #[test]
    fn moments_are_counted_from_1970() {
        assert_eq!(ms("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(ms("1969-12-31T23:59:59Z"), Some(0));
        assert_eq!(ms("2001-09-09T01:46:40Z"), Some(1_000_000_000_000));
        assert_eq!(ms("2024-02-29T12:30:45.6789Z"), Some(1_709_209_845_678));
        assert_eq!(ms("2024-02-29T14:30:45.6+02:00"), Some(1_709_209_845_600));
        assert_eq!(ms("2024-02-29t07:30:45-05:00"), Some(1_709_209_845_000));
        assert_eq!(ms("2100-03-01T00:00:00z"), Some(4_107_542_400_000));
        assert_eq!(moment_ms(&Value::Int(17)).ok(), Some(17));
    }

    #[test]
    fn a_moment_that_cannot_be_written_is_refused_with_the_latest_one() {
        assert_eq!(ms("9999-12-31T23:59:59.999Z"), Some(MOMENT_MS_MAX));
        for late in [Value::text("9999-12-31T23:59:59-00:01"), Value::Int(1 << 53)] {
            let refused = moment_ms(&late).unwrap_err().to_string();
            assert!(refused.contains("9999-12-31T23:59:59.999Z"), "{refused}");
        }
    }
}

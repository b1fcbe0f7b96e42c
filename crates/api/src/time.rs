//! Points in time: RFC 3339 with milliseconds, in UTC. Every accepted time can be shown again.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tenure_code::Echo;

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
/// Milliseconds of a day: every offset from UTC is smaller.
const DAY_MS: i128 = 86_400_000;

/// A point in time in milliseconds since 1970, by the server's wall clock. JSON has it as RFC 3339 in
/// UTC, such as `"2026-11-15T22:40:00.000Z"`.
///
/// ```
/// use tenure_api::Timestamp;
///
/// let at: Timestamp = "2026-11-15T23:40:00.5+01:00".parse().unwrap();
/// assert_eq!(at.to_string(), "2026-11-15T22:40:00.500Z");
/// assert_eq!(at.0, 1_794_782_400_500);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The latest time that RFC 3339 can write: `9999-12-31T23:59:59.999Z`.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// Milliseconds since 1970.
    #[must_use]
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// The time itself if it is at most [`Timestamp::MAX`].
    pub fn checked(self) -> Result<Self, InvalidTimestamp> {
        match self <= Self::MAX {
            true => Ok(self),
            false => Err(InvalidTimestamp(Fault::TooLate)),
        }
    }
}

/// RFC 3339 with milliseconds, in UTC. A time after [`Timestamp::MAX`] is shown as that.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = SignedDuration::from_millis((*self).min(Self::MAX).0 as i64);
        write!(f, "{:.3}Z", EPOCH.saturating_add(since))
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let pieces = Pieces::parse(text).ok();
        let pieces = pieces.and_then(|it| Some((it.date(), it.time()?, it.to_numeric_offset()?)));
        let (date, time, offset) = pieces.ok_or(InvalidTimestamp(Fault::Syntax))?;
        let ahead_ms = i128::from(offset.seconds()) * 1_000;
        if ahead_ms.abs() >= DAY_MS {
            return Err(InvalidTimestamp(Fault::Offset));
        }
        let ms = date.to_datetime(time).duration_since(EPOCH).as_millis() - ahead_ms;
        let ms = u64::try_from(ms).map_err(|_| InvalidTimestamp(Fault::TooEarly))?;
        Self(ms).checked()
    }
}

/// Why a text or a number is not a [`Timestamp`]. Its message says what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTimestamp(Fault);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Syntax,
    Offset,
    TooEarly,
    TooLate,
}

impl fmt::Display for InvalidTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Fault::Syntax => f.write_str("it must be a time like 2026-11-15T22:40:00.000Z"),
            Fault::Offset => f.write_str("its offset must be less than 24 hours"),
            Fault::TooEarly => f.write_str("it must not be before 1970"),
            Fault::TooLate => write!(f, "the latest moment is {}", Timestamp::MAX),
        }
    }
}

impl std::error::Error for InvalidTimestamp {}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|invalid| de::Error::custom(format_args!("{}: {invalid}", Echo(&text))))
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Timestamp {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 with milliseconds, in UTC."))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Timestamp {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_time_is_refused_with_what_it_must_be() {
        for (text, why) in [
            ("tomorrow", "like 2026"),
            ("2026-11-15", "like 2026"),
            ("2026-11-15T22:40:00", "like 2026"),
            ("2026-11-15T22:40:00+25:00", "less than 24 hours"),
            ("2026-11-15T22:40:00-24:00", "less than 24 hours"),
            ("1969-12-31T23:59:59Z", "before 1970"),
            ("9999-12-31T23:59:59-00:01", "the latest moment is 9999-12-31T23:59:59.999Z"),
        ] {
            let refused = text.parse::<Timestamp>().unwrap_err().to_string();
            assert!(refused.contains(why), "{text}: {refused}");
            let refused = serde_json::from_str::<Timestamp>(&format!("{text:?}")).unwrap_err();
            assert!(refused.to_string().contains(text), "{refused}");
        }
        for ms in [Timestamp::MAX.0 + 1, 1 << 53, u64::MAX] {
            assert!(Timestamp(ms).checked().is_err());
        }
    }

    #[test]
    fn an_accepted_time_is_shown_again() {
        for (text, shown) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
            ("2026-11-15T22:40:00.5678Z", "2026-11-15T22:40:00.567Z"),
            ("2026-11-15T23:40:00.5+01:00", "2026-11-15T22:40:00.500Z"),
            ("9999-12-31T00:00:00Z", "9999-12-31T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ] {
            let at: Timestamp = text.parse().unwrap();
            assert_eq!(serde_json::to_string(&at).unwrap(), format!("{shown:?}"));
        }
        assert_eq!("9999-12-31T23:59:59.999Z".parse(), Ok(Timestamp::MAX));
    }
}

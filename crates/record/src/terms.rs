//! The terms under which a task is run: priority, budgets, lease, backoff. Parsed at the door.

use std::num::NonZeroU16;

use tenure_code::Echo;

use crate::codec::{message, number_field};
use crate::limits::{
    BUDGET_MAX, COUNT_MAX, DELAY_MS_MAX, LEASE_MS_DEFAULT, LEASE_MS_MAX, LEASE_MS_MIN,
    MAX_EXPIRIES_DEFAULT, MAX_FAILURES_DEFAULT, PAYLOAD_BYTES_MAX, PRIORITY_MAX, PRIORITY_MIN,
    TAGS_MAX,
};
use crate::name::{Invalid, TagKey, TagValue};

/// The code of the error of a task that did not end before its deadline.
pub const TIMEOUT_CODE: &str = "TIMEOUT";
/// Its message.
pub const TIMEOUT_MESSAGE: &str = "the task did not end before its deadline";
/// The code of a failure by the deadline of one attempt.
pub const ATTEMPT_TIMEOUT_CODE: &str = "ATTEMPT_TIMEOUT";
/// Its message.
pub const ATTEMPT_TIMEOUT_MESSAGE: &str = "the attempt did not end in its time";

/// How urgent a task is: -100 … 100, higher first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(i8);

impl Priority {
    /// Checks the range.
    pub fn parse(value: i64) -> Result<Self, Invalid> {
        within("priority", value.into(), PRIORITY_MIN.into(), PRIORITY_MAX.into())?;
        Ok(Self(value as i8))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> i8 {
        self.0
    }
}

number_field! {
    Priority: |p: Priority| zigzag(p.0), |n: u64| unzigzag(n).map(Priority);
    BackoffKind: |kind: BackoffKind| kind as u64, BackoffKind::from_number;
    Option<Budget>: |budget: Option<Budget>| budget.map_or(0, |budget| budget.get().into()),
        Budget::from_number;
}

fn zigzag(value: i8) -> u64 {
    let value = i64::from(value);
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(number: u64) -> Option<i8> {
    let value = (number >> 1) as i64 ^ -((number & 1) as i64);
    i8::try_from(value).ok().filter(|p| (PRIORITY_MIN..=PRIORITY_MAX).contains(p))
}

/// How long a lease lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseMs(u32);

impl LeaseMs {
    /// Checks the range.
    pub fn parse(value: i64) -> Result<Self, Invalid> {
        within("lease_ms", value.into(), LEASE_MS_MIN.into(), LEASE_MS_MAX.into())?;
        Ok(Self(value as u32))
    }

    /// The number of milliseconds.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for LeaseMs {
    fn default() -> Self {
        Self(LEASE_MS_DEFAULT)
    }
}

/// How many failures, expired leases, or both together end a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(NonZeroU16);

impl Budget {
    /// Checks the range; `field` names the budget in the refusal.
    pub fn parse(field: &str, value: i64) -> Result<Self, Invalid> {
        within(field, value.into(), 1, BUDGET_MAX.into())?;
        Ok(Self::of(value as u16))
    }

    /// A budget known to be in range.
    #[must_use]
    pub const fn of(value: u16) -> Self {
        assert!(value <= BUDGET_MAX);
        Self(NonZeroU16::new(value).expect("a budget is at least 1"))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0.get()
    }

    /// Whether so many use it up.
    #[must_use]
    pub fn is_spent_by(self, count: u32) -> bool {
        count >= self.get().into()
    }

    /// As records have it: zero is no budget.
    fn from_number(number: u64) -> Option<Option<Self>> {
        match u16::try_from(number).ok()? {
            0 => Some(None),
            value if value <= BUDGET_MAX => Some(Some(Self::of(value))),
            _ => None,
        }
    }
}

/// A limit of a number of tasks: 1 … [`COUNT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(u64);

impl Count {
    /// Checks the range; `field` names the limit in the refusal.
    pub fn parse(field: &str, value: impl Into<i128>) -> Result<Self, Invalid> {
        let value = value.into();
        within(field, value, 1, COUNT_MAX.into())?;
        Ok(Self(value as u64))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

/// The budgets of a task. Without one, that number alone does not end the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Failures that end it.
    pub max_failures: Option<Budget>,
    /// Expired leases that end it.
    pub max_expiries: Option<Budget>,
    /// Failures and expired leases that together end it.
    pub max_attempts: Option<Budget>,
}

impl Budgets {
    /// Checks the ranges, and applies the defaults: they are for tasks that do not say how many
    /// attempts they may take.
    pub fn parse(
        max_failures: Option<i64>,
        max_expiries: Option<i64>,
        max_attempts: Option<i64>,
    ) -> Result<Self, Invalid> {
        let parse = |field: &str, value: Option<i64>| {
            value.map(|value| Budget::parse(field, value)).transpose()
        };
        Ok(Self::with_defaults(
            parse("max_failures", max_failures)?,
            parse("max_expiries", max_expiries)?,
            parse("max_attempts", max_attempts)?,
        ))
    }

    /// Budgets that were checked, with the defaults applied.
    #[must_use]
    pub fn with_defaults(
        max_failures: Option<Budget>,
        max_expiries: Option<Budget>,
        max_attempts: Option<Budget>,
    ) -> Self {
        let or = |given: Option<Budget>, default: u16| match max_attempts {
            Some(_) => given,
            None => given.or(Some(Budget::of(default))),
        };
        Self {
            max_failures: or(max_failures, MAX_FAILURES_DEFAULT),
            max_expiries: or(max_expiries, MAX_EXPIRIES_DEFAULT),
            max_attempts,
        }
    }

    /// Whether a task that failed so often and had so many expired leases may have another attempt.
    #[must_use]
    pub fn allow(&self, failures: u16, expiries: u16) -> bool {
        let spent = |budget: Option<Budget>, count: u32| {
            budget.is_some_and(|budget| budget.is_spent_by(count))
        };
        let (failures, expiries) = (u32::from(failures), u32::from(expiries));
        !spent(self.max_failures, failures)
            && !spent(self.max_expiries, expiries)
            && !spent(self.max_attempts, failures + expiries)
    }
}

impl Default for Budgets {
    fn default() -> Self {
        Self::with_defaults(None, None, None)
    }
}

/// A span of time that somebody asks for: a delay, a timeout, a grace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanMs(u64);

impl SpanMs {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Checks the range; `field` names the span in the refusal.
    pub fn parse(field: &str, value: impl Into<i128>) -> Result<Self, Invalid> {
        let value = value.into();
        within(field, value, 0, DELAY_MS_MAX.into())?;
        Ok(Self(value as u64))
    }

    /// The same for a span that must not be zero.
    pub fn parse_some(field: &str, value: impl Into<i128>) -> Result<Self, Invalid> {
        let value = value.into();
        within(field, value, 1, DELAY_MS_MAX.into())?;
        Ok(Self(value as u64))
    }

    /// The number of milliseconds.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

/// The bytes that a task carries, or gives back: JSON text as it came, or bytes over gRPC.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Payload(Vec<u8>);

impl Payload {
    /// Checks the size; `field` names the payload in the refusal.
    pub fn parse(field: &str, bytes: Vec<u8>) -> Result<Self, Invalid> {
        if bytes.len() > PAYLOAD_BYTES_MAX {
            let len = bytes.len();
            return Err(Invalid::new(format!(
                "{field} has {len} bytes; at most {PAYLOAD_BYTES_MAX} are allowed"
            )));
        }
        Ok(Self(bytes))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.0))
    }
}

/// A task's tags, ordered by key, each key once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Vec<(TagKey, TagValue)>);

impl Tags {
    /// Checks the count and that no key comes twice.
    pub fn parse(mut tags: Vec<(TagKey, TagValue)>) -> Result<Self, Invalid> {
        if tags.len() > TAGS_MAX {
            let len = tags.len();
            return Err(Invalid::new(format!(
                "tags has {len} entries; at most {TAGS_MAX} are allowed"
            )));
        }
        tags.sort();
        if let Some(twice) = tags.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let key = &twice[0].0;
            return Err(Invalid::new(format!(
                "tags has the key {} twice; keep one",
                Echo(key.as_str())
            )));
        }
        Ok(Self(tags))
    }

    /// The pairs in order.
    #[must_use]
    pub fn as_slice(&self) -> &[(TagKey, TagValue)] {
        &self.0
    }
}

/// How the wait grows from one failure to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackoffKind {
    /// Always `initial_ms`.
    Fixed = 1,
    /// `initial_ms` times the number of failures.
    Linear = 2,
    /// Twice as long after each failure.
    #[default]
    Exponential = 3,
}

impl BackoffKind {
    fn from_number(number: u64) -> Option<Self> {
        [Self::Fixed, Self::Linear, Self::Exponential]
            .into_iter()
            .find(|kind| *kind as u64 == number)
    }
}

message! {
    /// How long a task waits after a failure before it may run again.
    pub struct Backoff {
        /// How the wait grows.
        1 => kind: Option<BackoffKind>,
        /// The first wait.
        2 => initial_ms: u64,
        /// The longest wait.
        3 => max_ms: u64,
        /// How far the wait may stray to either side, in thousandths of itself.
        4 => jitter_permille: u16,
    }
}

impl Backoff {
    /// What a task gets that asks for nothing: 1 s, doubling, at most 5 min, give or take a fifth.
    pub const STANDARD: Self = Self {
        kind: Some(BackoffKind::Exponential),
        initial_ms: 1_000,
        max_ms: 300_000,
        jitter_permille: 200,
    };

    /// Checks the ranges.
    pub fn parse(self) -> Result<Self, Invalid> {
        within("backoff.initial_ms", self.initial_ms.into(), 0, DELAY_MS_MAX.into())?;
        within("backoff.max_ms", self.max_ms.into(), 0, DELAY_MS_MAX.into())?;
        within("backoff.jitter in thousandths", self.jitter_permille.into(), 0, 1_000)?;
        Ok(self)
    }

    /// The wait after so many failures. `draw` is any number; equal draws give equal waits.
    #[must_use]
    pub fn wait_ms(&self, failures: u16, draw: u64) -> u64 {
        let failures = u64::from(failures.max(1));
        let wait = match self.kind.unwrap_or_default() {
            BackoffKind::Fixed => self.initial_ms,
            BackoffKind::Linear => self.initial_ms.saturating_mul(failures),
            BackoffKind::Exponential => {
                let doublings = (failures - 1).min(62) as u32;
                self.initial_ms.saturating_mul(1 << doublings)
            }
        }
        .min(self.max_ms);
        let stray = wait * u64::from(self.jitter_permille) / 1_000;
        (wait - stray + draw % (2 * stray + 1)).min(self.max_ms)
    }
}

fn within(field: &str, value: i128, min: i128, max: i128) -> Result<(), Invalid> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Invalid::new(format!("{field} is {value}; it must be from {min} to {max}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_range_is_refused_with_the_bounds() {
        let message = Priority::parse(101).unwrap_err().message;
        assert_eq!(message, "priority is 101; it must be from -100 to 100");
        assert!(Priority::parse(-101).is_err());
        assert!(LeaseMs::parse(49).is_err() && LeaseMs::parse(86_400_001).is_err());
        assert!(Budget::parse("max_failures", 0).is_err());
        assert!(SpanMs::parse("delay_ms", -1).is_err());
        assert!(SpanMs::parse("delay_ms", i64::MAX).is_err());
        assert!(Payload::parse("payload", vec![0; PAYLOAD_BYTES_MAX + 1]).is_err());
        assert!(Backoff { jitter_permille: 1_001, ..Backoff::STANDARD }.parse().is_err());
    }

    #[test]
    fn budgets_have_defaults_unless_the_attempts_are_bounded() {
        let budgets = |failures, expiries, attempts| {
            let parsed = Budgets::parse(failures, expiries, attempts).unwrap();
            let number = |budget: Option<Budget>| budget.map(Budget::get);
            (number(parsed.max_failures), number(parsed.max_expiries), number(parsed.max_attempts))
        };
        assert_eq!(budgets(None, None, None), (Some(20), Some(10), None));
        assert_eq!(budgets(Some(2), None, None), (Some(2), Some(10), None));
        assert_eq!(budgets(None, None, Some(3)), (None, None, Some(3)));
        assert_eq!(budgets(None, Some(1), Some(3)), (None, Some(1), Some(3)));
        let refused = Budgets::parse(None, None, Some(0)).unwrap_err().message;
        assert_eq!(refused, "max_attempts is 0; it must be from 1 to 10000");
    }

    #[test]
    fn attempts_count_failures_and_expiries_together() {
        let budgets = Budgets::parse(None, None, Some(3)).unwrap();
        assert!(budgets.allow(2, 0) && budgets.allow(1, 1) && budgets.allow(0, 2));
        assert!(!budgets.allow(3, 0) && !budgets.allow(1, 2) && !budgets.allow(0, 3));
        let usual = Budgets::default();
        assert!(usual.allow(19, 9) && !usual.allow(20, 0) && !usual.allow(0, 10));
    }

    #[test]
    fn a_tag_key_may_come_once() {
        let tag = |k: &str, v: &str| (TagKey::parse(k).unwrap(), TagValue::parse(v).unwrap());
        assert!(Tags::parse(vec![tag("a", "1"), tag("a", "2")]).is_err());
        assert!(Tags::parse((0..65).map(|i| tag(&i.to_string(), "")).collect()).is_err());
        let tags = Tags::parse(vec![tag("b", "1"), tag("a", "2")]).unwrap();
        assert_eq!(tags.as_slice()[0].0.as_str(), "a");
    }

    #[test]
    fn the_wait_grows_as_its_kind_says() {
        let wait = |kind, failures| {
            let plain =
                Backoff { kind: Some(kind), initial_ms: 100, max_ms: 1_000, jitter_permille: 0 };
            plain.wait_ms(failures, 7)
        };
        assert_eq!([1, 2, 3].map(|n| wait(BackoffKind::Fixed, n)), [100, 100, 100]);
        assert_eq!([1, 2, 3, 20].map(|n| wait(BackoffKind::Linear, n)), [100, 200, 300, 1_000]);
        assert_eq!([1, 2, 3, 5].map(|n| wait(BackoffKind::Exponential, n)), [100, 200, 400, 1_000]);
        assert_eq!(wait(BackoffKind::Exponential, u16::MAX), 1_000);
    }

    #[test]
    fn jitter_strays_to_both_sides_but_not_past_the_longest_wait() {
        let waits: Vec<_> = (0..2_000).map(|draw| Backoff::STANDARD.wait_ms(1, draw)).collect();
        assert_eq!(waits.iter().min(), Some(&800));
        assert_eq!(waits.iter().max(), Some(&1_200));
        assert!((0..1_000).all(|draw| Backoff::STANDARD.wait_ms(30, draw) <= 300_000));
    }
}

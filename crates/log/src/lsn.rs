//! Log sequence numbers.

use std::fmt;

/// A record's number in the log. The first record has number 1, and numbers have no gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The position before the first record.
    pub const NONE: Self = Self(0);

    /// Whether this is the number of a record.
    #[must_use]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number before this one.
    #[must_use]
    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

//! Numbers that name things. Each comes from a counter that is part of the log, so it only grows.

use std::fmt;

/// The largest task, lease or run id: 2^43 - 1. Every JSON reader holds integers below 2^53 exactly;
/// the ten bits in between are kept for the number of a partition.
pub const ID_MAX: u64 = (1 << 43) - 1;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($number:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $number);

        impl $name {
            /// The one that was never given out.
            pub const NONE: Self = Self(0);

            /// The one after this.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }

            /// Whether this is a real one.
            #[must_use]
            pub fn is_some(self) -> bool {
                self != Self::NONE
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// A task's number. Older tasks have smaller ones, which is what makes a queue first in, first out.
    TaskId(u64)
}
id! {
    /// A lease's number, and its fence: a later lease always has a larger one, over the whole log.
    LeaseId(u64)
}
id! {
    /// A run's number.
    RunId(u64)
}
id! {
    /// A record's number in the log. The first record is 1 and there are no gaps.
    Lsn(u64)
}

id! {
    /// A token's number in its run. The first is 1 and there are no gaps.
    TokenId(u32)
}
id! {
    /// A group's number in its run: which instance it is. The first is 1 and there are no gaps.
    GroupId(u32)
}

//! The proof that a record may be acknowledged.

use crate::Lsn;

/// Proof that every record up to this one was committed as the log's durability requires, so that
/// callers may be told of it.
///
/// Only a provider makes one, and only after the commit. `cargo xtask tidy` lists the files that
/// may name the constructor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Released(Lsn);

impl Released {
    /// For providers: the frame that ends with this record, and all before it, are committed.
    #[must_use]
    pub fn after_commit(lsn: Lsn) -> Self {
        Self(lsn)
    }

    /// The last record that may be acknowledged.
    #[must_use]
    pub fn lsn(self) -> Lsn {
        self.0
    }
}

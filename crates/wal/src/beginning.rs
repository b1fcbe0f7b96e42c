//! Where the reading of a log begins.

use tenure_log::Anchor;

use crate::segment::SegmentHeader;

/// Where the reading of a log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// At the first record, which must be stored.
    First,
    /// After a snapshot; older records need not be stored, and are not handed over.
    After(Anchor),
    /// At the oldest record that is stored.
    Oldest,
}

impl Beginning {
    pub(crate) fn anchor(self) -> Option<Anchor> {
        match self {
            Beginning::After(anchor) => Some(anchor),
            Beginning::First | Beginning::Oldest => None,
        }
    }

    /// The first segment to read: the last one that begins at or before the anchor's next record.
    pub(crate) fn first_to_read(self, headers: &[SegmentHeader]) -> usize {
        let Some(anchor) = self.anchor() else { return 0 };
        let after = headers.partition_point(|header| header.first_lsn <= anchor.lsn);
        after.saturating_sub(1)
    }
}

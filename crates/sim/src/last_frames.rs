//! The last frames of the log: what can be lost to one bad sector and look torn, because nothing
//! behind it speaks for it.

use std::collections::VecDeque;

use tenure_wal::disk::model::SECTOR_BYTES;

/// The last frame, and those before it that one sector can take together with it.
#[derive(Debug, Default)]
pub(crate) struct LastFrames {
    frames: VecDeque<Frame>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    records: usize,
    /// About, and not more than it has.
    bytes: usize,
}

/// How much of a file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// A bit, which is in one frame only.
    Bit,
    /// A sector, which small frames share.
    Sector,
}

impl LastFrames {
    /// A frame was written behind the others.
    pub(crate) fn wrote(&mut self, records: usize, bytes: usize) {
        self.frames.push_back(Frame { records, bytes });
        // To hit both the first and the last, a sector has to cover all between them.
        while self.between() >= SECTOR_BYTES {
            self.frames.pop_front();
        }
    }

    fn between(&self) -> usize {
        let inner = self.frames.len().saturating_sub(2);
        self.frames.iter().skip(1).take(inner).map(|frame| frame.bytes).sum()
    }

    /// Records that may be missing after such damage, and look torn.
    pub(crate) fn at_risk(&self, damage: Damage) -> usize {
        let frames = match damage {
            Damage::Bit => 1,
            Damage::Sector => self.frames.len(),
        };
        self.frames.iter().rev().take(frames).map(|frame| frame.records).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_takes_all_small_frames_that_it_can_hold_and_a_bit_one() {
        let mut last = LastFrames::default();
        assert_eq!(last.at_risk(Damage::Sector), 0);
        last.wrote(7, 10_000);
        last.wrote(2, SECTOR_BYTES - 1);
        last.wrote(1, 100);
        assert_eq!(last.at_risk(Damage::Bit), 1);
        assert_eq!(
            last.at_risk(Damage::Sector),
            10,
            "it can begin in the first and end in the last"
        );
        last.wrote(3, 100);
        assert_eq!(last.at_risk(Damage::Sector), 6, "too much lies behind the first");
        last.wrote(4, SECTOR_BYTES);
        last.wrote(5, 100);
        assert_eq!(last.at_risk(Damage::Sector), 9);
    }
}

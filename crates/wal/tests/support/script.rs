//! A workload that follows from a number, for tests that try many.

use tenure_log::{Fault, Lsn};
use tenure_wal::Wal;
use tenure_wal::disk::Disk;

use super::{append, options};

/// A generator of numbers that is the same everywhere: splitmix64.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.next() % count.max(1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Batch(u64),
    Prepare,
    Mark,
    /// An orderly end and a new start.
    Reopen,
}

/// What is asked of a log, one after the other.
#[derive(Debug)]
pub(crate) struct Script(Vec<Step>);

impl Script {
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = Random(seed);
        let steps = (0..6 + random.below(8)).map(|_| match random.below(12) {
            0 => Step::Prepare,
            1 | 2 => Step::Mark,
            3 => Step::Reopen,
            _ => Step::Batch(1 + random.below(6)),
        });
        Self(steps.collect())
    }

    /// How many records it writes.
    pub(crate) fn records(&self) -> u64 {
        let of = |step: &Step| if let Step::Batch(count) = step { *count } else { 0 };
        self.0.iter().map(of).sum()
    }

    /// Writes all of it; says after each sync what is acknowledged.
    pub(crate) fn write<D: Disk>(
        &self,
        disk: &D,
        mut acknowledged: impl FnMut(Lsn),
    ) -> Result<(), Fault> {
        let (mut wal, _) = Wal::open(disk, options(), None, |_| {})?;
        for step in &self.0 {
            match step {
                Step::Batch(count) => {
                    append(&mut wal, *count)?;
                    acknowledged(wal.sync()?.lsn());
                }
                Step::Prepare => wal.prepare()?,
                Step::Mark => wal.mark(5_000)?,
                Step::Reopen => {
                    drop(wal);
                    wal = Wal::open(disk, options(), None, |_| {})?.0;
                }
            }
        }
        Ok(())
    }
}

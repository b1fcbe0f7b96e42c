//! The log in memory keeps what every log must keep: with one frame under way and with four, with
//! replies that arrive and with replies that get lost.
#![allow(clippy::unwrap_used)]

use tenure_log::conformance::{Harness, Support, Takeover};
use tenure_log::{
    Base, Fault, Lsn, MemoryClaim, MemoryLog, MemoryOptions, MemoryStorage, OpenLog, ReadLog,
    conformance_tests,
};

struct InMemory {
    storage: MemoryStorage,
    options: MemoryOptions,
}

impl InMemory {
    fn new(depth: usize, lost_permille: u64, delay_polls_max: u64, seed: u64) -> Self {
        let options = MemoryOptions { depth, lost_permille, delay_polls_max, seed };
        Self { storage: MemoryStorage::new(9), options }
    }
}

impl Harness for InMemory {
    type Claim = MemoryClaim;
    type Log = MemoryLog;

    fn claim(&mut self) -> Result<MemoryClaim, Fault> {
        Ok(self.storage.claim(self.options))
    }

    fn start(&mut self, log: MemoryLog) -> MemoryLog {
        log
    }

    fn takeover(&self) -> Takeover {
        Takeover::Fenced
    }

    fn wait(&mut self) {}

    fn fill(&mut self) -> Support {
        self.storage.limit_bytes(Some(self.storage.bytes() + 9_000));
        Support::Done
    }

    fn make_room(&mut self) {
        self.storage.limit_bytes(None);
    }

    fn damage_snapshot(&mut self, lsn: Lsn) {
        self.storage.damage_snapshot(lsn);
    }

    fn has_unknown_outcomes(&self) -> bool {
        self.options.lost_permille > 0
    }
}

mod one_at_a_time {
    use super::*;
    conformance_tests!(InMemory::new(1, 0, 0, 1));
}

mod one_at_a_time_with_lost_replies {
    use super::*;
    conformance_tests!(InMemory::new(1, 300, 2, 2));
}

mod four_at_a_time {
    use super::*;
    conformance_tests!(InMemory::new(4, 0, 3, 3));
}

mod four_at_a_time_with_lost_replies {
    use super::*;
    conformance_tests!(InMemory::new(4, 300, 3, 4));
}

/// The laws about frames hold for every pattern of losses.
#[test]
fn lost_replies_of_a_hundred_seeds_are_resolved() {
    for seed in 0..100 {
        let lost_permille = 100 + seed * 8;
        let new = || InMemory::new(1 + seed as usize % 5, lost_permille, seed % 4, seed);
        tenure_log::conformance::unknown_outcomes_are_resolved(&mut new());
        tenure_log::conformance::a_crash_loses_nothing_that_was_released(&mut new());
        tenure_log::conformance::a_second_writer_deposes_or_waits(&mut new());
        tenure_log::conformance::a_full_log_gives_frames_back_and_takes_them_later(&mut new());
    }
}

#[test]
fn a_frame_that_was_changed_is_corrupt_for_readers_and_at_the_next_start() {
    use tenure_log::{AppendAt, Batch, Log};
    let storage = MemoryStorage::new(1);
    let claim = storage.claim(MemoryOptions::default());
    let (mut log, _) = claim.open(&Base::default(), &mut |_| {}).unwrap();
    let mut batch = Batch::default();
    batch.push(|out| out.extend_from_slice(b"one"));
    let at = AppendAt { lsn: Lsn(1), epoch: log.epoch() };
    log.commit(batch, at, 1);
    storage.damage_frame(Lsn(1));
    let mut reader = log.reader();
    assert!(matches!(reader.read(), Err(Fault::Corrupt(_))));
    let opened = storage.claim(MemoryOptions::default()).open(&Base::default(), &mut |_| {});
    assert!(matches!(opened.err().unwrap(), Fault::Corrupt(_)));
}

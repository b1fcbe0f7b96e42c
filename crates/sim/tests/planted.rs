//! Tests of the tests: each planted bug must break a law within a bounded number of seeds.
//!
//! `cargo test -p tenure-sim --features planted --test planted -- --nocapture`

use tenure_coordinator::planted as coordinator;
use tenure_core::planted as core;
use tenure_sim::runner::hush_panics;
use tenure_sim::{Broken, Plan, Voice, run};
use tenure_wal::planted as wal;

/// How many seeds a bug may survive.
const SEEDS_MAX: u64 = 400;

fn plant(bug: Planted) {
    let (mut in_core, mut in_coordinator, mut in_wal) = (None, None, None);
    match bug {
        Planted::Nothing => {}
        Planted::Core(bug) => in_core = Some(bug),
        Planted::Coordinator(bug) => in_coordinator = Some(bug),
        Planted::Wal(bug) => in_wal = Some(bug),
    }
    core::plant(in_core);
    coordinator::plant(in_coordinator);
    wal::plant(in_wal);
}

#[derive(Clone, Copy, Debug)]
enum Planted {
    Nothing,
    Core(core::Bug),
    Coordinator(coordinator::Bug),
    Wal(wal::Bug),
}

/// The bugs of the log that do not need a rotten disk to show.
const BUGS: [Planted; 19] = [
    Planted::Core(core::Bug::HeartbeatOfAnyone),
    Planted::Core(core::Bug::AttemptCountedLate),
    Planted::Core(core::Bug::PurgedTooEarly),
    Planted::Core(core::Bug::SnapshotForgets),
    Planted::Coordinator(coordinator::Bug::ReleasedOneEarly),
    Planted::Coordinator(coordinator::Bug::ExpiryWithoutARecord),
    Planted::Coordinator(coordinator::Bug::GrantedToTheGone),
    Planted::Coordinator(coordinator::Bug::LostGrantKept),
    Planted::Coordinator(coordinator::Bug::ClockFromTheWall),
    Planted::Coordinator(coordinator::Bug::KeyOutsideTheRecord),
    Planted::Coordinator(coordinator::Bug::SnapshotTooEarly),
    Planted::Wal(wal::Bug::SyncSkipped),
    Planted::Wal(wal::Bug::SyncErrorIgnored),
    Planted::Wal(wal::Bug::SyncErrorRetried),
    Planted::Wal(wal::Bug::FolderSyncMissing),
    Planted::Wal(wal::Bug::RenameBeforeSync),
    Planted::Wal(wal::Bug::AppendAfterTornTail),
    Planted::Wal(wal::Bug::TailNotSynced),
    Planted::Wal(wal::Bug::TrimmedTooFar),
];

/// The law that notices, and after how many seeds.
fn noticed(bug: Planted) -> Option<(Broken, u64)> {
    plant(bug);
    let broken = (0..SEEDS_MAX).find_map(|seed| {
        run(&Plan::of(seed), Voice::Quiet).err().map(|failed| (failed.broken, seed + 1))
    });
    plant(Planted::Nothing);
    broken
}

#[test]
fn every_planted_bug_breaks_a_law_before_long() {
    hush_panics();
    let found: Vec<_> = BUGS.iter().map(|bug| (bug, noticed(*bug))).collect();
    let _ = std::panic::take_hook();
    for (bug, noticed) in &found {
        match noticed {
            Some((broken, seeds)) => {
                println!("{:<36} {seeds:>3} seeds: {}", format!("{bug:?}"), broken.law);
            }
            None => println!("{:<36} nobody notices", format!("{bug:?}")),
        }
    }
    for (bug, noticed) in found {
        assert!(noticed.is_some(), "nobody notices {bug:?} within {SEEDS_MAX} seeds");
    }
}

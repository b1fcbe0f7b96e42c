//! Tests of the tests: each planted bug must break a law within a bounded number of seeds.
//!
//! `cargo test -p tenure-sim --features planted --test planted -- --nocapture` prints a line for
//! each: `planted: NAME | law | seeds`.

use std::sync::Mutex;

use tenure_coordinator::planted as coordinator;
use tenure_core::planted as core;
use tenure_sim::runner::hush_panics;
use tenure_sim::{Broken, Length, Plan, SimFault, Voice, run, shrink};
use tenure_wal::planted as wal;

/// How many seeds a bug may survive.
const SEEDS_MAX: u64 = 1_600;
/// How many long lives a bug may survive that only shows in time, and how long each is.
const LIVES_MAX: u64 = 40;
const HOURS: u64 = 60;
/// Each has its own bug at a time.
const THREADS: usize = 2;

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

/// The bugs that the weather shows. Those of the log that need damage at just the right byte are
/// shown by its own tests.
const BUGS: [Planted; 41] = [
    Planted::Core(core::Bug::HeartbeatOfAnyone),
    Planted::Core(core::Bug::AttemptCountedLate),
    Planted::Core(core::Bug::PurgedTooEarly),
    Planted::Core(core::Bug::SnapshotForgets),
    Planted::Core(core::Bug::LeaseIdFromAClock),
    Planted::Core(core::Bug::OldLeaseHolds),
    Planted::Core(core::Bug::LateIsNotLost),
    Planted::Core(core::Bug::ExpiredTooEarly),
    Planted::Core(core::Bug::ApplyLooksAtAClock),
    Planted::Core(core::Bug::MergeInMapOrder),
    Planted::Core(core::Bug::JoinFiresTwice),
    Planted::Core(core::Bug::LoserPromoted),
    Planted::Core(core::Bug::TokenLostInCascade),
    Planted::Core(core::Bug::SignalGivenTwice),
    Planted::Core(core::Bug::ArtifactOfALoserKept),
    Planted::Core(core::Bug::RunPurgedTooEarly),
    Planted::Core(core::Bug::ChildPurgedAlone),
    Planted::Core(core::Bug::EndInOneRecord),
    Planted::Core(core::Bug::EndsUncounted),
    Planted::Core(core::Bug::ReportsInOneRecord),
    Planted::Core(core::Bug::EndingIsGranted),
    Planted::Coordinator(coordinator::Bug::ReleasedOneEarly),
    Planted::Coordinator(coordinator::Bug::ExpiryWithoutARecord),
    Planted::Coordinator(coordinator::Bug::GrantedToTheGone),
    Planted::Coordinator(coordinator::Bug::LostGrantKept),
    Planted::Coordinator(coordinator::Bug::ClockFromTheWall),
    Planted::Coordinator(coordinator::Bug::KeyOutsideTheRecord),
    Planted::Coordinator(coordinator::Bug::SnapshotTooEarly),
    Planted::Coordinator(coordinator::Bug::ReaderForgotten),
    Planted::Coordinator(coordinator::Bug::InboxUnbounded),
    Planted::Coordinator(coordinator::Bug::TimersSleep),
    Planted::Coordinator(coordinator::Bug::DispatchForgotten),
    Planted::Coordinator(coordinator::Bug::EndingForgotten),
    Planted::Wal(wal::Bug::SyncSkipped),
    Planted::Wal(wal::Bug::SyncErrorIgnored),
    Planted::Wal(wal::Bug::SyncErrorRetried),
    Planted::Wal(wal::Bug::FolderSyncMissing),
    Planted::Wal(wal::Bug::RenameBeforeSync),
    Planted::Wal(wal::Bug::AppendAfterTornTail),
    Planted::Wal(wal::Bug::TailNotSynced),
    Planted::Wal(wal::Bug::TrimmedTooFar),
];

/// Bugs that only a long life shows.
const SLOW_BUGS: [Planted; 3] = [
    Planted::Core(core::Bug::KeptForEver),
    Planted::Coordinator(coordinator::Bug::TrimForgotten),
    Planted::Coordinator(coordinator::Bug::MarksUncounted),
];

/// The law that notices, and after how many runs.
fn noticed(bug: Planted, length: Length, runs_max: u64) -> Option<(Broken, u64)> {
    plant(bug);
    let broken = (0..runs_max).find_map(|seed| {
        let failed = run(&Plan { length, ..Plan::of(seed) }, Voice::Quiet).err();
        failed.map(|failed| (failed.broken, seed + 1))
    });
    plant(Planted::Nothing);
    broken
}

/// Tries all of them, and says which nobody notices.
fn unnoticed(bugs: &[Planted], length: Length, runs_max: u64) -> Vec<Planted> {
    hush_panics();
    let (left, missed) = (Mutex::new(bugs.iter().copied()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let next = left.lock().map(|mut left| left.next()).unwrap_or_default();
            let Some(bug) = next else { return };
            let name = match bug {
                Planted::Nothing => String::new(),
                Planted::Core(bug) => format!("core::{bug:?}"),
                Planted::Coordinator(bug) => format!("coordinator::{bug:?}"),
                Planted::Wal(bug) => format!("wal::{bug:?}"),
            };
            match noticed(bug, length, runs_max) {
                Some((broken, seeds)) => println!("planted: {name} | {} | {seeds}", broken.law),
                None => {
                    println!("planted: {name} | nobody notices | {runs_max}");
                    missed.lock().map(|mut missed| missed.push(bug)).unwrap_or_default();
                }
            }
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    missed.into_inner().unwrap_or_default()
}

#[test]
fn every_planted_bug_breaks_a_law_before_long() {
    let missed = unnoticed(&BUGS, Length::Usual, SEEDS_MAX);
    assert!(missed.is_empty(), "nobody notices {missed:?} within {SEEDS_MAX} seeds");
}

#[test]
fn every_planted_bug_that_takes_time_breaks_a_law_in_a_long_life() {
    let missed = unnoticed(&SLOW_BUGS, Length::Hours(HOURS), LIVES_MAX);
    assert!(missed.is_empty(), "nobody notices {missed:?} in {LIVES_MAX} lives");
}

#[test]
fn a_run_that_fails_is_made_small_and_fails_for_the_same_reason() {
    hush_panics();
    plant(Planted::Core(core::Bug::HeartbeatOfAnyone));
    let failed = (0..SEEDS_MAX).find_map(|seed| run(&Plan::of(seed), Voice::Quiet).err()).unwrap();
    let law = failed.broken.law;
    let least = shrink(failed);
    let again = run(&least.plan, Voice::Quiet).unwrap_err();
    plant(Planted::Nothing);
    println!("{}", least.plan);
    assert_eq!((again.broken.law, least.broken.law), (law, law));
    for fault in [
        SimFault::Crash,
        SimFault::Eio,
        SimFault::Full,
        SimFault::Rot,
        SimFault::Damage,
        SimFault::Jump,
    ] {
        assert!(least.plan.without.has(fault), "{fault:?} has nothing to do with it");
    }
    assert!(run(&least.plan, Voice::Quiet).is_ok(), "without the bug nothing is wrong with it");
}

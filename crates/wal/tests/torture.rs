//! The long forms of the crash, damage and failure tests: many scripts and larger logs, for minutes
//! and hours. `cargo xtask torture` runs them; without it they are ignored.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use support::progress::Progress;
use support::reference::{Ends, open_image, reference_of};
use support::script::{Random, Script};
use support::{check_after_crash, crashes, open};
use tenure_log::{Fault, Lsn};
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault, SECTOR_BYTES};

/// How much is wanted of a part, unless `TENURE_TORTURE` says otherwise.
fn wanted(usual: u64) -> u64 {
    let told = std::env::var("TENURE_TORTURE").ok();
    told.map_or(usual, |told| told.parse().expect("TENURE_TORTURE is a number"))
}

fn on_all_processors(each: impl Fn() + Sync) {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..count).for_each(|_| drop(scope.spawn(&each))));
}

/// The disk as it is when the process dies in that call, and what it had acknowledged.
fn died_at(script: &Script, call: u64, kind: FaultKind, lasting: bool) -> Died {
    let disk = ModelDisk::default();
    disk.plan(Some(PlannedFault { at_call: call, kind, lasting }));
    let mut acknowledged = Lsn::NONE;
    let ended = script.write(&disk, |lsn| acknowledged = lsn);
    let passed = disk.calls() < call;
    disk.plan(None);
    Died { disk, acknowledged, ended, passed }
}

struct Died {
    disk: ModelDisk,
    acknowledged: Lsn,
    ended: Result<(), Fault>,
    /// Whether there were fewer calls than that.
    passed: bool,
}

/// A crash after every call of many scripts, and a sample of crashes inside the recovery.
#[test]
#[ignore = "takes minutes: cargo xtask torture"]
fn crashes_of_many_scripts() {
    let progress = Progress::new("crash images", wanted(1_000_000));
    let seeds = AtomicU64::new(0);
    on_all_processors(|| {
        while !progress.is_done() {
            let seed = seeds.fetch_add(1, Ordering::Relaxed);
            let script = Script::of(seed);
            for call in 1.. {
                let died = died_at(&script, call, FaultKind::Eio, true);
                crash(&died, script.records(), &format!("seed {seed}, call {call}"), &progress);
                if died.passed {
                    break;
                }
            }
        }
    });
    progress.tally(&format!(" of {seeds:?} scripts"));
}

fn crash(died: &Died, written: u64, what: &str, progress: &Progress) {
    for mut first in crashes(&died.disk) {
        let what = format!("{what}, sectors {:b}, names {}", first.bits, first.names);
        let once = died.disk.crashed(&mut first);
        check_after_crash(&once.killed(), died.acknowledged, written, &what);
        progress.add(1);
        // One crash in eight happens again, after every call of the recovery.
        if first.bits % 8 != 5 {
            continue;
        }
        for again in 1.. {
            let twice = once.killed();
            let fault = PlannedFault { at_call: again, kind: FaultKind::Eio, lasting: true };
            twice.plan(Some(fault));
            let opened = open(&twice).is_ok();
            twice.plan(None);
            for mut second in crashes(&twice) {
                let what =
                    format!("{what}; then call {again}, {:b}, {}", second.bits, second.names);
                let image = twice.crashed(&mut second);
                check_after_crash(&image, died.acknowledged, written, &what);
                progress.add(1);
            }
            if opened {
                break;
            }
        }
    }
}

/// Every bit of larger logs flipped, every cut, and sectors lost in every row of one to eight.
#[test]
#[ignore = "takes minutes: cargo xtask torture"]
fn damage_to_larger_logs() {
    let logs = [Ends::WithRecords, Ends::WithMark].map(|ends| {
        let mut random = Random(ends as u64);
        let batches: Vec<u64> = (0..28).map(|_| 1 + random.below(4)).collect();
        reference_of(&batches, ends, support::options())
    });
    let ways: Vec<_> = logs
        .iter()
        .flat_map(|log| log.image.iter().map(move |(file, bytes)| (log, file, bytes.len())))
        .flat_map(|(log, file, length)| (0..length).map(move |at| (log, file, at)))
        .collect();
    let progress = Progress::new("damages", ways.len() as u64 * 9);
    let next = AtomicU64::new(0);
    on_all_processors(|| {
        while let Some((log, file, at)) = ways.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            let mut image = log.image.clone();
            for bit in 0..8 {
                image.get_mut(*file).unwrap()[*at] ^= 1 << bit;
                let what = format!("{:?}, {file}, byte {at}, bit {bit}", log.ends);
                log.check_flip(file, *at, &open_image(&image), &what);
                image.get_mut(*file).unwrap()[*at] ^= 1 << bit;
            }
            let bytes = image.get_mut(*file).unwrap();
            if at % SECTOR_BYTES == 0 {
                for count in 1..=8_usize {
                    let until = (at + count * SECTOR_BYTES).min(bytes.len());
                    let mut after = bytes.clone();
                    after[*at..until].fill(0);
                    let what = format!("{:?}, {file}, {count} sectors at {at}", log.ends);
                    // Both headers at once cannot be spared.
                    log.check_sectors(file, &after, &what);
                }
                progress.add(8);
            }
            bytes.truncate(*at);
            let what = format!("{:?}, {file} cut at {at}", log.ends);
            support::reference::refused(&image, &what);
            progress.add(9);
        }
    });
    let segments: usize = logs.iter().map(|log| log.image.len()).sum();
    progress.tally(&format!(" to {segments} segments"));
}

/// Every call of many scripts fails, once and for ever, in every way.
#[test]
#[ignore = "takes minutes: cargo xtask torture"]
fn failures_of_every_call() {
    let progress = Progress::new("failed calls", wanted(20_000));
    let (seeds, images) = (AtomicU64::new(1 << 32), AtomicU64::new(0));
    on_all_processors(|| {
        while !progress.is_done() {
            let seed = seeds.fetch_add(1, Ordering::Relaxed);
            let script = Script::of(seed);
            for (kind, lasting) in [
                (FaultKind::Eio, false),
                (FaultKind::Eio, true),
                (FaultKind::Enospc, false),
                (FaultKind::Enospc, true),
                (FaultKind::Eintr, false),
                (FaultKind::Short, false),
                (FaultKind::Short, true),
            ] {
                for call in 1.. {
                    let died = died_at(&script, call, kind, lasting);
                    let what = format!("seed {seed}, {kind:?} at call {call}, lasting: {lasting}");
                    let tried = fail(&died, kind, script.records(), &what);
                    images.fetch_add(tried, Ordering::Relaxed);
                    progress.add(1);
                    if died.passed {
                        break;
                    }
                }
            }
        }
    });
    progress.tally(&format!(" and {images:?} images of them"));
}

fn fail(died: &Died, kind: FaultKind, written: u64, what: &str) -> u64 {
    match (&died.ended, kind) {
        (Ok(()), _) => assert_eq!(died.acknowledged.0, written, "{what}: not all was written"),
        (Err(fault), FaultKind::Eintr | FaultKind::Short) => unreachable!("{what}: {fault}"),
        (Err(Fault::Full), FaultKind::Enospc) | (Err(Fault::Io { .. }), _) => {}
        (Err(fault), _) => unreachable!("{what}: {fault}"),
    }
    let killed = died.disk.killed();
    check_after_crash(&killed, died.acknowledged, written, &format!("{what}, killed"));
    let mut images = 1;
    for mut crash in crashes(&died.disk) {
        let what = format!("{what}, sectors {:b}, names {}", crash.bits, crash.names);
        check_after_crash(&died.disk.crashed(&mut crash), died.acknowledged, written, &what);
        images += 1;
    }
    images
}

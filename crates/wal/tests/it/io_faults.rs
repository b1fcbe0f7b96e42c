//! The Nth call to the disk fails, for every N: once and for ever, in every way a disk can fail.
//!
//! Proves P13.
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::support::trimming::{Told, check_trimmed, write_and_trim};
use crate::support::{
    self, BATCHES, Nothing, append, check_after_crash, crashes, open, options, write_all,
};
use tenure_log::{Batch, Fault, Lsn};
use tenure_wal::Wal;
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault};

/// How a run ended.
enum Ended {
    /// Everything was written.
    Whole,
    /// It was never opened.
    AtOpen(Fault),
    /// There was no room for the next frame, twice.
    Full(Wal<ModelDisk>),
    /// The log failed.
    Failed(Wal<ModelDisk>, Fault),
}

/// Something that is asked of a log.
type Step<'a> = dyn Fn(&mut Wal<ModelDisk>) -> Result<(), Fault> + 'a;

/// Writes all batches; what is refused for want of room is tried a second time.
fn run(disk: &ModelDisk, acknowledged: &mut Lsn) -> Ended {
    let mut wal = match Wal::open(disk, options(), None, |_| {}) {
        Ok((wal, _)) => wal,
        Err(fault) => return Ended::AtOpen(fault),
    };
    for (nth, count) in BATCHES.iter().enumerate() {
        let steps: [&Step<'_>; 4] = [
            &|wal| append(wal, *count).map(drop),
            &|wal| wal.sync().map(drop),
            &|wal| if nth == 3 { wal.prepare() } else { Ok(()) },
            &|wal| if nth == 5 { wal.mark(5_000) } else { Ok(()) },
        ];
        for step in steps {
            let before = wal.written();
            let mut done = step(&mut wal);
            if matches!(done, Err(Fault::Full)) {
                assert_eq!(wal.written(), before, "nothing was written");
                done = step(&mut wal);
            }
            match done {
                Ok(()) => {}
                Err(Fault::Full) => return Ended::Full(wal),
                Err(fault) => return Ended::Failed(wal, fault),
            }
            *acknowledged = wal.durable();
        }
    }
    Ended::Whole
}

/// Panics of a log that failed are what we want; they need no page of text each.
fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.to_string().contains("a log that failed once") {
                loud(info);
            }
        }));
    });
}

/// Whatever is asked of a log that failed, it does nothing.
fn check_dead(disk: &ModelDisk, wal: &mut Wal<ModelDisk>, what: &str) {
    quiet();
    let calls = disk.calls();
    let mut batch = Batch::default();
    batch.push(|_| {});
    let mut ask = |name: &str, ask: &mut dyn FnMut(&mut Wal<ModelDisk>)| {
        let answer = catch_unwind(AssertUnwindSafe(|| ask(wal)));
        assert!(answer.is_err(), "{what}: {name} works on a log that failed");
    };
    ask("append", &mut |wal| drop(wal.append(&mut batch, 1)));
    ask("sync", &mut |wal| drop(wal.sync()));
    ask("mark", &mut |wal| drop(wal.mark(1)));
    ask("prepare", &mut |wal| drop(wal.prepare()));
    ask("room", &mut |wal| _ = wal.room());
    ask("trim", &mut |wal| drop(wal.trim(Lsn(1))));
    assert_eq!(disk.calls(), calls, "{what}: a log that failed touched the disk");
}

fn check_images(disk: &ModelDisk, acknowledged: Lsn, what: &str) -> usize {
    let written = BATCHES.iter().sum();
    // The machine stays up, and what a failed sync left is still in the page cache.
    check_after_crash(&disk.killed(), acknowledged, written, &format!("{what}, killed"));
    let ways = crashes(disk);
    let count = ways.len();
    for mut crash in ways {
        let what = format!("{what}, sectors {:b}, names {}", crash.bits, crash.names);
        check_after_crash(&disk.crashed(&mut crash), acknowledged, written, &what);
    }
    count + 1
}

fn fail_every_call(kind: FaultKind, lasting: bool) {
    let (mut calls, mut images, mut full) = (0, 0, 0);
    for at_call in 1.. {
        let disk = ModelDisk::default();
        disk.plan(Some(PlannedFault { at_call, kind, lasting }));
        let what = format!("{kind:?} at call {at_call}, lasting: {lasting}");
        let mut acknowledged = Lsn::NONE;
        let ended = run(&disk, &mut acknowledged);
        let passed = disk.calls() < at_call;
        disk.plan(None);
        match ended {
            Ended::Whole => {}
            Ended::AtOpen(Fault::Io { .. }) => {}
            Ended::AtOpen(Fault::Full) if kind == FaultKind::Enospc => {}
            Ended::AtOpen(fault) => unreachable!("{what}: {fault}"),
            Ended::Full(mut wal) => {
                assert!(kind == FaultKind::Enospc && lasting, "{what}: room came back unnoticed");
                full += 1;
                // There is room again: it goes on by itself.
                append(&mut wal, 1).unwrap();
                acknowledged = wal.sync().unwrap().lsn();
            }
            Ended::Failed(mut wal, fault) => {
                assert!(matches!(fault, Fault::Io { .. }), "{what}: {fault}");
                check_dead(&disk, &mut wal, &what);
            }
        }
        images += check_images(&disk, acknowledged, &what);
        calls += 1;
        if passed {
            break;
        }
    }
    println!("{kind:?}, lasting: {lasting}: {calls} calls, {images} images, {full} full");
    assert!(calls > 40);
    assert_eq!(full > 0, kind == FaultKind::Enospc && lasting, "{full} times there was no room");
}

#[test]
fn a_failing_device_ends_the_log_and_loses_nothing() {
    fail_every_call(FaultKind::Eio, false);
    fail_every_call(FaultKind::Eio, true);
}

#[test]
fn a_full_disk_ends_the_log_or_is_waited_for_and_loses_nothing() {
    fail_every_call(FaultKind::Enospc, false);
    fail_every_call(FaultKind::Enospc, true);
}

/// The files after an undisturbed run.
fn undisturbed() -> support::image::Image {
    let disk = ModelDisk::default();
    write_all(&disk, &BATCHES, |_| {}).unwrap();
    support::image::image_of(&disk)
}

#[test]
fn interrupted_and_short_calls_are_invisible() {
    let expected = undisturbed();
    // A disk that interrupts every call for ever does nothing at all: that is no case.
    for (kind, lasting) in
        [(FaultKind::Eintr, false), (FaultKind::Short, false), (FaultKind::Short, true)]
    {
        for at_call in 1.. {
            let disk = ModelDisk::default();
            disk.plan(Some(PlannedFault { at_call, kind, lasting }));
            write_all(&disk, &BATCHES, |_| {}).unwrap();
            let passed = disk.calls() < at_call;
            disk.plan(None);
            assert!(support::image::image_of(&disk) == expected, "{kind:?} at call {at_call}");
            let disk = disk.killed();
            disk.plan(Some(PlannedFault { at_call, kind, lasting }));
            let (_, recovered, _) = open(&disk).unwrap();
            assert_eq!(recovered.notes, [], "{kind:?} at call {at_call} of an opening");
            if passed {
                break;
            }
        }
    }
}

#[test]
fn an_opening_that_fails_loses_nothing() {
    // One log that ended well, one whose process was killed, one with a torn end.
    let whole = ModelDisk::default();
    write_all(&whole, &BATCHES, |_| {}).unwrap();
    let killed = ModelDisk::default();
    let (mut wal, _, _) = open(&killed).unwrap();
    append(&mut wal, 3).unwrap();
    wal.sync().unwrap();
    append(&mut wal, 9).unwrap();
    let torn = killed.crashed(&mut support::Mask { bits: 0b101, nth: 0, names: 0 });
    let written = BATCHES.iter().sum();
    for (name, disk, acknowledged) in
        [("whole", &whole, 21), ("killed", &killed, 3), ("torn", &torn, 3)]
    {
        for kind in [FaultKind::Eio, FaultKind::Enospc] {
            for lasting in [false, true] {
                for at_call in 1.. {
                    let disk = disk.killed();
                    disk.plan(Some(PlannedFault { at_call, kind, lasting }));
                    let what = format!("{name}, {kind:?} at call {at_call}, lasting: {lasting}");
                    let opened = open(&disk);
                    let done = opened.is_ok();
                    if let Err(fault) = &opened {
                        let full = kind == FaultKind::Enospc && matches!(fault, Fault::Full);
                        assert!(full || matches!(fault, Fault::Io { .. }), "{what}: {fault}");
                    }
                    drop(opened);
                    disk.plan(None);
                    for image in [disk.killed(), disk.crashed(&mut Nothing)] {
                        check_after_crash(&image, Lsn(acknowledged), written, &what);
                    }
                    if done {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn a_trim_that_fails_ends_the_log() {
    for at in 1..=3 {
        let disk = ModelDisk::default();
        write_all(&disk, &BATCHES, |_| {}).unwrap();
        let (mut wal, _, _) = open(&disk).unwrap();
        let at_call = disk.calls() + at;
        disk.plan(Some(PlannedFault { at_call, kind: FaultKind::Eio, lasting: true }));
        assert!(matches!(wal.trim(Lsn(15)), Err(Fault::Io { .. })));
        check_dead(&disk, &mut wal, "trim");
    }
}

#[test]
fn no_failing_call_loses_anything_while_old_files_become_new_segments() {
    for (kind, lasting) in
        [(FaultKind::Eio, false), (FaultKind::Enospc, false), (FaultKind::Enospc, true)]
    {
        for at_call in 1.. {
            let (disk, mut told) = (ModelDisk::default(), Told::default());
            disk.plan(Some(PlannedFault { at_call, kind, lasting }));
            let what = format!("{kind:?} at call {at_call}, lasting: {lasting}");
            let ended = write_and_trim(&disk, &mut told);
            let passed = disk.calls() < at_call;
            disk.plan(None);
            check_trimmed(&disk.killed(), &told, &format!("{what}, killed"));
            for mut crash in crashes(&disk).into_iter().step_by(3) {
                let what = format!("{what}, sectors {:b}, names {}", crash.bits, crash.names);
                check_trimmed(&disk.crashed(&mut crash), &told, &what);
            }
            if passed {
                assert!(ended.is_ok(), "{what}");
                break;
            }
        }
    }
}

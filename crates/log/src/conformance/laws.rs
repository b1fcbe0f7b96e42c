//! The laws about frames: order, refusal, release, reopening, room and trimming.

use super::driver::{
    Opened, ReadFrame, Waits, Writer, batch, check_records, maintenance, mark, open, read_from,
    record, try_open,
};
use super::{Harness, Support, Takeover};
use crate::batch::Batch;
use crate::fault::Fault;
use crate::interface::{
    AppendAt, Committed, Extent, Keep, Log, Maintenance, Outcome, Read, ReadLog, Trimmed,
};
use crate::lsn::Lsn;
use crate::recovered::Base;

/// Frames of these numbers of records.
const FRAMES: [u64; 9] = [1, 3, 2, 5, 1, 4, 7, 2, 6];
/// The sum of them.
const RECORDS: u64 = 31;

/// An append at another LSN or in another epoch is refused, and nothing is written.
pub fn an_append_elsewhere_is_refused<H: Harness>(harness: &mut H) {
    let mut writer = open(harness).writer;
    writer.write(harness, &FRAMES);
    let epoch = writer.log.epoch();
    drop(writer);
    for nth in 0..3 {
        // A refused writer is at its end, so each try has its own.
        let Opened { mut writer, recovered, .. } = open(harness);
        assert_eq!(recovered.last_lsn, Lsn(RECORDS), "nothing was written by a refused append");
        let own = writer.log.epoch();
        assert!(own > epoch, "each opening has a later epoch");
        let at = [
            AppendAt { lsn: Lsn(RECORDS + 2), epoch: own },
            AppendAt { lsn: Lsn(RECORDS), epoch: own },
            AppendAt { lsn: Lsn(RECORDS + 1), epoch },
        ][nth];
        writer.log.begin(batch(at.lsn, 1), at, 1_000_000);
        let Committed { outcome, .. } = first_outcome(harness, &mut writer.log);
        assert!(
            matches!(outcome, Outcome::Failed(Fault::Deposed { .. })),
            "{at:?} is refused in epoch {own}: {outcome:?}"
        );
    }
}

/// A second writer is refused while the first one lives, or the first one is refused from then on.
pub fn a_second_writer_deposes_or_waits<H: Harness>(harness: &mut H) {
    let Opened { writer: mut first, .. } = open(harness);
    first.write(harness, &FRAMES);
    match harness.takeover() {
        Takeover::Locked => {
            let refused = harness.claim().err().expect("a locked log is not claimed twice");
            assert!(matches!(refused, Fault::InUse { .. }), "{refused}");
            drop(first);
        }
        Takeover::Fenced => {
            let Opened { writer: mut second, recovered, .. } = open(harness);
            assert_eq!(recovered.last_lsn, Lsn(RECORDS));
            second.write(harness, &[2]);
            first.begin(1);
            let Committed { outcome, .. } = last_outcome(harness, &mut first);
            let is_refused = matches!(outcome, Outcome::Failed(Fault::Deposed { .. }));
            assert!(is_refused, "the first writer is deposed: {outcome:?}");
            second.write(harness, &[1]);
            drop(second);
            let Opened { recovered, frames, .. } = open(harness);
            assert_eq!(recovered.last_lsn, Lsn(RECORDS + 3));
            check_records(&frames, Lsn(1), Lsn(RECORDS + 3));
            return;
        }
    }
    let Opened { recovered, .. } = open(harness);
    assert_eq!(recovered.last_lsn, Lsn(RECORDS));
}

/// Up to `depth` frames are under way; their outcomes come back in order, each with its own end.
pub fn outcomes_come_back_in_the_order_of_the_frames<H: Harness>(harness: &mut H) {
    let Opened { mut writer, .. } = open(harness);
    let depth = writer.log.depth();
    assert!(depth > 0, "at least one frame may be under way");
    for _ in 0..10 {
        let first = writer.next;
        for nth in 0..depth as u64 {
            writer.begin(1 + nth % 3);
        }
        writer.finish(harness);
        let ends: Vec<Lsn> = writer.done.drain(..).map(|end| end.lsn).collect();
        let expected: Vec<Lsn> = (0..depth as u64)
            .scan(first, |next, nth| {
                *next = Lsn(next.0 + 1 + nth % 3);
                Some(next.before())
            })
            .collect();
        assert_eq!(ends, expected);
        assert_eq!(writer.log.end().lsn, writer.next.before(), "the log ends with the last frame");
    }
}

/// A reader shows records that are released, from any position, and goes on when there are more.
pub fn readers_show_what_is_released_and_nothing_else<H: Harness>(harness: &mut H) {
    let Opened { mut writer, .. } = open(harness);
    let mut reader = writer.log.reader();
    assert!(matches!(reader.read().expect("an empty log can be read"), Read::UpToDate));
    let mut fork = reader.fork();
    let mut seen = Lsn::NONE;
    for records in FRAMES {
        writer.write(harness, &[records]);
        let frames = read_from(&mut reader, seen.next());
        check_records(&frames, seen.next(), writer.next.before());
        seen = writer.next.before();
        assert!(matches!(reader.read().expect("the log can be read"), Read::UpToDate));
    }
    check_records(&read_from(&mut fork, Lsn(1)), Lsn(1), Lsn(RECORDS));
    for lsn in 1..=RECORDS {
        let frames = read_from(&mut reader, Lsn(lsn));
        let first = &frames[0];
        assert!(first.first <= Lsn(lsn) && Lsn(lsn) <= first.last(), "{lsn} is in {first:?}");
        check_records(&frames, first.first, Lsn(RECORDS));
    }
    reader.seek(Lsn(RECORDS + 1));
    assert!(matches!(reader.read().expect("the log can be read"), Read::UpToDate));
    let id = reader.log_id().expect("a log has an id");
    assert_eq!(fork.log_id().expect("a log has an id"), id);
}

/// Opening again gives the same frames with the same chain, and the log goes on.
pub fn reopening_gives_the_same_frames_and_chain<H: Harness>(harness: &mut H) {
    let mut known = Vec::new();
    for round in 1..=3 {
        let Opened { mut writer, recovered, frames } = open(harness);
        assert_eq!(frames, known, "round {round}");
        assert_eq!(recovered.last_lsn, Lsn(RECORDS * (round - 1)));
        assert_eq!(writer.log.end().lsn, recovered.last_lsn);
        assert_eq!(writer.log.end().chain, recovered.record_chain);
        assert!(writer.log.epoch() > recovered.epoch, "an opening begins an epoch");
        assert!(recovered.notes.is_empty(), "{:?}", recovered.notes);
        writer.write(harness, &FRAMES);
        known = read_from(&mut writer.log.reader(), Lsn(1));
        let end = writer.log.end();
        assert_eq!(
            known.last().map(|frame| (frame.last(), frame.chain)),
            Some((end.lsn, end.chain))
        );
        check_records(&known, Lsn(1), Lsn(RECORDS * round));
    }
}

/// What was released, or shown by a reader, is there after a crash.
pub fn a_crash_loses_nothing_that_was_released<H: Harness>(harness: &mut H) {
    let mut told = Lsn::NONE;
    for round in 0..6 {
        let Opened { mut writer, recovered, frames } = open(harness);
        assert!(recovered.last_lsn >= told, "round {round}: {told} was told");
        check_records(&frames, Lsn(1), recovered.last_lsn);
        writer.write(harness, &FRAMES[..=round]);
        for _ in 0..writer.log.depth() {
            writer.begin(2);
        }
        let _ = writer.poll();
        let shown = read_from(&mut writer.log.reader(), Lsn(1));
        let done = writer.done.last().map_or(Lsn::NONE, |end| end.lsn);
        told = shown.last().map_or(done, |frame| frame.last().max(done));
        drop(writer);
        harness.crash();
    }
    let Opened { recovered, .. } = open(harness);
    assert!(recovered.last_lsn >= told);
}

/// A log without room writes nothing and gives the batch back, with all that were sent behind it;
/// once there is room, it takes the same frames.
pub fn a_full_log_gives_frames_back_and_takes_them_later<H: Harness>(harness: &mut H) {
    let Opened { mut writer, .. } = open(harness);
    writer.write(harness, &[3]);
    if harness.fill() == Support::NotSupported {
        return;
    }
    // A log may have some room left that it took before.
    let mut held = None;
    for _ in 0..10_000 {
        writer.begin(20);
        if let Some(full) = until_full(harness, &mut writer) {
            held = Some(full);
            break;
        }
    }
    let held = held.expect("a log without room says so");
    let last = writer.done.last().map_or(Lsn::NONE, |end| end.lsn);
    let shown = read_from(&mut writer.log.reader(), Lsn(1));
    assert_eq!(shown.last().map(ReadFrame::last), Some(last), "nothing was written");
    assert_eq!(writer.log.end().lsn, last);
    assert_eq!(held.records(), 20, "the batch comes back as it was sent");
    harness.make_room();
    let _ = maintenance(&mut writer.log).room();
    let at = AppendAt { lsn: last.next(), epoch: writer.log.epoch() };
    // Frames that were sent behind it came back as well.
    for nth in 0..writer.log.depth() as u64 {
        let at = AppendAt { lsn: Lsn(at.lsn.0 + nth * 20), ..at };
        writer.under_way.push_back(at);
        writer.log.begin(batch(at.lsn, 20), at, 2_000_000);
    }
    writer.finish(harness);
    let end = Lsn(last.0 + 20 * writer.log.depth() as u64);
    drop(writer);
    let Opened { recovered, frames, .. } = open(harness);
    assert_eq!(recovered.last_lsn, end);
    check_records(&frames, Lsn(1), end);
}

/// An unknown outcome is resolved: each frame is in the log once, in its place.
pub fn unknown_outcomes_are_resolved<H: Harness>(harness: &mut H) {
    let Opened { mut writer, .. } = open(harness);
    for _ in 0..20 {
        writer.write(harness, &FRAMES);
    }
    assert_eq!(writer.done.len(), 20 * FRAMES.len(), "every frame was done once");
    if harness.has_unknown_outcomes() {
        assert!(writer.unknown > 10, "only {} outcomes were unknown", writer.unknown);
    }
    let done = std::mem::take(&mut writer.done);
    drop(writer);
    let Opened { recovered, frames, .. } = open(harness);
    assert_eq!(recovered.last_lsn, Lsn(20 * RECORDS));
    check_records(&frames, Lsn(1), Lsn(20 * RECORDS));
    let ends: Vec<_> = frames.iter().map(|frame| (frame.last(), frame.chain)).collect();
    let told: Vec<_> = done.iter().map(|end| (end.lsn, end.chain)).collect();
    assert_eq!(ends, told, "the log has the frames that were reported");
}

/// Marks and a close write no records and lose none, and the next opening knows their time.
pub fn a_close_and_marks_lose_nothing<H: Harness>(harness: &mut H) {
    let Opened { mut writer, .. } = open(harness);
    for records in FRAMES {
        writer.write(harness, &[records]);
        let end = writer.log.end();
        mark(&mut writer);
        mark(&mut writer);
        assert_eq!(writer.log.end(), end, "a mark is behind the last record");
    }
    let at_ms = writer.at_ms() + 5_000;
    let log = maintenance(&mut writer.log);
    log.sync().expect("a sound log syncs");
    assert_eq!(log.durable(), Lsn(RECORDS), "after a sync everything is durable");
    assert_eq!(log.sync_due_ms(), None, "nothing is left to sync");
    log.close(at_ms).expect("there is room for a mark");
    drop(writer);
    let Opened { mut writer, recovered, frames } = open(harness);
    assert_eq!((recovered.last_lsn, recovered.may_lack), (Lsn(RECORDS), false));
    assert_eq!(recovered.at_ms, at_ms, "log time goes on from the last mark");
    check_records(&frames, Lsn(1), Lsn(RECORDS));
    writer.write(harness, &FRAMES);
    check_records(&read_from(&mut writer.log.reader(), Lsn(1)), Lsn(1), Lsn(2 * RECORDS));
}

/// Trimming forgets whole frames before a record, as the policy says; readers hear of it.
pub fn trimmed_records_are_gone_and_the_rest_is_there<H: Harness>(harness: &mut H) {
    let Opened { mut writer, .. } = open(harness);
    for _ in 0..40 {
        writer.write(harness, &FRAMES);
    }
    let last = writer.next.before();
    let before = Lsn(last.0 / 2);
    let at_ms = writer.at_ms() + 1_000_000;
    let log = maintenance(&mut writer.log);
    let Extent { oldest, bytes } = log.extent();
    assert_eq!(oldest, Lsn(1));
    assert!(bytes > 0);
    for keep in [Keep::All, Keep::Ms(u64::MAX), Keep::Bytes(u64::MAX)] {
        assert_eq!(
            log.trim(before, keep, at_ms).expect("a sound log is trimmed"),
            Trimmed::Nothing
        );
    }
    while log.trim(before, Keep::Ms(0), at_ms).expect("a sound log is trimmed") == Trimmed::Some {}
    let trimmed = log.extent();
    assert!(trimmed.oldest > Lsn(1) && trimmed.oldest <= before, "{trimmed:?}, not {before}");
    assert!(trimmed.bytes < bytes, "{trimmed:?} takes less than {bytes} bytes");
    let mut reader = writer.log.reader();
    reader.seek(Lsn(1));
    match reader.read().expect("a trimmed log can be read") {
        Read::Trimmed(oldest) => assert_eq!(oldest, trimmed.oldest),
        found @ (Read::Frame(_) | Read::UpToDate) => unreachable!("record 1 is gone: {found:?}"),
    }
    check_records(&read_from(&mut reader, trimmed.oldest), trimmed.oldest, last);
    drop(writer);
    let refused = try_open(harness, &Base::default()).err();
    let refused = refused.expect("a log without its beginning is opened behind a snapshot only");
    assert!(matches!(refused, Fault::Corrupt(_)), "{refused}");
}

/// The outcome of the one frame under way.
fn first_outcome<H: Harness>(harness: &mut H, log: &mut H::Log) -> Committed {
    let mut waits = Waits::default();
    loop {
        match log.poll() {
            Some(committed) => return committed,
            None => waits.wait(harness),
        }
    }
}

/// The outcome of the frame that a writer has sent last, resolved if it is unknown.
fn last_outcome<H: Harness>(harness: &mut H, writer: &mut Writer<H::Log>) -> Committed {
    let mut waits = Waits::default();
    loop {
        match writer.log.poll() {
            Some(Committed { batch, outcome: Outcome::Unknown }) => {
                let at = *writer.under_way.front().expect("a frame is under way");
                let at_ms = writer.at_ms();
                writer.log.resolve(batch, at, at_ms);
            }
            Some(committed) => return committed,
            None => waits.wait(harness),
        }
    }
}

/// Fills the window; gives the first batch that comes back because there is no room, once all came
/// back.
fn until_full<H: Harness>(harness: &mut H, writer: &mut Writer<H::Log>) -> Option<Batch> {
    while writer.under_way.len() < writer.log.depth() {
        writer.begin(20);
    }
    let (mut held, mut waits) = (None, Waits::default());
    while let Some(at) = writer.under_way.front().copied() {
        let Some(Committed { batch, outcome }) = writer.log.poll() else {
            waits.wait(harness);
            continue;
        };
        match outcome {
            Outcome::Done { end, .. } => {
                assert!(held.is_none(), "no frame passes one that found no room");
                writer.done.push(end);
                writer.under_way.pop_front();
            }
            Outcome::Full => {
                let mut records = batch.records_from(at.lsn);
                assert!(records.all(|(lsn, bytes)| bytes == record(lsn)));
                drop(records);
                held.get_or_insert(batch);
                writer.under_way.pop_front();
            }
            Outcome::Unknown => {
                let at_ms = writer.at_ms();
                writer.log.resolve(batch, at, at_ms);
            }
            Outcome::Failed(fault) => unreachable!("a full log does not fail: {fault}"),
        }
    }
    if held.is_some() {
        writer.next = writer.done.last().map_or(Lsn(1), |end| end.lsn.next());
    }
    held
}

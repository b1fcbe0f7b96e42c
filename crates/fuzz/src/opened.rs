//! What must hold of any log that opens, whatever its bytes are, and of any that does not.

use tenure_log::{Anchor, Batch, Fault, FrameKind, Lsn, Note, Read};
use tenure_wal::disk::model::ModelDisk;
use tenure_wal::{Beginning, Wal, inspect};

use crate::damage::Image;
use crate::reference::{disk_of, image_of, options};

/// An opening reads each file a few times. More calls than this are a loop.
const CALLS_MAX: u64 = 2_000;

/// What was found in a log that opened.
#[derive(Debug)]
pub(crate) struct Found {
    /// The records after the anchor.
    pub(crate) records: Vec<Vec<u8>>,
    pub(crate) last_lsn: Lsn,
    pub(crate) notes: Vec<Note>,
}

/// Opens a log and checks all that must hold whatever its bytes are: a refusal changes nothing;
/// what opens has records without gaps, is told the same by everyone who reads it, and goes on.
pub(crate) fn open(image: &Image, anchor: Option<Anchor>) -> Result<Found, Fault> {
    let disk = disk_of(image);
    let looked = inspect(&disk, Beginning::First, |_| {});
    let opened = visit(&disk, anchor);
    assert!(disk.calls() < CALLS_MAX, "{} calls for one opening", disk.calls());
    let (wal, found) = match opened {
        Ok(opened) => opened,
        Err(fault) => {
            assert!(image_of(&disk) == *image, "a log was refused and changed: {fault}");
            assert_eq!(disk.pending(), (Vec::new(), 0), "a log was refused and changed: {fault}");
            assert!(!matches!(fault, Fault::Io { .. }), "the model does not fail: {fault}");
            return Err(fault);
        }
    };
    if anchor.is_none() {
        let looked = looked.expect("what can be opened can be looked at").recovered;
        assert_eq!((looked.last_lsn, &looked.notes), (found.last_lsn, &found.notes));
    }
    goes_on(&disk, wal, &found, anchor);
    Ok(found)
}

fn visit(disk: &ModelDisk, anchor: Option<Anchor>) -> Result<(Wal<ModelDisk>, Found), Fault> {
    let mut records = Vec::new();
    let mut next = None;
    let (wal, recovered) = Wal::open(disk, options(), anchor, |frame| {
        let header = frame.header;
        let wanted = next.unwrap_or(header.first_lsn);
        assert_eq!(header.first_lsn, wanted, "LSNs have no gaps");
        assert_eq!(header.kind == FrameKind::Records, header.records > 0, "only marks have none");
        let before = records.len();
        let mut bytes_seen = 0;
        for (lsn, bytes) in frame.records() {
            assert_eq!(lsn.0, wanted.0 + (records.len() - before) as u64, "LSNs have no gaps");
            bytes_seen += 4 + bytes.len();
            records.push(bytes.to_vec());
        }
        assert_eq!(records.len() - before, header.records as usize, "records are missing");
        assert_eq!(bytes_seen, header.payload_bytes as usize, "something is in no record");
        next = Some(header.end_lsn());
    })?;
    if let Some(next) = next {
        assert_eq!(recovered.last_lsn.next(), next, "the end is not where the frames end");
    }
    Ok((wal, Found { records, last_lsn: recovered.last_lsn, notes: recovered.notes }))
}

/// One more record can be written and is there at the next start, and a reader sees what the
/// opening saw.
fn goes_on(disk: &ModelDisk, mut wal: Wal<ModelDisk>, found: &Found, anchor: Option<Anchor>) {
    let mut batch = Batch::default();
    batch.push(|out| out.extend_from_slice(b"one more"));
    let lsn = wal.append(&mut batch, 1).expect("the model has room");
    assert_eq!(lsn, found.last_lsn.next(), "the new record does not follow the last");
    wal.sync().expect("the model does not fail");
    let mut reader = wal.reader();
    let first = Lsn(lsn.0 - found.records.len() as u64);
    reader.seek(first);
    let mut seen = Vec::new();
    loop {
        match reader.read().expect("what was opened can be read") {
            Read::Frame(frame) => {
                let wanted = frame.records().filter(|(lsn, _)| *lsn >= first);
                seen.extend(wanted.map(|(_, bytes)| bytes.to_vec()));
            }
            Read::UpToDate => break,
            Read::Trimmed(oldest) => unreachable!("nothing was trimmed, but {oldest} is oldest"),
        }
    }
    let expected: Vec<_> =
        found.records.iter().map(Vec::as_slice).chain([&b"one more"[..]]).collect();
    assert!(seen == expected, "a reader sees something else");
    drop(wal);
    match visit(disk, anchor) {
        Ok((_, again)) => assert!(again.records == expected, "the next start sees something else"),
        Err(fault) => unreachable!("the next start is refused: {fault}"),
    }
}

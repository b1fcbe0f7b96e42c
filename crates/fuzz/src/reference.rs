//! Sound logs of which everything is known: what was written, in which frame, and what each frame
//! says about those before it.

use std::sync::OnceLock;

use tenure_log::{Anchor, Batch, FrameKind, Note};
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::{ModelDisk, Survival};
use tenure_wal::{Beginning, Options, Spares, Wal, inspect};

use crate::damage::{Image, Landmark};

/// Two headers and room for a few frames.
const SEGMENT_BYTES: u64 = 17 << 10;
/// Records in each frame; together they fill more than two segments.
const BATCHES: [u64; 9] = [1, 3, 2, 5, 1, 4, 2, 1, 1];

pub(crate) fn options() -> Options {
    Options { spares: Spares::Caller, segment_bytes: SEGMENT_BYTES, ..Options::new(0xabc) }
}

/// A frame where it lies.
#[derive(Clone, Debug)]
pub(crate) struct Lies {
    pub(crate) file: String,
    pub(crate) from: usize,
    /// Where header and payload end.
    pub(crate) until: usize,
    pub(crate) first_lsn: u64,
    /// The record after its last one.
    pub(crate) end_lsn: u64,
    /// What it says was durable when it was written.
    pub(crate) durable: u64,
    /// What a snapshot that was taken after it would say.
    pub(crate) anchor: Anchor,
}

/// A sound log, and all that is known about it.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) image: Image,
    pub(crate) frames: Vec<Lies>,
    pub(crate) records: Vec<Vec<u8>>,
    pub(crate) notes: Vec<Note>,
    /// Headers and frames.
    pub(crate) landmarks: Vec<Landmark>,
}

/// How the log came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    WithRecords,
    WithMark,
    /// A crash tore a frame in the middle of its life, and it went on.
    AfterScar,
}

/// One of the sound logs.
pub(crate) fn reference(nth: u8) -> &'static Reference {
    static MADE: OnceLock<[Reference; 3]> = OnceLock::new();
    let all = MADE.get_or_init(|| [Ends::WithRecords, Ends::WithMark, Ends::AfterScar].map(make));
    &all[usize::from(nth) % all.len()]
}

/// Record `lsn`: its size and content follow from its number.
fn record(lsn: u64) -> Vec<u8> {
    let size = match lsn % 7 {
        0 => 0,
        1 => 700,
        2 => 3_000,
        _ => 20 + (lsn % 50) as usize,
    };
    (0..size).map(|i| (lsn as usize * 31 + i * 7) as u8).collect()
}

fn append(wal: &mut Wal<ModelDisk>, count: u64) {
    let mut batch = Batch::default();
    for lsn in wal.written().0 + 1..=wal.written().0 + count {
        batch.push(|out| out.extend_from_slice(&record(lsn)));
    }
    let at_ms = 1_000 + wal.written().0;
    wal.append(&mut batch, at_ms).expect("the model works as long as nothing is planned");
}

fn open(disk: &ModelDisk) -> Wal<ModelDisk> {
    Wal::open(disk, options(), None, |_| {}).expect("a sound log is opened").0
}

/// Half of what was not synced survives.
struct Half(bool);

impl Survival for Half {
    fn keeps(&mut self, _: usize, _: usize) -> bool {
        self.0 = !self.0;
        self.0
    }

    fn names(&mut self, pending: usize) -> usize {
        pending
    }
}

fn make(ends: Ends) -> Reference {
    let mut disk = ModelDisk::default();
    let mut wal = open(&disk);
    for (nth, count) in BATCHES.into_iter().enumerate() {
        append(&mut wal, count);
        if ends == Ends::AfterScar && nth == 3 {
            let crashed = disk.crashed(&mut Half(false));
            disk = crashed;
            wal = open(&disk);
        }
        wal.sync().expect("the model works as long as nothing is planned");
    }
    if ends == Ends::WithMark {
        wal.mark(9_000).expect("the model works as long as nothing is planned");
    }
    drop(wal);
    describe(&disk)
}

fn describe(disk: &ModelDisk) -> Reference {
    let (mut frames, mut records, mut words) = (Vec::new(), Vec::new(), Vec::new());
    let inspected = inspect(disk, Beginning::First, |at| {
        let header = at.frame.header;
        if header.kind == FrameKind::SegmentEnd {
            // It is no part of the chain; the next segment is where the log goes on.
            words.push((at.segment.file.clone(), at.offset as usize));
            return;
        }
        let next = (at.offset + header.frame_bytes()) as usize;
        let end_lsn = header.end_lsn();
        frames.push(Lies {
            file: at.segment.file.clone(),
            from: at.offset as usize,
            // Frames begin at multiples of eight, and so does a payload.
            until: next - (8 - header.payload_bytes as usize % 8) % 8,
            first_lsn: header.first_lsn.0,
            end_lsn: end_lsn.0,
            durable: header.durable.0,
            anchor: Anchor { lsn: end_lsn.before(), chain: header.chain },
        });
        records.extend(at.frame.records().map(|(_, bytes)| bytes.to_vec()));
    });
    let notes = inspected.expect("a sound log is read").recovered.notes;
    let image = image_of(disk);
    let headers = image.keys().flat_map(|file| [0, 4_096].map(|at| (file.clone(), at)));
    let begins = frames.iter().map(|frame| (frame.file.clone(), frame.from));
    let landmarks = headers.chain(begins).chain(words).collect();
    Reference { image, frames, records, notes, landmarks }
}

/// What is on a disk.
pub(crate) fn image_of(disk: &ModelDisk) -> Image {
    let names = disk.list().unwrap_or_default();
    names.into_iter().filter_map(|name| Some((name.clone(), disk.bytes(&name)?))).collect()
}

/// A disk with these files, durable.
pub(crate) fn disk_of(image: &Image) -> ModelDisk {
    let disk = ModelDisk::default();
    for (name, bytes) in image {
        disk.put(name, bytes.clone());
    }
    disk
}

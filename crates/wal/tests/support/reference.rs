//! A sound log of which everything is known, and what must come of damage to it.

use std::ops::Range;

use tenure_log::{Fault, Lsn, Note};
use tenure_wal::disk::model::{ModelDisk, SECTOR_BYTES};
use tenure_wal::{Options, Wal};

use super::image::{
    FRAME_HEADER_BYTES, FRAMES_FROM, Image, Lies, PAGE_BYTES, SECOND_HEADER_AT, What, disk_of,
    image_of, layout, reseal_headers,
};
use super::{append, open, options, record};

/// Small frames and large ones, with zeros at the end of each segment.
pub(crate) const BATCHES: [u64; 6] = [1, 3, 2, 5, 1, 3];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    WithRecords,
    WithMark,
}

/// A sound log, and all that is known about it.
pub(crate) struct Reference {
    pub image: Image,
    pub frames: Vec<Lies>,
    pub records: Vec<Vec<u8>>,
    pub ends: Ends,
}

pub(crate) fn reference(ends: Ends) -> Reference {
    let reference = reference_of(&BATCHES, ends, options());
    assert!(reference.image.len() >= 3, "{} segments", reference.image.len());
    assert!(reference.frames.len() >= BATCHES.len());
    reference
}

/// The log of some batches.
pub(crate) fn reference_of(batches: &[u64], ends: Ends, options: Options) -> Reference {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options, None, |_| {}).unwrap();
    for count in batches {
        append(&mut wal, *count).unwrap();
        wal.sync().unwrap();
    }
    if ends == Ends::WithMark {
        wal.mark(9_000).unwrap();
    }
    let image = image_of(&disk);
    let records = (1..=wal.written().0).map(record).collect();
    let frames = layout(&image);
    Reference { frames, image, records, ends }
}

/// How an opening ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Refused(Fault),
    Opened(Vec<Vec<u8>>, Vec<Note>),
}

/// Opens damaged files. A refusal must leave them as they are.
pub(crate) fn open_image(image: &Image) -> Outcome {
    let disk = disk_of(image);
    match open(&disk) {
        Ok((_, recovered, records)) => Outcome::Opened(records, recovered.notes),
        Err(fault) => {
            assert!(image_of(&disk) == *image, "a log was refused and changed: {fault}");
            assert_eq!(disk.pending(), (Vec::new(), 0), "a log was refused and changed: {fault}");
            Outcome::Refused(fault)
        }
    }
}

pub(crate) fn file_of(fault: &Fault) -> &str {
    match fault {
        Fault::Corrupt(corruption) => &corruption.file,
        Fault::Format { file, .. } | Fault::Foreign { file, .. } => file,
        Fault::NoFolder { .. }
        | Fault::NotEmpty { .. }
        | Fault::Beyond { .. }
        | Fault::InUse { .. }
        | Fault::Replaced { .. }
        | Fault::Exposed { .. }
        | Fault::IsBackup { .. }
        | Fault::Io { .. }
        | Fault::Deposed { .. }
        | Fault::Full => {
            unreachable!("not a fault of the bytes: {fault}")
        }
    }
}

impl Reference {
    pub(crate) fn last_file(&self) -> &str {
        self.image.keys().next_back().unwrap()
    }

    /// The frame that a byte belongs to, with the gap behind it.
    pub(crate) fn frame_at(&self, file: &str, at: usize) -> Option<&Lies> {
        self.frames
            .iter()
            .find(|frame| frame.file == file && (frame.from..frame.next).contains(&at))
    }

    /// What must come of one changed bit.
    pub(crate) fn check_flip(&self, file: &str, at: usize, outcome: &Outcome, what: &str) {
        let only_note = |expected: &Note| match outcome {
            Outcome::Opened(records, notes) => {
                assert!(*records == self.records, "{what}: records lost or changed");
                assert_eq!(notes.as_slice(), std::slice::from_ref(expected), "{what}");
            }
            Outcome::Refused(fault) => unreachable!("{what}: {fault}"),
        };
        if at < FRAMES_FROM {
            return only_note(&Note::OneHeader { file: file.to_owned() });
        }
        let Some(frame) = self.frame_at(file, at) else {
            let of_file = self.frames.iter().rfind(|frame| frame.file == file);
            let end = of_file.map_or(FRAMES_FROM, |frame| frame.next);
            // Where a mark could begin, it is a mark that is broken.
            let page = end.next_multiple_of(PAGE_BYTES);
            let is_mark = (page..page + FRAME_HEADER_BYTES).contains(&at)
                && of_file.is_none_or(|frame| frame.what != What::GoesOn);
            let offset = if is_mark { page } else { end } as u64;
            let lsn = Lsn(of_file.unwrap().first_lsn + of_file.unwrap().records);
            return only_note(&match file == self.last_file() {
                true => Note::Torn { file: file.to_owned(), offset, lsn },
                false => Note::Scar { file: file.to_owned(), offset },
            });
        };
        if frame.what == What::GoesOn {
            // The next segment is there and says the same.
            return only_note(&Note::Scar { file: file.to_owned(), offset: frame.from as u64 });
        }
        if frame == self.frames.last().unwrap() && at < frame.until {
            // With nothing behind it that says it was durable it looks torn. If it is a mark,
            // nothing is lost with it.
            let Outcome::Opened(records, notes) = outcome else {
                unreachable!("{what}: {outcome:?}")
            };
            let left = frame.first_lsn as usize - 1;
            assert!(records[..] == self.records[..left], "{what}: more is lost than the frame");
            let (offset, lsn) = (frame.from as u64, Lsn(frame.first_lsn));
            assert_eq!(*notes, [Note::Torn { file: file.to_owned(), offset, lsn }], "{what}");
            assert!(self.ends == Ends::WithRecords || *records == self.records, "{what}");
            return;
        }
        let Outcome::Refused(Fault::Corrupt(corruption)) = outcome else {
            unreachable!("{what}: not noticed: {outcome:?}")
        };
        assert_eq!(corruption.file, file, "{what}");
        assert_eq!(corruption.offset, frame.from as u64, "{what}");
        assert_eq!(corruption.lsn.0, frame.first_lsn, "{what}");
    }
}

pub(crate) fn refused(image: &Image, what: &str) -> Fault {
    match open_image(image) {
        Outcome::Refused(fault) => fault,
        Outcome::Opened(records, notes) => {
            unreachable!("{what}: {} records, {notes:?}", records.len())
        }
    }
}

impl Reference {
    /// Frames fit only the segment with the salt that they were written with.
    pub(crate) fn check_salts(&self) {
        let ours = self;
        for (name, bytes) in &ours.image {
            let mut image = ours.image.clone();
            // The same log, number and chain, but another salt.
            let mut mixed = bytes.clone();
            for at in [0, SECOND_HEADER_AT] {
                mixed[at + 80] ^= 1;
            }
            reseal_headers(&mut mixed);
            image.insert(name.clone(), mixed);
            if name == ours.last_file() {
                // Nothing that can be read says that anything was durable here.
                let Outcome::Opened(_, notes) = open_image(&image) else { continue };
                assert!(matches!(notes[..], [Note::Torn { .. }]), "{name}: {notes:?}");
            } else {
                assert_eq!(file_of(&refused(&image, name)), name);
            }
        }
    }
}

/// Which bytes of a file differ.
fn changed(before: &[u8], after: &[u8]) -> Option<Range<usize>> {
    let from = before.iter().zip(after).position(|(one, other)| one != other)?;
    let until = before.iter().zip(after).rposition(|(one, other)| one != other)?;
    Some(from..until + 1)
}

impl Reference {
    /// What must come of one or two changed sectors in a file. Returns whether the last frames
    /// were lost because they lay in a changed sector, as a whole or with their only witness.
    pub(crate) fn check_sectors(&self, file: &str, after: &[u8], what: &str) -> bool {
        let before = &self.image[file];
        if changed(before, after).is_none() {
            return false;
        }
        let hit = |frame: &Lies| {
            frame.file == file
                && (frame.from..frame.next)
                    .step_by(SECTOR_BYTES)
                    .chain([frame.next - 1])
                    .map(|at| at / SECTOR_BYTES * SECTOR_BYTES)
                    .any(|at| {
                        before[at..]
                            .iter()
                            .zip(&after[at..])
                            .take(SECTOR_BYTES)
                            .any(|(a, b)| a != b)
                    })
        };
        let mut image = self.image.clone();
        image.insert(file.to_owned(), after.to_vec());
        match open_image(&image) {
            Outcome::Refused(fault) => {
                assert_eq!(file_of(&fault), file, "{what}: {fault}");
                false
            }
            Outcome::Opened(records, notes) if records == self.records => {
                // Its own header, its own end, or a word about others: whatever it was, somebody
                // says so, unless such a word was wiped out whole.
                let word = self
                    .frames
                    .iter()
                    .any(|frame| matches!(frame.what, What::Mark | What::GoesOn) && hit(frame));
                assert!(!notes.is_empty() || word, "{what}: nobody says anything");
                false
            }
            Outcome::Opened(records, _) => {
                assert_eq!(file, self.last_file(), "{what}: lost {}", self.records.len());
                assert!(records[..] == self.records[..records.len()], "{what}: records changed");
                let lost = self.frames.iter().filter(|frame| {
                    frame.first_lsn > records.len() as u64
                        && matches!(frame.what, What::Records | What::Mark)
                });
                for frame in lost {
                    assert!(hit(frame), "{what}: {frame:?} was not hit and is lost");
                }
                true
            }
        }
    }
}

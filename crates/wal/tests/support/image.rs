//! The files of a log as plain bytes, to be damaged and put on a new disk.

use std::collections::BTreeMap;

use tenure_wal::disk::Disk;
use tenure_wal::disk::model::ModelDisk;

/// Where frames begin in a segment.
pub(crate) const FRAMES_FROM: usize = 8_192;
/// Bytes of a segment's header, and where its second copy is.
pub(crate) const HEADER_BYTES: usize = 104;
pub(crate) const SECOND_HEADER_AT: usize = 4_096;
/// Where marks begin.
pub(crate) const PAGE_BYTES: usize = 4_096;
pub(crate) const FRAME_HEADER_BYTES: usize = 88;

/// All files, by name.
pub(crate) type Image = BTreeMap<String, Vec<u8>>;

/// What is on a disk.
pub(crate) fn image_of(disk: &ModelDisk) -> Image {
    let names = disk.list().unwrap();
    names.into_iter().map(|name| (name.clone(), disk.bytes(&name).unwrap())).collect()
}

/// A disk with these files, durable.
pub(crate) fn disk_of(image: &Image) -> ModelDisk {
    let disk = ModelDisk::default();
    for (name, bytes) in image {
        disk.put(name, bytes.clone());
    }
    disk
}

pub(crate) fn segment_name(number: u64) -> String {
    format!("segment-{number:016x}.wal")
}

/// What the header of a frame says it is; and zeros between a frame and one that begins a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Records,
    Mark,
    GoesOn,
    Gap,
}

/// A frame where it lies, found without the code that is tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lies {
    pub what: What,
    pub file: String,
    pub from: usize,
    /// Where header and payload end.
    pub until: usize,
    /// Where the next frame may begin.
    pub next: usize,
    pub first_lsn: u64,
    pub records: u64,
}

/// All frames of a sound log, in order.
pub(crate) fn layout(image: &Image) -> Vec<Lies> {
    let mut frames = Vec::new();
    for (file, bytes) in image {
        let mut from = FRAMES_FROM;
        let mut lsn = frames.last().map_or(1, |last: &Lies| last.first_lsn + last.records);
        let is_frame = |at: usize| bytes.get(at..at + 4) == Some(b"TnrF");
        while is_frame(from) || is_frame(from.next_multiple_of(PAGE_BYTES)) {
            let page = from.next_multiple_of(PAGE_BYTES);
            if !is_frame(from) {
                let (what, file) = (What::Gap, file.clone());
                let (until, next, first_lsn, records) = (from, page, lsn, 0);
                frames.push(Lies { what, file, from, until, next, first_lsn, records });
                from = page;
            }
            let word = |at| u32::from_le_bytes(bytes[from + at..from + at + 4].try_into().unwrap());
            let what = [What::Records, What::Mark, What::GoesOn][usize::from(bytes[from + 8]) - 1];
            let until = from + 88 + word(12) as usize;
            let next = until.next_multiple_of(8);
            let (first_lsn, records) = (u64::from(word(16)), u64::from(word(24)));
            frames.push(Lies { what, file: file.clone(), from, until, next, first_lsn, records });
            (from, lsn) = (next, first_lsn + records);
        }
    }
    frames
}

/// Makes the checksum of both headers fit what they say.
pub(crate) fn reseal_headers(bytes: &mut [u8]) {
    for at in [0, SECOND_HEADER_AT] {
        let crc = u64::from(crc32c::crc32c(&bytes[at..at + HEADER_BYTES - 8]));
        bytes[at + HEADER_BYTES - 8..at + HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    }
}

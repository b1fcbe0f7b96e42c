//! A segment: a file of frames. Its header says where it stands in the chain, and is there twice.

use tenure_log::{Chain, CrcSeed, FORMAT, Fault, FrameHeader, FrameKind, Lsn};

use crate::disk::{Disk, DiskFile};
use crate::planted::{self, Bug};
use crate::spare::SPARE;

/// Where frames begin: after the two headers, each in a page of its own.
pub(crate) const FRAMES_FROM: u64 = 8_192;
/// What a disk or the system loses at once, if it loses anything.
pub(crate) const PAGE_BYTES: u64 = 4_096;
/// Bytes by which a mark makes the log longer, at most: it begins a page.
pub(crate) const MARK_BYTES: u64 = PAGE_BYTES;
pub(crate) const SECOND_HEADER_AT: u64 = PAGE_BYTES;
pub(crate) const HEADER_BYTES: usize = 104;
pub(crate) const CRC_AT: usize = 96;
const MAGIC: [u8; 8] = *b"TenureWL";

/// Where the last record or mark of a segment must end: a page behind it belongs to the word that
/// the log goes on elsewhere.
pub(crate) fn frames_until(file_bytes: u64) -> u64 {
    file_bytes.saturating_sub(tenure_log::HEADER_BYTES as u64) / PAGE_BYTES * PAGE_BYTES
}

/// Bytes by which a frame made the log longer. A frame without records begins a page.
pub(crate) fn log_bytes(header: &FrameHeader) -> u64 {
    match header.kind {
        FrameKind::Records => header.frame_bytes(),
        FrameKind::Mark | FrameKind::SegmentEnd => MARK_BYTES,
    }
}

/// The contents of a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Which log it belongs to.
    pub log_id: u128,
    /// Its place in the order of segments.
    pub number: u64,
    /// The first record it can have.
    pub first_lsn: Lsn,
    /// The chain at the end of the segment before.
    pub before: Chain,
    /// What its CRCs start from.
    pub salt: u64,
    /// How long the file is. It never gets shorter, so one that is has lost something.
    pub file_bytes: u64,
}

impl SegmentHeader {
    /// What the checksums of a frame at this offset start from.
    pub(crate) fn seed(&self, offset: u64) -> CrcSeed {
        let salt = if planted::has(Bug::CrcWithoutSalt) { 0 } else { self.salt };
        CrcSeed { salt, position: offset }
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.log_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first_lsn.0.to_le_bytes());
        bytes[48..80].copy_from_slice(&self.before.0);
        bytes[80..88].copy_from_slice(&self.salt.to_le_bytes());
        bytes[88..96].copy_from_slice(&self.file_bytes.to_le_bytes());
        let crc = u64::from(crc32c::crc32c(&bytes[..CRC_AT]));
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<(u32, Self)> {
        let long = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        if bytes[..8] != MAGIC || long(CRC_AT) != u64::from(crc32c::crc32c(&bytes[..CRC_AT])) {
            return None;
        }
        let mut before = [0; 32];
        before.copy_from_slice(&bytes[48..80]);
        let header = Self {
            log_id: u128::from(long(16)) | u128::from(long(24)) << 64,
            number: long(32),
            first_lsn: Lsn(long(40)),
            before: Chain(before),
            salt: long(80),
            file_bytes: long(88),
        };
        Some((long(8) as u32, header))
    }
}

/// What was found where a segment's header should be.
pub(crate) enum Found {
    /// A good header, and how many of its copies are.
    Header(SegmentHeader, Copies),
    /// Neither copy can be read.
    Nothing,
}

/// How many copies of a header are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    Both,
    One,
}

/// The file name of a segment.
pub(crate) fn file_name(number: u64) -> String {
    format!("segment-{number:016x}.wal")
}

/// The number in a segment's file name.
pub(crate) fn number_in(name: &str) -> Option<u64> {
    let number = name.strip_prefix("segment-")?.strip_suffix(".wal")?;
    (number.len() == 16).then(|| u64::from_str_radix(number, 16).ok()).flatten()
}

/// Turns the spare into a segment. When this returns, its header and its name are durable.
pub(crate) fn name_spare<D: Disk>(
    disk: &D,
    spare: &D::File,
    header: &SegmentHeader,
) -> Result<(), Fault> {
    let name = file_name(header.number);
    let bytes = header.encode();
    for offset in [0, SECOND_HEADER_AT] {
        spare.write_all_at(&bytes, offset).map_err(|e| Fault::io("write", &name, e))?;
    }
    if !planted::has(Bug::RenameBeforeSync) {
        spare.sync().map_err(|e| Fault::io("sync", &name, e))?;
    }
    disk.rename(SPARE, &name).map_err(|e| Fault::io("rename to", &name, e))?;
    // The rename is not durable until the folder is; without this a crash can lose the segment.
    planted::sync_folder(disk).map_err(|e| Fault::io("sync the folder of", &name, e))
}

/// Log time of a segment's first frame, if it has one.
pub(crate) fn first_frame_at_ms<D: Disk>(
    disk: &D,
    header: &SegmentHeader,
) -> Result<Option<u64>, Fault> {
    let name = file_name(header.number);
    let file = disk.open(&name).map_err(|e| Fault::io("open", &name, e))?;
    let mut bytes = [0; tenure_log::HEADER_BYTES];
    file.read_full_at(&mut bytes, FRAMES_FROM).map_err(|e| Fault::io("read", &name, e))?;
    let first = planted::read_header(&bytes, header.seed(FRAMES_FROM));
    Ok(first.map(|first| first.at_ms))
}

/// Reads a segment's header.
pub(crate) fn read_header<F: DiskFile>(file: &F, name: &str) -> Result<Found, Fault> {
    let mut good = Vec::new();
    for offset in [0, SECOND_HEADER_AT] {
        let mut page = [0; SECOND_HEADER_AT as usize];
        file.read_full_at(&mut page, offset).map_err(|e| Fault::io("read", name, e))?;
        let Some((bytes, rest)) = page.split_first_chunk() else {
            unreachable!("a page is longer")
        };
        // Behind the header nothing was ever written; what another format has there is not ours.
        let written = |version| version == FORMAT && rest.iter().any(|byte| *byte != 0);
        good.extend(SegmentHeader::decode(bytes).filter(|(version, _)| !written(*version)));
    }
    if let Some((version, _)) = good.iter().find(|(version, _)| *version != FORMAT) {
        return Err(Fault::Format { file: name.to_owned(), version: *version });
    }
    match good.as_slice() {
        [] => Ok(Found::Nothing),
        [(_, header)] => Ok(Found::Header(*header, Copies::One)),
        [(_, one), (_, other), ..] if one == other => Ok(Found::Header(*one, Copies::Both)),
        // Both are whole and say different things: no accident of the disk does that.
        _ => Err(Fault::Foreign {
            file: name.to_owned(),
            found: "its two headers differ".to_owned(),
        }),
    }
}

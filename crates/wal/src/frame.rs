//! A frame: one group commit, many records.
//!
//! ```text
//! 0   magic         4   "TnrF"
//! 4   header CRC    4   over the rest of the header: the length is trusted before it is used
//! 8   kind          1   records, a mark, or the last word of a segment
//! 9   zeros         3
//! 12  payload size  4
//! 16  first LSN     8   of the first record; without records, of the next one
//! 24  records       4
//! 28  payload CRC   4
//! 32  epoch         8
//! 40  durable LSN   8   what was durable when this was written
//! 48  log time      8
//! 56  chain        32   BLAKE3 over the chain before, the header from 8 up to here, and the
//!                       BLAKE3 of the payload
//! 88  payload           each record: its size in 4 bytes, then its bytes
//! ```
//!
//! A frame with records begins where the one before ends. One without begins with the next page,
//! with zeros between: what damages the last records must not take the word for them along.
//!
//! Both CRCs start from the segment's salt and the frame's offset, so a frame that is stale,
//! moved or from another log fails, and a region of zeros is no frame.

use crate::Lsn;
use crate::planted::{self, Bug};

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 88;
/// Frames begin at multiples of this, so that one can be looked for behind a broken one.
pub(crate) const ALIGNMENT: u64 = 8;
/// The largest payload.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;

pub(crate) const MAGIC: [u8; 4] = *b"TnrF";
pub(crate) const CRC_FROM: usize = 8;
pub(crate) const CHAIN_FROM: usize = 56;
const RECORD_PREFIX: usize = 4;
/// LSNs, epochs and segment numbers are below this: far enough from the end that nothing overflows.
pub(crate) const COUNTS_END: u64 = 1 << 63;
/// Both checksums of a payload are made piece by piece, so that its bytes come near the processor
/// once.
const PIECE_BYTES: usize = 128 << 10;

/// A hash over everything written before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Chain(pub [u8; 32]);

impl Chain {
    /// Before the first frame of a log.
    pub const START: Self = Self([0; 32]);
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It carries records.
    Records = 1,
    /// It only says what is durable: after a pause, and at an orderly end.
    Mark = 2,
    /// The last word of a segment: the log goes on in the next one, which is there already. It is
    /// in no chain but ends one: the next segment follows the frame before it.
    GoesOn = 3,
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the frame is for.
    pub kind: Kind,
    /// The first record; for a mark, the one that comes next.
    pub first_lsn: Lsn,
    /// How many records there are.
    pub records: u32,
    /// The time in office of the writer.
    pub epoch: u64,
    /// What was durable when this was written.
    pub durable: Lsn,
    /// Log time when it was written.
    pub at_ms: u64,
    /// Bytes of the payload.
    pub payload_bytes: u32,
    /// The chain up to and with this frame.
    pub chain: Chain,
    /// What its writer's durability means for it.
    pub word: Word,
    payload_crc: u32,
}

/// What a frame says about those behind it that may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Word {
    /// Nobody is told of a record before it is durable, so nothing that was told is missing.
    #[default]
    Durable = 0,
    /// Records may be told before they are durable: behind this frame, some that were told may be
    /// missing.
    ToldEarly = 1,
    /// This was the orderly end: nothing is missing behind it.
    Closed = 2,
}

impl Word {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Durable, Self::ToldEarly, Self::Closed].into_iter().find(|word| *word as u8 == byte)
    }
}

impl Header {
    /// The LSN after the last record of the frame.
    #[must_use]
    pub fn end_lsn(&self) -> Lsn {
        Lsn(self.first_lsn.0 + u64::from(self.records))
    }

    /// Bytes from this frame's beginning to the next one's.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        frame_bytes(self.payload_bytes as usize)
    }

    /// Bytes by which this frame made the log longer. One without records begins a page.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        match self.kind {
            Kind::Records => self.frame_bytes(),
            Kind::Mark | Kind::GoesOn => MARK_BYTES,
        }
    }
}

/// Bytes by which a mark makes the log longer, at the most: it begins a page, whatever is left of
/// the one before.
pub const MARK_BYTES: u64 = crate::segment::PAGE_BYTES;

/// Bytes of a frame with such a payload, up to where the next one may begin.
pub(crate) fn frame_bytes(payload: usize) -> u64 {
    ((HEADER_BYTES + payload) as u64).next_multiple_of(ALIGNMENT)
}

/// Where a frame is: what its CRCs start from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub salt: u64,
    pub offset: u64,
}

impl Place {
    pub(crate) fn crc(self, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(self.crc_start(), bytes)
    }

    fn crc_start(self) -> u32 {
        let mut start = [0; 16];
        let salt = if planted::has(Bug::CrcWithoutSalt) { 0 } else { self.salt };
        start[..8].copy_from_slice(&salt.to_le_bytes());
        start[8..].copy_from_slice(&self.offset.to_le_bytes());
        crc32c::crc32c(&start)
    }
}

/// What a payload comes to. It does not need the header, so it can be worked out while the payload
/// is already on its way to the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest {
    pub crc: u32,
    hash: [u8; 32],
}

impl Digest {
    pub(crate) fn of(payload: &[u8], place: Place) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut crc = place.crc_start();
        for piece in payload.chunks(PIECE_BYTES) {
            crc = crc32c::crc32c_append(crc, piece);
            hasher.update(piece);
        }
        Self { crc, hash: *hasher.finalize().as_bytes() }
    }
}

/// Records on their way into a frame. The room for the header is in front already, so the frame
/// is written as one piece and nothing is copied.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    records: u32,
}

impl Default for Batch {
    fn default() -> Self {
        Self { bytes: vec![0; HEADER_BYTES], records: 0 }
    }
}

impl Batch {
    /// Adds one record: what `fill` writes at the end of the buffer.
    pub fn push(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; RECORD_PREFIX]);
        fill(&mut self.bytes);
        let size = (self.bytes.len() - at - RECORD_PREFIX) as u32;
        self.bytes[at..at + RECORD_PREFIX].copy_from_slice(&size.to_le_bytes());
        self.records += 1;
    }

    /// How many records it has.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Bytes by which the log gets longer with it.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        frame_bytes(self.payload_bytes())
    }

    /// Bytes of the payload so far.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.bytes.len() - HEADER_BYTES
    }

    /// Its records in order, the first of which has this number.
    pub fn records_from(&self, first: Lsn) -> impl Iterator<Item = (Lsn, &[u8])> {
        records_in(&self.bytes[HEADER_BYTES..], first)
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Empties it and keeps its room.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER_BYTES);
        self.records = 0;
    }

    /// The records as they are written; the header is not in it.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// The frame as it will be, but for its header.
    pub(crate) fn unsealed(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the header and gives the whole frame, and the chain with it.
    pub(crate) fn seal(
        &mut self,
        stamp: &FrameStamp,
        place: Place,
        digest: &Digest,
    ) -> (&[u8], Chain) {
        let payload_bytes = self.payload_bytes();
        assert!(payload_bytes <= PAYLOAD_BYTES_MAX, "a batch is closed before it is too large");
        let head = &mut self.bytes[..HEADER_BYTES];
        head.fill(0);
        head[..4].copy_from_slice(&MAGIC);
        head[8] = stamp.kind as u8;
        head[9] = stamp.word as u8;
        head[12..16].copy_from_slice(&(payload_bytes as u32).to_le_bytes());
        head[16..24].copy_from_slice(&stamp.first_lsn.0.to_le_bytes());
        head[24..28].copy_from_slice(&self.records.to_le_bytes());
        head[28..32].copy_from_slice(&digest.crc.to_le_bytes());
        head[32..40].copy_from_slice(&stamp.epoch.to_le_bytes());
        head[40..48].copy_from_slice(&stamp.durable.0.to_le_bytes());
        head[48..56].copy_from_slice(&stamp.at_ms.to_le_bytes());
        let chain = link(stamp.before, &head[CRC_FROM..CHAIN_FROM], digest);
        head[CHAIN_FROM..].copy_from_slice(&chain.0);
        let crc = place.crc(&head[CRC_FROM..]);
        head[4..8].copy_from_slice(&crc.to_le_bytes());
        (&self.bytes, chain)
    }
}

/// What a writer puts on a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameStamp {
    pub kind: Kind,
    pub first_lsn: Lsn,
    pub epoch: u64,
    pub durable: Lsn,
    pub at_ms: u64,
    pub before: Chain,
    pub word: Word,
}

pub(crate) fn link(before: Chain, head: &[u8], payload: &Digest) -> Chain {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before.0).update(head).update(&payload.hash);
    Chain(*hasher.finalize().as_bytes())
}

/// Reads a header, if there is a whole one and nothing in it was changed.
pub(crate) fn read_header(bytes: &[u8], place: Place) -> Option<Header> {
    let head = bytes.get(..HEADER_BYTES)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let is_sound = word(4) == place.crc(&head[CRC_FROM..]) || planted::has(Bug::LengthTrusted);
    if head[..4] != MAGIC || !is_sound {
        return None;
    }
    let kind = match head[8] {
        1 => Kind::Records,
        2 => Kind::Mark,
        3 => Kind::GoesOn,
        _ => return None,
    };
    let told = Word::from_byte(head[9])?;
    let payload_bytes = word(12);
    // Whoever counts on from numbers that no log ever comes to would overflow.
    let is_possible = long(16) < COUNTS_END && long(32) < COUNTS_END;
    if payload_bytes as usize > PAYLOAD_BYTES_MAX || !is_possible {
        return None;
    }
    let mut chain = [0; 32];
    chain.copy_from_slice(&head[CHAIN_FROM..]);
    Some(Header {
        kind,
        first_lsn: Lsn(long(16)),
        records: word(24),
        epoch: long(32),
        durable: Lsn(long(40)),
        at_ms: long(48),
        payload_bytes,
        chain: Chain(chain),
        word: told,
        payload_crc: word(28),
    })
}

/// A frame that was read and checked.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// What its header says.
    pub header: Header,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at the front of bytes that were checked before.
    pub(crate) fn of_checked(header: Header, bytes: &'a [u8]) -> Self {
        Self { header, payload: &bytes[HEADER_BYTES..HEADER_BYTES + header.payload_bytes as usize] }
    }

    /// Its records, in order.
    pub fn records(&self) -> impl Iterator<Item = (Lsn, &'a [u8])> + use<'a> {
        records_in(self.payload, self.header.first_lsn)
    }
}

fn records_in(payload: &[u8], first: Lsn) -> impl Iterator<Item = (Lsn, &[u8])> {
    let mut rest = payload;
    (first.0..).map_while(move |lsn| {
        let (size, after) = rest.split_first_chunk::<RECORD_PREFIX>()?;
        let (record, after) = after.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        rest = after;
        Some((Lsn(lsn), record))
    })
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// There is no header, or it was changed.
    Header,
    /// The payload is cut off or was changed.
    Payload,
    /// It is a whole frame that does not follow the one before.
    Chain,
}

impl Broken {
    pub(crate) fn found(self) -> &'static str {
        match self {
            Broken::Header => "no frame header is there",
            Broken::Payload => "the frame's payload was changed or cut off",
            Broken::Chain => "the frame does not follow the one before",
        }
    }
}

/// Reads the frame at the front of `bytes`, which must follow the chain `before`.
pub(crate) fn read(bytes: &[u8], place: Place, before: Chain) -> Result<Frame<'_>, Broken> {
    let header = read_header(bytes, place).ok_or(Broken::Header)?;
    let end = HEADER_BYTES + header.payload_bytes as usize;
    let payload = bytes.get(HEADER_BYTES..end).ok_or(Broken::Payload)?;
    let digest = Digest::of(payload, place);
    if digest.crc != header.payload_crc {
        return Err(Broken::Payload);
    }
    if link(before, &bytes[CRC_FROM..CHAIN_FROM], &digest) != header.chain {
        return Err(Broken::Chain);
    }
    let frame = Frame { header, payload };
    // The CRC says that these are the bytes that were written; this, that they make sense.
    let (mut count, mut size) = (0, 0);
    for (_, record) in frame.records() {
        (count, size) = (count + 1, size + RECORD_PREFIX + record.len());
    }
    let makes_sense = (count, size) == (header.records, payload.len())
        && (count > 0) == (header.kind == Kind::Records);
    if makes_sense { Ok(frame) } else { Err(Broken::Payload) }
}

/// The bytes between a frame at the front of `bytes` and where the next one may begin.
pub(crate) fn gap<'a>(bytes: &'a [u8], header: &Header) -> &'a [u8] {
    let end = HEADER_BYTES + header.payload_bytes as usize;
    bytes.get(end..header.frame_bytes() as usize).unwrap_or_default()
}

/// Whether a whole frame begins here, whatever came before it.
pub(crate) fn read_unchained(bytes: &[u8], place: Place) -> Option<Header> {
    let header = read_header(bytes, place)?;
    let payload = bytes.get(HEADER_BYTES..HEADER_BYTES + header.payload_bytes as usize)?;
    (place.crc(payload) == header.payload_crc).then_some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { salt: 77, offset: 8_192 };

    const STAMP: FrameStamp = FrameStamp {
        kind: Kind::Records,
        first_lsn: Lsn(5),
        epoch: 2,
        durable: Lsn(4),
        at_ms: 1_000,
        before: Chain([9; 32]),
        word: Word::ToldEarly,
    };

    fn batch() -> Batch {
        let mut batch = Batch::default();
        batch.push(|out| out.extend_from_slice(b"one"));
        batch.push(|_| {});
        batch.push(|out| out.extend_from_slice(&[7; 300]));
        batch
    }

    fn frame() -> Vec<u8> {
        sealed(batch(), &STAMP)
    }

    fn sealed(mut batch: Batch, stamp: &FrameStamp) -> Vec<u8> {
        let digest = Digest::of(batch.payload(), PLACE);
        batch.seal(stamp, PLACE, &digest).0.to_vec()
    }

    #[test]
    fn a_frame_that_nobody_writes_is_none_though_its_checksums_fit() {
        let refused = |batch: Batch, stamp: FrameStamp| {
            let bytes = sealed(batch, &stamp);
            read(&bytes, PLACE, STAMP.before).unwrap_err()
        };
        let more = |bytes: &[u8]| {
            let mut batch = batch();
            batch.bytes.extend_from_slice(bytes);
            batch
        };
        assert_eq!(refused(more(&[1]), STAMP), Broken::Payload, "a byte in no record");
        assert_eq!(refused(more(&[9, 0, 0, 0]), STAMP), Broken::Payload, "a record cut off");
        assert_eq!(refused(more(&[0; 4]), STAMP), Broken::Payload, "a record too many");
        let mark = FrameStamp { kind: Kind::Mark, ..STAMP };
        assert_eq!(refused(batch(), mark), Broken::Payload, "a mark with records");
        assert_eq!(refused(Batch::default(), STAMP), Broken::Payload, "no records and no mark");
        let last = FrameStamp { first_lsn: Lsn(u64::MAX), ..STAMP };
        assert_eq!(refused(batch(), last), Broken::Header, "no LSN comes after it");
        let old = FrameStamp { epoch: u64::MAX, ..STAMP };
        assert_eq!(refused(batch(), old), Broken::Header, "no epoch comes after it");
    }

    #[test]
    fn a_frame_reads_back() {
        let bytes = frame();
        let frame = read(&bytes, PLACE, Chain([9; 32])).unwrap();
        let records: Vec<_> = frame.records().collect();
        assert_eq!(records, [(Lsn(5), &b"one"[..]), (Lsn(6), b""), (Lsn(7), &[7; 300])]);
        assert_eq!((frame.header.end_lsn(), frame.header.durable), (Lsn(8), Lsn(4)));
        assert_eq!(frame.header.frame_bytes() % ALIGNMENT, 0);
    }

    #[test]
    fn no_bit_can_change_unseen() {
        let mut bytes = frame();
        for at in 0..bytes.len() * 8 {
            bytes[at / 8] ^= 1 << (at % 8);
            assert!(read(&bytes, PLACE, Chain([9; 32])).is_err(), "bit {at}");
            bytes[at / 8] ^= 1 << (at % 8);
        }
    }

    #[test]
    fn a_frame_that_is_cut_moved_stale_or_foreign_is_none() {
        let bytes = frame();
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end], PLACE, Chain([9; 32])).is_err(), "cut at {end}");
        }
        let moved = Place { offset: PLACE.offset + ALIGNMENT, ..PLACE };
        let foreign = Place { salt: 78, ..PLACE };
        assert_eq!(read(&bytes, moved, Chain([9; 32])).unwrap_err(), Broken::Header);
        assert_eq!(read(&bytes, foreign, Chain([9; 32])).unwrap_err(), Broken::Header);
        assert_eq!(read(&bytes, PLACE, Chain([8; 32])).unwrap_err(), Broken::Chain);
        assert_eq!(read(&[0; 4_096], PLACE, Chain::START).unwrap_err(), Broken::Header);
    }
}

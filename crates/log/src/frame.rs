//! A frame: one group commit with many records, as plain bytes.
//!
//! ```text
//! 0   magic         4   "TnrF"
//! 4   header CRC    4   over the rest of the header: the length is trusted before it is used
//! 8   kind          1   records, a mark, or the end of a segment
//! 9   durability    1   what the writer's durability means for the frames that follow
//! 10  zeros         2
//! 12  payload size  4
//! 16  first LSN     8   of the first record; without records, of the next one
//! 24  records       4
//! 28  payload CRC   4
//! 32  epoch         8
//! 40  durable LSN   8   the last record that was durable when this frame was written
//! 48  log time      8
//! 56  chain        32   BLAKE3 over the chain before, the header from 8 up to here without the
//!                       payload CRC, and the BLAKE3 of the payload
//! 88  payload           each record: its size in 4 bytes, then its bytes
//! ```
//!
//! Both CRCs start from a [`CrcSeed`], which names the place where the frame is stored: a frame
//! that is stale, moved or from another log fails, and a region of zeros is not a frame. The chain
//! covers no CRC, so a frame has the same chain wherever it is stored.

use crate::lsn::Lsn;

/// The format of frames that is written today. There is no reader for any other.
pub const FORMAT: u32 = 2;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 88;
/// Frames begin at multiples of this, so that a reader can look for one behind a broken one.
pub const ALIGNMENT: u64 = 8;
/// The largest payload in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// LSNs, epochs and other counters are below this, far enough from overflow.
pub const NUMBERS_END: u64 = 1 << 63;

const MAGIC: [u8; 4] = *b"TnrF";
/// The bytes of a header that its CRC covers begin here.
const CRC_FROM: usize = 8;
/// Where the payload's CRC is.
const PAYLOAD_CRC: std::ops::Range<usize> = 28..32;
const CHAIN_FROM: usize = 56;
pub(crate) const RECORD_PREFIX: usize = 4;
/// Both checksums of a payload are computed piece by piece, so that its bytes are loaded into the
/// cache once.
const PIECE_BYTES: usize = 128 << 10;

/// A hash over everything written before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Chain(pub [u8; 32]);

impl Chain {
    /// The chain before the first frame of a log.
    pub const START: Self = Self([0; 32]);

    fn link(self, head: &[u8], payload: &PayloadDigest) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(&head[CRC_FROM..PAYLOAD_CRC.start]);
        hasher.update(&head[PAYLOAD_CRC.end..CHAIN_FROM]).update(&payload.hash);
        Self(*hasher.finalize().as_bytes())
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// It carries records.
    Records = 1,
    /// It carries no records and only says what is durable: after a pause, and at an orderly end.
    Mark = 2,
    /// The last frame of a segment, where a provider has segments: the log continues in the next
    /// one, which exists already. It is not part of the chain: the next segment follows the frame
    /// before it.
    SegmentEnd = 3,
}

/// What a frame says about later frames that may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DurabilityMark {
    /// Records are acknowledged only once they are durable, so no acknowledged record is missing.
    #[default]
    Durable = 0,
    /// Records may be acknowledged before they are durable, so acknowledged records that follow
    /// this frame may be missing.
    AckedEarly = 1,
    /// This was the orderly end: nothing is missing after it.
    Closed = 2,
}

impl DurabilityMark {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Durable, Self::AckedEarly, Self::Closed].into_iter().find(|it| *it as u8 == byte)
    }
}

/// The contents of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// What the frame is for.
    pub kind: FrameKind,
    /// The first record; in a frame without records, the next one.
    pub first_lsn: Lsn,
    /// The number of records.
    pub records: u32,
    /// The writer's epoch.
    pub epoch: u64,
    /// The last record that was durable when this frame was written.
    pub durable: Lsn,
    /// Log time at which it was written.
    pub at_ms: u64,
    /// Bytes of the payload.
    pub payload_bytes: u32,
    /// The CRC of the payload, from the frame's [`CrcSeed`].
    pub payload_crc: u32,
    /// The chain up to and including this frame.
    pub chain: Chain,
    /// What the writer's durability means for the frames that follow.
    pub durability: DurabilityMark,
}

impl FrameHeader {
    /// Reads a header, if the bytes begin with a whole one that was not changed.
    #[must_use]
    pub fn read(bytes: &[u8], seed: CrcSeed) -> Option<Self> {
        let head = bytes.get(..HEADER_BYTES)?;
        let is_sound = word(head, 4) == seed.crc(&head[CRC_FROM..]);
        is_sound.then(|| Self::decode(head)).flatten()
    }

    /// Reads a header without comparing its CRC. Only for bytes that were checked before.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..HEADER_BYTES)?;
        if head[..4] != MAGIC {
            return None;
        }
        let kind = match head[8] {
            1 => FrameKind::Records,
            2 => FrameKind::Mark,
            3 => FrameKind::SegmentEnd,
            _ => return None,
        };
        let durability = DurabilityMark::from_byte(head[9])?;
        let payload_bytes = word(head, 12);
        // Counting on from numbers that no log reaches would overflow.
        let is_possible = long(head, 16) < NUMBERS_END && long(head, 32) < NUMBERS_END;
        if payload_bytes as usize > PAYLOAD_BYTES_MAX || !is_possible {
            return None;
        }
        let mut chain = [0; 32];
        chain.copy_from_slice(&head[CHAIN_FROM..]);
        Some(Self {
            kind,
            first_lsn: Lsn(long(head, 16)),
            records: word(head, 24),
            epoch: long(head, 32),
            durable: Lsn(long(head, 40)),
            at_ms: long(head, 48),
            payload_bytes,
            payload_crc: word(head, PAYLOAD_CRC.start),
            chain: Chain(chain),
            durability,
        })
    }

    /// The LSN after the last record of the frame.
    #[must_use]
    pub fn end_lsn(&self) -> Lsn {
        Lsn(self.first_lsn.0 + u64::from(self.records))
    }

    /// Bytes from the start of this frame to where the next one may begin.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        frame_bytes(self.payload_bytes as usize)
    }
}

/// Bytes of a frame with a payload of this size, up to where the next one may begin.
pub(crate) fn frame_bytes(payload: usize) -> u64 {
    ((HEADER_BYTES + payload) as u64).next_multiple_of(ALIGNMENT)
}

/// Where a frame is stored: its CRCs start from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcSeed {
    /// Names the container: the random salt of a segment, or the id of a log.
    pub salt: u64,
    /// The position in the container: a byte offset, or a slot number.
    pub position: u64,
}

impl CrcSeed {
    fn crc(self, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(self.start(), bytes)
    }

    fn start(self) -> u32 {
        let mut start = [0; 16];
        start[..8].copy_from_slice(&self.salt.to_le_bytes());
        start[8..].copy_from_slice(&self.position.to_le_bytes());
        crc32c::crc32c(&start)
    }
}

/// The checksums of a payload. They do not depend on the header, so they can be computed while the
/// payload is already being written.
#[derive(Clone, Copy, Debug)]
pub struct PayloadDigest {
    crc: u32,
    hash: [u8; 32],
}

impl PayloadDigest {
    /// Computes both checksums.
    #[must_use]
    pub fn of(payload: &[u8], seed: CrcSeed) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut crc = seed.start();
        for piece in payload.chunks(PIECE_BYTES) {
            crc = crc32c::crc32c_append(crc, piece);
            hasher.update(piece);
        }
        Self { crc, hash: *hasher.finalize().as_bytes() }
    }
}

/// What a writer puts into a frame's header.
#[derive(Clone, Copy, Debug)]
pub struct FrameStamp {
    /// What the frame is for.
    pub kind: FrameKind,
    /// The first record; in a frame without records, the next one.
    pub first_lsn: Lsn,
    /// The writer's epoch.
    pub epoch: u64,
    /// The last record that is durable now.
    pub durable: Lsn,
    /// Log time.
    pub at_ms: u64,
    /// The chain up to and including the frame before.
    pub before: Chain,
    /// What the writer's durability means for the frames that follow.
    pub durability: DurabilityMark,
}

impl FrameStamp {
    pub(crate) fn write(
        &self,
        head: &mut [u8],
        payload_bytes: u32,
        records: u32,
        seed: CrcSeed,
        digest: &PayloadDigest,
    ) -> Chain {
        head.fill(0);
        head[..4].copy_from_slice(&MAGIC);
        head[8] = self.kind as u8;
        head[9] = self.durability as u8;
        head[12..16].copy_from_slice(&payload_bytes.to_le_bytes());
        head[16..24].copy_from_slice(&self.first_lsn.0.to_le_bytes());
        head[24..28].copy_from_slice(&records.to_le_bytes());
        head[32..40].copy_from_slice(&self.epoch.to_le_bytes());
        head[40..48].copy_from_slice(&self.durable.0.to_le_bytes());
        head[48..CHAIN_FROM].copy_from_slice(&self.at_ms.to_le_bytes());
        seal_header(head, self.before, seed, digest)
    }
}

/// Puts the checksums and the chain into a header whose other fields are complete.
fn seal_header(head: &mut [u8], before: Chain, seed: CrcSeed, digest: &PayloadDigest) -> Chain {
    head[PAYLOAD_CRC].copy_from_slice(&digest.crc.to_le_bytes());
    let chain = before.link(head, digest);
    head[CHAIN_FROM..HEADER_BYTES].copy_from_slice(&chain.0);
    let crc = seed.crc(&head[CRC_FROM..HEADER_BYTES]);
    head[4..CRC_FROM].copy_from_slice(&crc.to_le_bytes());
    chain
}

/// A frame that was read and checked.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The contents of its header.
    pub header: FrameHeader,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the frame at the start of `bytes`, which must follow the chain `before`.
    ///
    /// # Errors
    /// If there is no whole frame, or it follows another chain.
    pub fn read(bytes: &'a [u8], seed: CrcSeed, before: Chain) -> Result<Self, Broken> {
        let header = FrameHeader::read(bytes, seed).ok_or(Broken::Header)?;
        Self::check(header, bytes, seed, before)
    }

    /// Checks the frame at the start of `bytes`, whose header was read before.
    ///
    /// # Errors
    /// If the payload is not what was written, or the frame follows another chain.
    pub fn check(
        header: FrameHeader,
        bytes: &'a [u8],
        seed: CrcSeed,
        before: Chain,
    ) -> Result<Self, Broken> {
        let end = HEADER_BYTES + header.payload_bytes as usize;
        let payload = bytes.get(HEADER_BYTES..end).ok_or(Broken::Payload)?;
        let digest = PayloadDigest::of(payload, seed);
        if digest.crc != header.payload_crc {
            return Err(Broken::Payload);
        }
        if before.link(bytes, &digest) != header.chain {
            return Err(Broken::Chain);
        }
        let frame = Self { header, payload };
        // The CRC says that these are the bytes that were written; this, that they make sense.
        let (mut count, mut size) = (0, 0);
        for (_, record) in frame.records() {
            (count, size) = (count + 1, size + RECORD_PREFIX + record.len());
        }
        let makes_sense = (count, size) == (header.records, payload.len())
            && (count > 0) == (header.kind == FrameKind::Records);
        if makes_sense { Ok(frame) } else { Err(Broken::Payload) }
    }

    /// Reads the header of the whole frame at the start of `bytes`, whatever chain it follows.
    #[must_use]
    pub fn find(bytes: &[u8], seed: CrcSeed) -> Option<FrameHeader> {
        let header = FrameHeader::read(bytes, seed)?;
        let payload = bytes.get(HEADER_BYTES..HEADER_BYTES + header.payload_bytes as usize)?;
        (seed.crc(payload) == header.payload_crc).then_some(header)
    }

    /// The frame at the start of bytes that were checked before.
    #[must_use]
    pub fn of_checked(header: FrameHeader, bytes: &'a [u8]) -> Self {
        Self { header, payload: &bytes[HEADER_BYTES..HEADER_BYTES + header.payload_bytes as usize] }
    }

    /// Makes the checksums and the chain of the frame at the start of `bytes` fit its other bytes,
    /// as tests and fuzzing need it. Returns its size up to the next frame, and its chain.
    #[must_use]
    pub fn reseal(bytes: &mut [u8], seed: CrcSeed, before: Chain) -> Option<(u64, Chain)> {
        let (head, rest) = bytes.split_at_mut_checked(HEADER_BYTES)?;
        let size = word(head, 12) as usize;
        let payload = rest.get(..size)?;
        if head[..4] != MAGIC {
            return None;
        }
        let digest = PayloadDigest::of(payload, seed);
        Some((frame_bytes(size), seal_header(head, before, seed, &digest)))
    }

    /// The records as they are stored.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The records, in order.
    pub fn records(&self) -> impl Iterator<Item = (Lsn, &'a [u8])> + use<'a> {
        records_in(self.payload, self.header.first_lsn)
    }
}

pub(crate) fn records_in(payload: &[u8], first: Lsn) -> impl Iterator<Item = (Lsn, &[u8])> {
    let mut rest = payload;
    (first.0..).map_while(move |lsn| {
        let (size, after) = rest.split_first_chunk::<RECORD_PREFIX>()?;
        let (record, after) = after.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        rest = after;
        Some((Lsn(lsn), record))
    })
}

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// There is no header, or it was changed.
    Header,
    /// The payload is cut off or was changed.
    Payload,
    /// It is a whole frame that does not follow the one before.
    Chain,
}

impl Broken {
    /// The finding, as part of a sentence.
    #[must_use]
    pub fn found(self) -> &'static str {
        match self {
            Broken::Header => "no frame header is there",
            Broken::Payload => "the frame's payload was changed or cut off",
            Broken::Chain => "the frame does not follow the one before",
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batch;

    const SEED: CrcSeed = CrcSeed { salt: 77, position: 8_192 };

    const STAMP: FrameStamp = FrameStamp {
        kind: FrameKind::Records,
        first_lsn: Lsn(5),
        epoch: 2,
        durable: Lsn(4),
        at_ms: 1_000,
        before: Chain([9; 32]),
        durability: DurabilityMark::AckedEarly,
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
        batch.seal(stamp, SEED).0.to_vec()
    }

    #[test]
    fn a_frame_that_no_writer_writes_is_refused_though_its_checksums_fit() {
        let refused = |batch: Batch, stamp: FrameStamp| {
            let bytes = sealed(batch, &stamp);
            Frame::read(&bytes, SEED, STAMP.before).unwrap_err()
        };
        let more = |bytes: &[u8]| {
            let mut batch = batch();
            batch.push_stray(bytes);
            batch
        };
        assert_eq!(refused(more(&[1]), STAMP), Broken::Payload, "a byte in no record");
        assert_eq!(refused(more(&[9, 0, 0, 0]), STAMP), Broken::Payload, "a record cut off");
        assert_eq!(refused(more(&[0; 4]), STAMP), Broken::Payload, "a record too many");
        let mark = FrameStamp { kind: FrameKind::Mark, ..STAMP };
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
        let frame = Frame::read(&bytes, SEED, Chain([9; 32])).unwrap();
        let records: Vec<_> = frame.records().collect();
        assert_eq!(records, [(Lsn(5), &b"one"[..]), (Lsn(6), b""), (Lsn(7), &[7; 300])]);
        assert_eq!((frame.header.end_lsn(), frame.header.durable), (Lsn(8), Lsn(4)));
        assert_eq!(frame.header.frame_bytes() % ALIGNMENT, 0);
    }

    #[test]
    fn a_frame_has_the_same_chain_wherever_it_is_stored() {
        let elsewhere = CrcSeed { salt: 3, position: 12 };
        let (mut here, mut there) = (batch(), batch());
        let (_, chain) = here.seal(&STAMP, SEED);
        assert_eq!(there.seal(&STAMP, elsewhere).1, chain);
        assert_ne!(here.frame()[PAYLOAD_CRC], there.frame()[PAYLOAD_CRC]);
        let moved = Frame::read(there.frame(), elsewhere, STAMP.before).unwrap();
        assert_eq!(moved.header.chain, chain);
        assert!(Frame::read(there.frame(), SEED, STAMP.before).is_err());
        // Everything else in the header is in the chain.
        for stamp in [
            FrameStamp { first_lsn: Lsn(6), ..STAMP },
            FrameStamp { epoch: 3, ..STAMP },
            FrameStamp { durable: Lsn(3), ..STAMP },
            FrameStamp { at_ms: 1_001, ..STAMP },
            FrameStamp { before: Chain([8; 32]), ..STAMP },
            FrameStamp { durability: DurabilityMark::Closed, ..STAMP },
        ] {
            assert_ne!(batch().seal(&stamp, SEED).1, chain, "{stamp:?}");
        }
    }

    #[test]
    fn no_bit_can_change_unseen() {
        let mut bytes = frame();
        for at in 0..bytes.len() * 8 {
            bytes[at / 8] ^= 1 << (at % 8);
            assert!(Frame::read(&bytes, SEED, Chain([9; 32])).is_err(), "bit {at}");
            bytes[at / 8] ^= 1 << (at % 8);
        }
    }

    #[test]
    fn a_frame_that_is_cut_moved_stale_or_foreign_is_refused() {
        let bytes = frame();
        for end in 0..bytes.len() {
            assert!(Frame::read(&bytes[..end], SEED, Chain([9; 32])).is_err(), "cut at {end}");
        }
        let moved = CrcSeed { position: SEED.position + ALIGNMENT, ..SEED };
        let foreign = CrcSeed { salt: 78, ..SEED };
        assert_eq!(Frame::read(&bytes, moved, Chain([9; 32])).unwrap_err(), Broken::Header);
        assert_eq!(Frame::read(&bytes, foreign, Chain([9; 32])).unwrap_err(), Broken::Header);
        assert_eq!(Frame::read(&bytes, SEED, Chain([8; 32])).unwrap_err(), Broken::Chain);
        assert_eq!(Frame::read(&[0; 4_096], SEED, Chain::START).unwrap_err(), Broken::Header);
    }
}

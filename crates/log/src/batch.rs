//! A batch of records on its way into a frame.

use crate::frame::{
    self, Chain, CrcSeed, FrameStamp, HEADER_BYTES, PAYLOAD_BYTES_MAX, PayloadDigest,
    RECORD_PREFIX, records_in,
};
use crate::lsn::Lsn;

/// Records for one frame. The space for the header precedes them in one buffer, so a frame is
/// written in one piece and nothing is copied.
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
    /// Adds one record: what `fill` appends to the buffer.
    pub fn push(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let taken = self.push_within(usize::MAX, fill);
        assert!(taken.is_ok(), "every record fits without a bound");
    }

    /// Adds one record if it has at most `bytes_max` bytes. Otherwise the batch is left as it was.
    ///
    /// # Errors
    /// The size of the record, if it is larger.
    pub fn push_within(
        &mut self,
        bytes_max: usize,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), usize> {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; RECORD_PREFIX]);
        fill(&mut self.bytes);
        let size = self.bytes.len() - at - RECORD_PREFIX;
        if size > bytes_max {
            self.bytes.truncate(at);
            return Err(size);
        }
        self.bytes[at..at + RECORD_PREFIX].copy_from_slice(&(size as u32).to_le_bytes());
        self.records += 1;
        Ok(())
    }

    /// The number of records.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Bytes of the frame that the batch becomes, up to where the next frame may begin.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        frame::frame_bytes(self.payload_bytes())
    }

    /// Bytes of the payload so far.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.bytes.len() - HEADER_BYTES
    }

    /// The records in order, numbered from `first`.
    pub fn records_from(&self, first: Lsn) -> impl Iterator<Item = (Lsn, &[u8])> {
        records_in(&self.bytes[HEADER_BYTES..], first)
    }

    /// Whether the batch has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Removes all records and keeps the buffer.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER_BYTES);
        self.records = 0;
    }

    /// The records as they are stored, without the header.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// The whole frame as it was sealed last; before the first [`Batch::seal`], the bytes of the
    /// header mean nothing.
    #[must_use]
    pub fn frame(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the header; returns the whole frame and the chain including it.
    pub fn seal(&mut self, stamp: &FrameStamp, seed: CrcSeed) -> (&[u8], Chain) {
        let digest = PayloadDigest::of(self.payload(), seed);
        self.seal_with(stamp, seed, &digest)
    }

    /// Like [`Batch::seal`], with the digest of the payload, which a provider may compute while the
    /// payload is already being written.
    pub fn seal_with(
        &mut self,
        stamp: &FrameStamp,
        seed: CrcSeed,
        digest: &PayloadDigest,
    ) -> (&[u8], Chain) {
        let payload_bytes = self.payload_bytes();
        assert!(payload_bytes <= PAYLOAD_BYTES_MAX, "a batch is closed before it is too large");
        let head = &mut self.bytes[..HEADER_BYTES];
        let chain = stamp.write(head, payload_bytes as u32, self.records, seed, digest);
        (&self.bytes, chain)
    }

    /// Bytes that are in no record, for tests of what a reader refuses.
    #[cfg(test)]
    pub(crate) fn push_stray(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

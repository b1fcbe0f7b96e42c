//! A segment's bytes, read as far as they are asked for: what is checked right after it was read is
//! still near the processor.

use crate::disk::{Disk, DiskFile};
use crate::fault::Fault;

/// Read ahead in pieces of this size.
const PIECE_BYTES: usize = 256 << 10;

/// The bytes of one file from its beginning on.
pub(crate) struct Loaded<'a, D: Disk> {
    file: &'a D::File,
    name: &'a str,
    /// No more than this is read.
    until: usize,
    bytes: Vec<u8>,
}

impl<'a, D: Disk> Loaded<'a, D> {
    /// Begins to read a file. The room of the buffer is used again.
    pub(crate) fn new(file: &'a D::File, name: &'a str, until: u64, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self { file, name, until: until as usize, bytes: buffer }
    }

    /// Reads on until this offset, if the file is so long.
    pub(crate) fn reach(&mut self, end: u64) -> Result<(), Fault> {
        let end = self.until.min(usize::try_from(end).unwrap_or(usize::MAX));
        while self.bytes.len() < end {
            let from = self.bytes.len();
            self.bytes.resize(self.until.min(from + PIECE_BYTES), 0);
            let read = self.file.read_full_at(&mut self.bytes[from..], from as u64);
            let read = read.map_err(|e| Fault::io("read", self.name, e))?;
            if from + read < self.bytes.len() {
                self.bytes.truncate(from + read);
                self.until = from + read;
            }
        }
        Ok(())
    }

    /// What was read from this offset on.
    pub(crate) fn from(&self, offset: u64) -> &[u8] {
        self.bytes.get(offset as usize..).unwrap_or_default()
    }

    /// All that was read.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Whether there is nothing but zeros.
pub(crate) fn is_zeros(bytes: &[u8]) -> bool {
    // Without a way out in the middle of a piece this is done many bytes at a time.
    bytes.chunks(4_096).all(|piece| piece.iter().fold(0, |all, byte| all | byte) == 0)
}

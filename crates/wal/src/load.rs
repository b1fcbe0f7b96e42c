//! A segment's bytes, read as far as they are asked for: what is checked right after it was read is
//! still near the processor.

use tenure_log::Fault;

use crate::disk::{Disk, DiskFile};

/// Read ahead in pieces of this size.
const PIECE_BYTES: usize = 256 << 10;

/// A part of one file, which moves on as it is read.
pub(crate) struct Loaded<'a, D: Disk> {
    file: &'a D::File,
    name: &'a str,
    /// No more than this is read.
    until: u64,
    /// Where the part begins in the file, and how long it is.
    base: u64,
    filled: usize,
    /// What is before this is not wanted any more.
    keep_from: u64,
    /// Never gets shorter: memory that is touched for the first time is slow.
    buffer: Vec<u8>,
}

impl<'a, D: Disk> Loaded<'a, D> {
    /// Begins to read a file. The room of the buffer is used again.
    pub(crate) fn new(file: &'a D::File, name: &'a str, until: u64, buffer: Vec<u8>) -> Self {
        Self { file, name, until, base: 0, filled: 0, keep_from: 0, buffer }
    }

    /// Reads on until this offset, if the file is so long.
    pub(crate) fn reach(&mut self, end: u64) -> Result<(), Fault> {
        while self.end() < end.min(self.until) {
            self.make_room();
            let piece = (self.until - self.end()).min(PIECE_BYTES as u64) as usize;
            let (from, into) = (self.end(), self.filled..self.filled + piece);
            let read = self.file.read_full_at(&mut self.buffer[into], from);
            let read = read.map_err(|e| Fault::io("read", self.name, e))?;
            self.filled += read;
            if read < piece {
                self.until = self.end();
            }
        }
        Ok(())
    }

    /// Says that nothing before this offset will be asked for.
    pub(crate) fn keep_from(&mut self, offset: u64) {
        self.keep_from = offset;
    }

    /// What was read from this offset on.
    pub(crate) fn from(&self, offset: u64) -> &[u8] {
        let from = offset.checked_sub(self.base).expect("what is asked for was kept");
        self.buffer[..self.filled].get(from as usize..).unwrap_or_default()
    }

    /// The buffer, for the next file.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    fn end(&self) -> u64 {
        self.base + self.filled as u64
    }

    /// Makes room for one more piece: in front, if enough is there that is not wanted any more.
    fn make_room(&mut self) {
        let unwanted = self.keep_from.min(self.end()).saturating_sub(self.base) as usize;
        if unwanted * 2 >= self.filled {
            self.buffer.copy_within(unwanted..self.filled, 0);
            self.base += unwanted as u64;
            self.filled -= unwanted;
        }
        if self.buffer.len() < self.filled + PIECE_BYTES {
            self.buffer.resize(self.filled + PIECE_BYTES, 0);
        }
    }
}

/// Whether there is nothing but zeros.
pub(crate) fn is_zeros(bytes: &[u8]) -> bool {
    // Without a way out in the middle of a piece this is done many bytes at a time.
    bytes.chunks(4_096).all(|piece| piece.iter().fold(0, |all, byte| all | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_cancel_each_other_are_no_zeros() {
        assert!(is_zeros(&[]) && is_zeros(&[0; 9_000]));
        assert!(!is_zeros(&[5, 5]), "an even number of the same");
        for at in [0, 4_095, 4_096, 8_999] {
            let mut bytes = [0; 9_000];
            bytes[at] = 1;
            assert!(!is_zeros(&bytes), "byte {at}");
        }
    }
}

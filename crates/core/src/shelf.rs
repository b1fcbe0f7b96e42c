//! Where large payloads and outputs may lie instead of in memory. The rules do not know what it is;
//! whoever makes a state hands it in, and the records stay the only truth about every byte.

use std::fmt;
use std::io;
use std::sync::Arc;

/// A place outside of memory for large strings of bytes.
pub trait Shelf: fmt::Debug + Send + Sync {
    /// Keeps the bytes until the last holder of what it gives back lets go. Nothing if it cannot:
    /// then they stay in memory, because a record that is written must be applied.
    fn keep(&self, bytes: &[u8]) -> Option<Arc<dyn Shelved>>;
}

/// A string of bytes on a shelf.
#[expect(clippy::len_without_is_empty, reason = "only what is large is kept")]
pub trait Shelved: fmt::Debug + Send + Sync {
    /// How long it is; no need to read it for that.
    fn len(&self) -> usize;

    /// The bytes as they were given. It may wait for a disk, so the writer does not call it.
    ///
    /// # Errors
    /// The bytes cannot be read, or are not those that were written. The log has them: a state that
    /// is recovered from it is right again.
    fn read(&self) -> io::Result<Vec<u8>>;
}

//! A disk, as little of it as the log needs: files in one folder. The real one, and one in memory
//! that can crash at any point.

pub mod access;
mod giving_back;
#[cfg(feature = "model")]
pub mod model;
pub mod private;
pub mod read_only;
pub mod real;

use std::io;

/// A folder of files.
pub trait Disk: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// An open file.
    type File: DiskFile;
    /// Keeps other processes out until it is dropped.
    type Lock: std::fmt::Debug + Send;

    /// How people call the folder.
    fn name(&self) -> String;

    /// Takes the folder for this process; nothing if another one has it.
    fn lock(&self) -> io::Result<Option<Self::Lock>>;

    /// Whether the folder of that lock is still the one that its name leads to. A folder can be moved,
    /// replaced or unmounted while it is in use; a disk on which that cannot happen need not look.
    fn is_held(&self, lock: &Self::Lock) -> io::Result<bool> {
        let _ = lock;
        Ok(true)
    }

    /// The names of all files, in no order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file that exists.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Makes a file; one that exists is emptied.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name; a file of that name is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Forgets a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names durable. A file that is durable under no name is lost all the same.
    fn sync_folder(&self) -> io::Result<()>;

    /// Bytes that can still be written.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// An open file.
pub trait DiskFile: std::fmt::Debug + Send + Sync + 'static {
    /// Reads at an offset; fewer bytes than asked for at the end, or when it pleases.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at an offset; says how many bytes were taken.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// How long it is.
    fn size(&self) -> io::Result<u64>;

    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;

    /// Writes everything. An interrupted call took nothing and is made again; a short one took
    /// what it said and is continued; any other failure is the end.
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => {
                    bytes = &bytes[taken..];
                    offset += taken as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes everything while `beside` runs, and makes it durable meanwhile if that helps: most of
    /// the sync that follows is done by then. A disk that is called in a fixed order does one
    /// after the other.
    fn write_beside(&self, bytes: &[u8], offset: u64, beside: &mut dyn FnMut()) -> io::Result<()> {
        beside();
        self.write_all_at(bytes, offset)
    }

    /// Reads until the slice is full or the file ends; says how many bytes were read.
    fn read_full_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            match self.read_at(&mut into[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

//! Reading archive files: frames in their order, each checked before a line of it is shown. What is
//! damaged is named, and the frames after it are read.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use zstd::zstd_safe::find_frame_compressed_size;

use crate::limits::{ARCHIVE_FILE_READ_MAX, ARCHIVE_FRAME_READ_MAX};

/// How a frame begins.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// How the name of each file ends.
const ENDING: &str = ".ndjson.zst";

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Tasks, those of runs included.
    Tasks,
    /// Runs.
    Runs,
}

impl Kind {
    /// How the names of its files begin.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Tasks => "tasks",
            Kind::Runs => "runs",
        }
    }
}

/// A file of an archive, by its name: `tasks-2026-11-16-0001.ndjson.zst`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchiveFile {
    /// The day on which it was begun, in UTC: `2026-11-16`.
    pub day: String,
    /// Its number on that day.
    pub number: u32,
    /// What is in it.
    pub kind: Kind,
    /// Where it is.
    pub path: PathBuf,
}

impl ArchiveFile {
    /// The file of that kind, day and number.
    pub(super) fn new(folder: &Path, kind: Kind, day: &str, number: u32) -> Self {
        let name = format!("{}-{day}-{number:04}{ENDING}", kind.as_str());
        Self { day: day.to_owned(), number, kind, path: folder.join(name) }
    }

    /// None if the name is not one of ours.
    fn parse(path: PathBuf) -> Option<Self> {
        let name = path.file_name().and_then(OsStr::to_str)?;
        let (kind, rest) = name.strip_suffix(ENDING)?.split_once('-')?;
        let kind = [Kind::Tasks, Kind::Runs].into_iter().find(|one| one.as_str() == kind)?;
        let (day, number) = rest.rsplit_once('-')?;
        let is_day = day.len() == 10 && day.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        let number = number.parse().ok().filter(|_| is_day)?;
        Some(Self { day: day.to_owned(), number, kind, path })
    }
}

/// The files of an archive, oldest first.
pub fn archive_files(folder: &Path) -> io::Result<Vec<ArchiveFile>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let mut files: Vec<_> =
        entries.iter().filter_map(|entry| ArchiveFile::parse(entry.path())).collect();
    files.sort_unstable();
    Ok(files)
}

/// A file, read whole.
#[derive(Debug)]
pub struct ArchiveFrames {
    bytes: Vec<u8>,
    at: usize,
}

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// A whole frame, with its lines.
    Frame {
        /// Where it begins.
        offset: u64,
        /// Its lines, each with its end.
        lines: Vec<u8>,
    },
    /// Bytes that are no whole frame, and whole frames after them.
    Damaged {
        /// Where they begin.
        offset: u64,
        /// How many there are.
        bytes: u64,
    },
    /// The same, and nothing after them: what was being written when somebody was killed, or what
    /// is being written now.
    Unfinished {
        /// Where they begin.
        offset: u64,
        /// How many there are.
        bytes: u64,
    },
}

impl ArchiveFrames {
    /// Reads a file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = fs::File::open(path)?;
        let mut bytes = Vec::new();
        let read = file.take(ARCHIVE_FILE_READ_MAX + 1).read_to_end(&mut bytes)?;
        if read as u64 > ARCHIVE_FILE_READ_MAX {
            return Err(io::Error::other(format!(
                "it has more than {ARCHIVE_FILE_READ_MAX} bytes, which no server writes; read it \
                 with zstd -dc"
            )));
        }
        Ok(Self { bytes, at: 0 })
    }

    /// Where the next piece begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.at as u64
    }

    /// The lines of the frame that begins there, if one does.
    #[must_use]
    pub fn lines_at(&self, offset: u64) -> Option<Vec<u8>> {
        Some(self.frame_at(usize::try_from(offset).ok()?)?.0)
    }

    /// The next piece; none at the end.
    pub fn next_piece(&mut self) -> Option<Piece> {
        let from = self.at;
        if from == self.bytes.len() {
            return None;
        }
        if let Some((lines, length)) = self.frame_at(from) {
            self.at += length;
            return Some(Piece::Frame { offset: from as u64, lines });
        }
        let after = self.next_magic(from + 1, |at| self.frame_at(at).is_some());
        self.at = after.unwrap_or(self.bytes.len());
        let (offset, bytes) = (from as u64, (self.at - from) as u64);
        Some(match after {
            Some(_) => Piece::Damaged { offset, bytes },
            None => Piece::Unfinished { offset, bytes },
        })
    }

    /// The frame that begins here, if it is whole and its checksum fits, and its length.
    fn frame_at(&self, at: usize) -> Option<(Vec<u8>, usize)> {
        let rest = self.bytes.get(at..).filter(|rest| rest.starts_with(&MAGIC))?;
        let length = find_frame_compressed_size(rest).ok()?;
        let frame = zstd::stream::read::Decoder::with_buffer(rest.get(..length)?).ok()?;
        let mut lines = Vec::new();
        // One that goes on was not made by a server; it is too much to hold.
        let read = frame.take(ARCHIVE_FRAME_READ_MAX + 1).read_to_end(&mut lines).ok()?;
        (read as u64 <= ARCHIVE_FRAME_READ_MAX).then_some((lines, length))
    }

    fn next_magic(&self, from: usize, is_good: impl Fn(usize) -> bool) -> Option<usize> {
        let mut at = from;
        while let Some(found) =
            self.bytes.get(at..)?.windows(MAGIC.len()).position(|four| four == MAGIC)
        {
            if is_good(at + found) {
                return Some(at + found);
            }
            at += found + 1;
        }
        None
    }
}

/// The lines of a frame, without their ends.
pub fn archive_lines(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

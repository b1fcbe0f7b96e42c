//! Reads an archive from its newest file to its oldest, each thing once: the newest line about it
//! counts. What is damaged is named, and all that is sound is read.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use tenure_server::archive::{ArchiveFile, ArchiveFrames, Piece, archive_files, archive_lines};

use super::Kind;
use super::item::Item;
use super::seen::Seen;
use crate::failure::Failure;
use crate::ui::copying::Copying;
use crate::ui::output;

/// A search through an archive.
pub(super) struct Scan {
    kind: Kind,
    /// Oldest first.
    files: Vec<ArchiveFile>,
    seen: Seen,
    damage: usize,
}

/// The newest line about a thing in one file.
#[derive(Clone, Copy)]
struct Newest {
    last_lsn: u64,
    frame: u64,
    line: usize,
    is_wanted: bool,
}

impl Scan {
    pub(super) fn new(folder: &Path, kind: Kind, since: Option<&str>) -> Result<Self, Failure> {
        let files = archive_files(folder)
            .map_err(|cause| Failure::NoArchive { folder: folder.to_owned(), cause })?;
        let is_wanted = |file: &ArchiveFile| {
            file.kind == kind.of_files() && since.is_none_or(|day| file.day.as_str() >= day)
        };
        let files = files.into_iter().filter(is_wanted).collect();
        Ok(Self { kind, files, seen: Seen::default(), damage: 0 })
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// How many places could not be read.
    pub(super) fn damage(&self) -> usize {
        self.damage
    }

    /// Shows what is wanted, newest first, until somebody has enough.
    pub(super) fn read(
        &mut self,
        is_wanted: impl Fn(&Item) -> bool,
        mut visit: impl FnMut(Item, &str) -> ControlFlow<()>,
    ) -> Result<(), Failure> {
        let files = std::mem::take(&mut self.files);
        let bytes = |file: &ArchiveFile| file.path.metadata().map_or(0, |found| found.len());
        let progress = Copying::new(files.iter().map(bytes).sum());
        let mut done = 0;
        for (nth, file) in files.iter().rev().enumerate() {
            let age = if nth == 0 { Age::Newest } else { Age::Older };
            let Some((frames, newest)) = self.survey(file, age, &is_wanted) else { continue };
            done += bytes(file);
            progress.tell(done);
            if show(&frames, newest, &mut visit).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Reads a file, and finds in it what is wanted and was not seen in a newer one.
    fn survey(
        &mut self,
        file: &ArchiveFile,
        age: Age,
        is_wanted: impl Fn(&Item) -> bool,
    ) -> Option<(ArchiveFrames, Vec<Newest>)> {
        let name = file.path.display();
        let mut frames = match ArchiveFrames::open(&file.path) {
            Ok(frames) => frames,
            Err(error) => {
                self.complain(&format!("{name} cannot be read: {error}"));
                return None;
            }
        };
        let mut newest: BTreeMap<u64, Newest> = BTreeMap::new();
        while let Some(piece) = frames.next_piece() {
            let (offset, lines) = match (piece, age) {
                (Piece::Frame { offset, lines }, _) => (offset, lines),
                (Piece::Unfinished { offset, bytes }, Age::Newest) => {
                    output::complain(&format!(
                        "the last {bytes} bytes of {name}, from offset {offset} on, are not \
                         finished: a server is writing them, or a crash has left them; nothing in \
                         them was forgotten"
                    ));
                    continue;
                }
                (Piece::Damaged { offset, bytes } | Piece::Unfinished { offset, bytes }, _) => {
                    self.complain(&format!(
                        "{name} is damaged: {bytes} bytes at offset {offset} cannot be read"
                    ));
                    continue;
                }
            };
            for (nth, line) in archive_lines(&lines).enumerate() {
                let Ok(item) = serde_json::from_slice::<Item>(line) else {
                    self.complain(&format!(
                        "{name} has something else than a {} in line {} of the frame at offset \
                         {offset}",
                        self.kind.noun(),
                        nth + 1
                    ));
                    continue;
                };
                let is_wanted = is_wanted(&item);
                let found = Newest { last_lsn: item.last_lsn, frame: offset, line: nth, is_wanted };
                let known = newest.entry(item.id).or_insert(found);
                if known.last_lsn <= found.last_lsn {
                    *known = found;
                }
            }
        }
        let mut wanted = Vec::new();
        for (id, found) in newest {
            if found.is_wanted && !self.seen.has(id) {
                wanted.push(found);
            }
            self.seen.add(id);
        }
        Some((frames, wanted))
    }

    fn complain(&mut self, sentence: &String) {
        self.damage += 1;
        output::complain(sentence);
    }
}

/// The newest file may be in the making.
#[derive(Clone, Copy)]
enum Age {
    Newest,
    Older,
}

/// Shows these lines, the last first, one frame at a time.
fn show(
    frames: &ArchiveFrames,
    mut newest: Vec<Newest>,
    visit: &mut impl FnMut(Item, &str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    newest.sort_unstable_by_key(|found| std::cmp::Reverse((found.frame, found.line)));
    for of_frame in newest.chunk_by(|one, other| one.frame == other.frame) {
        let Some(lines) = of_frame.first().and_then(|found| frames.lines_at(found.frame)) else {
            continue;
        };
        let lines: Vec<_> = archive_lines(&lines).collect();
        for found in of_frame {
            let line = lines.get(found.line).and_then(|line| str::from_utf8(line).ok());
            if let Some(line) = line
                && let Ok(item) = serde_json::from_str(line)
            {
                visit(item, line)?;
            }
        }
    }
    ControlFlow::Continue(())
}

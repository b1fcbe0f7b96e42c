//! The file that the next segment will be, made ahead: out of a trimmed segment's file where there
//! is one, and out of new room where there is none.

use std::io;
use std::thread::JoinHandle;

use tenure_log::{Fault, Room};

use crate::disk::{Disk, DiskFile};
use crate::options::{Options, Spares};
use crate::planted::{self, Bug};
use crate::segment::{self, SegmentHeader};

/// A segment that is made but not yet named: header unknown, zeros written.
pub(crate) const SPARE: &str = "spare.tmp";
/// Zeros are written in pieces of this size, and each is synced: a whole segment at once would keep
/// the log's own syncs waiting.
const ZEROS_BYTES: usize = 4 << 20;

/// What may become of trimmed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// Some are overwritten and used again.
    Some,
    /// None: they may still be read.
    Nothing,
}

/// The spare, and what the next ones can be made of.
#[derive(Debug)]
pub(crate) struct Stock<D: Disk> {
    disk: D,
    options: Options,
    spare: Spare<D::File>,
    /// Files that are not read any more, by name; the last is taken first.
    used: Vec<String>,
    /// The last try to make a spare found no room, and none was made since.
    is_refused: bool,
}

#[derive(Debug)]
enum Spare<F> {
    None,
    Making(JoinHandle<Result<F, Fault>>),
    Ready(F),
    /// It could not be made, for another reason than a lack of room; the next use reports it.
    Failed(Fault),
}

impl<D: Disk> Stock<D> {
    /// Takes over what the process before left, up to the bound, and removes the rest.
    pub(crate) fn open(disk: &D, options: Options) -> Result<Self, Fault> {
        let mut names = disk.list().map_err(|e| Fault::io("list", &disk.name(), e))?;
        names.retain(|name| is_used(name) || name == SPARE);
        // The spare comes last, to be taken first: another one would be renamed over it.
        names.sort_by_key(|name| (name == SPARE, name.clone()));
        let too_many = names.len().saturating_sub(options.recycled_max);
        for name in names.drain(..too_many) {
            disk.remove(&name).map_err(|e| Fault::io("remove", &name, e))?;
        }
        let (spare, used) = (Spare::None, names);
        Ok(Self { disk: disk.clone(), options, spare, used, is_refused: false })
    }

    /// Begins to make a spare beside everything else, if that is how spares are made.
    pub(crate) fn start(&mut self) {
        if self.options.spares == Spares::Background && matches!(self.spare, Spare::None) {
            let (disk, bytes, used) =
                (self.disk.clone(), self.options.segment_bytes, self.used.pop());
            let thread = std::thread::Builder::new().name("spare segment".to_owned());
            // Without a thread it is made when it is needed.
            if let Ok(making) = thread.spawn(move || make(&disk, bytes, used.as_deref())) {
                self.spare = Spare::Making(making);
            }
        }
    }

    /// Makes the spare, or waits until it is made. If the disk is full, nothing of it is left.
    pub(crate) fn prepare(&mut self) -> Result<(), Fault> {
        let made = match std::mem::replace(&mut self.spare, Spare::None) {
            Spare::Ready(file) => Ok(file),
            Spare::Making(thread) => thread.join().expect("making a spare does not panic"),
            Spare::None => make(&self.disk, self.options.segment_bytes, self.used.pop().as_deref()),
            Spare::Failed(fault) => Err(fault),
        };
        self.is_refused = matches!(made, Err(Fault::Full));
        self.spare = Spare::Ready(made?);
        Ok(())
    }

    /// How much room there is. If a spare was refused for want of it and it is back, another one
    /// is begun.
    pub(crate) fn room(&mut self) -> Room {
        self.settle();
        let free_bytes = self.free_bytes();
        // A little more than it takes, or a nearly full disk would be filled up again and again.
        let enough = self.options.segment_bytes + self.options.segment_bytes / 8;
        if self.is_refused && (free_bytes >= enough || !self.used.is_empty()) {
            match self.options.spares {
                Spares::Background => self.start(),
                Spares::Caller => self.prepare_for_later(),
            }
        }
        match self.is_refused || free_bytes < self.options.low_water_bytes {
            true => Room::Low,
            false => Room::Plenty,
        }
    }

    /// Notices that the thread has ended.
    fn settle(&mut self) {
        if matches!(&self.spare, Spare::Making(thread) if thread.is_finished()) {
            self.prepare_for_later();
        }
    }

    /// A failure is kept until the spare is needed.
    fn prepare_for_later(&mut self) {
        match self.prepare() {
            Ok(()) | Err(Fault::Full) => {}
            Err(fault) => self.spare = Spare::Failed(fault),
        }
    }

    /// A disk that cannot say how much is free is taken for a full one.
    fn free_bytes(&self) -> u64 {
        self.disk.free_bytes().unwrap_or(0)
    }

    /// Makes the spare the next segment. When this returns, that is durable.
    pub(crate) fn name(&mut self, header: &SegmentHeader) -> Result<D::File, Fault> {
        let Spare::Ready(file) = std::mem::replace(&mut self.spare, Spare::None) else {
            unreachable!("it is prepared before it is named");
        };
        segment::name_spare(&self.disk, &file, header)?;
        Ok(file)
    }

    /// Takes the names of trimmed segments away: some files are kept to be used again, the rest is
    /// removed. What is kept may be handed to [`Stock::keep`] once that is durable.
    pub(crate) fn put_away(
        &self,
        trimmed: &SegmentHeader,
        reuse: Reuse,
        kept: &mut Vec<String>,
    ) -> Result<(), Fault> {
        let name = segment::file_name(trimmed.number);
        let fits = trimmed.file_bytes == self.options.segment_bytes && reuse == Reuse::Some;
        // On a full disk others need the room more than the log does, once it has a spare.
        let wanted = match self.free_bytes() < self.options.low_water_bytes {
            true => usize::from(self.is_refused),
            false => self.options.recycled_max,
        };
        if fits && self.used.len() + kept.len() < wanted {
            let used = used_name(trimmed.number);
            self.disk.rename(&name, &used).map_err(|e| Fault::io("rename", &name, e))?;
            kept.push(used);
            return Ok(());
        }
        self.disk.remove(&name).map_err(|e| Fault::io("remove", &name, e))
    }

    /// Keeps files that are durable under no other name. They come first: a spare that was left
    /// must be taken before one of them is renamed over it.
    pub(crate) fn keep(&mut self, names: Vec<String>) {
        self.used.splice(0..0, names);
    }
}

impl<D: Disk> Drop for Stock<D> {
    fn drop(&mut self) {
        // The folder is not free for others while a thread still writes to it.
        if let Spare::Making(thread) = std::mem::replace(&mut self.spare, Spare::None) {
            let _ = thread.join();
        }
    }
}

/// Makes the spare. If there is no room for it, nothing of it is left.
fn make<D: Disk>(disk: &D, segment_bytes: u64, used: Option<&str>) -> Result<D::File, Fault> {
    match fill(disk, segment_bytes, used) {
        Err(Fault::Io { cause, .. }) if is_full(&cause) => {
            // Give back what was taken; there may be better use for it.
            match disk.remove(SPARE) {
                Ok(()) => Err(Fault::Full),
                // There was not even room for its name.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Fault::Full),
                Err(error) => Err(Fault::io("remove", SPARE, error)),
            }
        }
        made => made,
    }
}

/// Takes the room of a spare and writes zeros, because a write into room that was never written
/// costs an fsync twice as long.
fn fill<D: Disk>(disk: &D, segment_bytes: u64, used: Option<&str>) -> Result<D::File, Fault> {
    let file = match used {
        Some(used) => take_over(disk, segment_bytes, used)?,
        None => disk.create(SPARE).map_err(|e| Fault::io("create", SPARE, e))?,
    };
    if used.is_some() && planted::has(Bug::RecycledNotZeroed) {
        return Ok(file);
    }
    let zeros = vec![0; ZEROS_BYTES.min(segment_bytes as usize)];
    let mut offset = 0;
    while offset < segment_bytes {
        let piece = zeros.len().min((segment_bytes - offset) as usize);
        file.write_all_at(&zeros[..piece], offset).map_err(|e| Fault::io("fill", SPARE, e))?;
        file.sync().map_err(|e| Fault::io("sync", SPARE, e))?;
        offset += piece as u64;
    }
    Ok(file)
}

/// A file that is there, to be overwritten. One of another size is emptied instead.
fn take_over<D: Disk>(disk: &D, segment_bytes: u64, used: &str) -> Result<D::File, Fault> {
    if used != SPARE {
        disk.rename(used, SPARE).map_err(|e| Fault::io("rename", used, e))?;
    }
    let file = disk.open(SPARE).map_err(|e| Fault::io("open", SPARE, e))?;
    let size = file.size().map_err(|e| Fault::io("look at", SPARE, e))?;
    match size == segment_bytes {
        true => Ok(file),
        false => disk.create(SPARE).map_err(|e| Fault::io("create", SPARE, e)),
    }
}

fn used_name(number: u64) -> String {
    format!("used-{number:016x}.tmp")
}

fn is_used(name: &str) -> bool {
    let number = name.strip_prefix("used-").and_then(|rest| rest.strip_suffix(".tmp"));
    number.is_some_and(|number| number.len() == 16 && u64::from_str_radix(number, 16).is_ok())
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

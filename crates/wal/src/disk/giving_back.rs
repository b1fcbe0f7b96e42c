//! Room given back a little at a time. A file system that has to forget a gigabyte at once keeps
//! everybody's syncs waiting meanwhile, for tenths of a second.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// Files up to this size are forgotten at once.
const SMALL_BYTES: u64 = 8 << 20;
/// Larger ones by so much at a time,
const PIECE_BYTES: u64 = 4 << 20;
/// with a rest after each piece.
const REST: Duration = Duration::from_millis(10);

/// Removes files of a folder. A name is gone at once; the room follows. If the process ends before,
/// the system gives back the rest.
#[derive(Debug, Default)]
pub(super) struct GivingBack {
    large: OnceLock<Sender<File>>,
}

impl GivingBack {
    pub(super) fn remove(&self, folder: &Path, name: &str) -> io::Result<()> {
        let path = folder.join(name);
        // As long as somebody has it open, its room is not given back. If it cannot be opened,
        // that happens all at once.
        let file = File::options().write(true).open(&path).ok();
        fs::remove_file(&path)?;
        if let Some(file) = file
            && file.metadata()?.len() > SMALL_BYTES
        {
            // If there is no thread to take it, it is closed here.
            let _ = self.large.get_or_init(|| start(folder.to_owned())).send(file);
        }
        Ok(())
    }
}

/// A thread for as long as somebody can send it files.
fn start(folder: PathBuf) -> Sender<File> {
    let (sender, files) = mpsc::channel::<File>();
    let thread = std::thread::Builder::new().name("giving back".to_owned());
    let _ = thread.spawn(move || {
        for file in files {
            // Nobody may find a part of it under its name, not even after a crash. What cannot be
            // cut off goes with the rest when the file is closed.
            let _ = super::real::sync_folder(Some(&folder)).and_then(|()| shrink(&file));
        }
    });
    sender
}

fn shrink(file: &File) -> io::Result<()> {
    let mut bytes = file.metadata()?.len();
    while bytes > PIECE_BYTES {
        bytes -= PIECE_BYTES;
        file.set_len(bytes)?;
        std::thread::sleep(REST);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a file without a name nobody sees more than its length.
    fn removed(bytes: u64) -> (File, GivingBack) {
        let name = format!("tenure-giving-back-{}-{bytes}", std::process::id());
        let folder = std::env::temp_dir();
        let file = File::create_new(folder.join(&name)).unwrap();
        file.set_len(bytes).unwrap();
        let giving_back = GivingBack::default();
        giving_back.remove(&folder, &name).unwrap();
        assert!(!folder.join(&name).exists(), "its name is gone");
        (file, giving_back)
    }

    #[test]
    fn a_large_file_loses_its_name_at_once_and_its_room_piece_by_piece() {
        let (file, giving_back) = removed(SMALL_BYTES + 3 * PIECE_BYTES);
        let mut before = SMALL_BYTES + 3 * PIECE_BYTES;
        while before > PIECE_BYTES {
            let now = file.metadata().unwrap().len();
            assert!(now.is_multiple_of(PIECE_BYTES) && now <= before, "{now} after {before}");
            before = now;
            std::thread::sleep(REST / 4);
        }
        drop(giving_back);
    }

    #[test]
    fn a_small_file_needs_no_thread() {
        let (file, giving_back) = removed(SMALL_BYTES);
        assert!(giving_back.large.get().is_none());
        assert_eq!(file.metadata().unwrap().len(), SMALL_BYTES, "it goes when it is closed");
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        let gone = GivingBack::default().remove(&std::env::temp_dir(), "tenure-was-never-there");
        assert_eq!(gone.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

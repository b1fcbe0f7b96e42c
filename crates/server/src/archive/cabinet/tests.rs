//! What is on the cabinet after crashes, damage and failures.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::archive::read::archive_lines;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenure-cabinet-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn open(&self) -> Result<Cabinet, NoArchive> {
        Cabinet::open(&self.0, Path::new("no-data"))
    }

    fn cabinet(&self) -> Cabinet {
        let mut cabinet = self.open().unwrap();
        cabinet.begin().unwrap();
        cabinet
    }

    fn files(&self) -> Vec<ArchiveFile> {
        archive_files(&self.0).unwrap()
    }

    /// All lines, and what could not be read.
    fn read(&self) -> (Vec<String>, Vec<Piece>) {
        let (mut all, mut bad) = (Vec::new(), Vec::new());
        for file in self.files() {
            let mut frames = ArchiveFrames::open(&file.path).unwrap();
            while let Some(piece) = frames.next_piece() {
                match piece {
                    Piece::Frame { lines, .. } => all.extend(
                        archive_lines(&lines).map(|line| String::from_utf8(line.to_vec()).unwrap()),
                    ),
                    Piece::Damaged { .. } | Piece::Unfinished { .. } => bad.push(piece),
                }
            }
        }
        (all, bad)
    }

    fn append(&self, bytes: &[u8]) {
        let newest = self.files().pop().unwrap();
        let mut file = OpenOptions::new().append(true).open(newest.path).unwrap();
        file.write_all(bytes).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn put(cabinet: &mut Cabinet, line: &str) {
    cabinet.put(Kind::Tasks, line.as_bytes()).unwrap();
    cabinet.sync().unwrap();
}

#[test]
fn a_folder_that_is_not_for_us_is_refused() {
    let folder = Folder::new();
    let cabinet = folder.cabinet();
    assert!(matches!(folder.open(), Err(NoArchive::InUse)));
    cabinet.claim(7).unwrap();
    cabinet.claim(7).unwrap();
    assert!(matches!(cabinet.claim(8), Err(NoArchive::Foreign)));
    assert!(matches!(Cabinet::open(&folder.0.join("a"), &folder.0), Err(NoArchive::InData)));
    assert!(matches!(Cabinet::open(&folder.0, &folder.0), Err(NoArchive::InData)));
    let in_a_file = folder.0.join(LOCK).join("deeper");
    assert!(matches!(Cabinet::open(&in_a_file, Path::new("no")), Err(NoArchive::Disk(_))));
}

#[test]
fn what_was_synced_is_read_and_the_next_server_goes_on_with_the_same_file() {
    let folder = Folder::new();
    let mut cabinet = folder.cabinet();
    put(&mut cabinet, "1");
    put(&mut cabinet, "2");
    cabinet.put(Kind::Runs, b"a").unwrap();
    assert_eq!(folder.files().len(), 1, "what is not synced has no file");
    drop(cabinet);
    let mut cabinet = folder.cabinet();
    put(&mut cabinet, "3");
    assert_eq!(folder.read(), (vec!["1".into(), "2".into(), "3".into()], vec![]));
    assert_eq!(folder.files().len(), 1);
    let name = folder.files()[0].path.file_name().unwrap().to_owned();
    assert_eq!(name.to_str().unwrap(), format!("tasks-{}-0001.ndjson.zst", today()));
}

#[test]
fn an_unfinished_end_is_cut_off_at_the_next_start_wherever_it_was_cut() {
    let frame = zstd::bulk::compress(b"2\n", ARCHIVE_LEVEL).unwrap();
    for cut in 1..frame.len() {
        let folder = Folder::new();
        put(&mut folder.cabinet(), "1");
        folder.append(&frame[..cut]);
        assert!(matches!(folder.read().1[..], [Piece::Unfinished { .. }]), "{cut}");
        put(&mut folder.cabinet(), "3");
        assert_eq!(folder.read(), (vec!["1".into(), "3".into()], vec![]), "{cut}");
    }
}

#[test]
fn a_damaged_file_is_left_as_it_is_and_what_follows_the_damage_is_read() {
    let folder = Folder::new();
    let mut cabinet = folder.cabinet();
    put(&mut cabinet, "1");
    put(&mut cabinet, "2");
    drop(cabinet);
    let path = folder.files()[0].path.clone();
    let sound = fs::read(&path).unwrap();
    for at in 0..sound.len() / 2 {
        let mut rotten = sound.clone();
        rotten[at] ^= 1;
        fs::write(&path, &rotten).unwrap();
        put(&mut folder.cabinet(), "3");
        let (lines, bad) = folder.read();
        assert_eq!(lines, ["2", "3"], "byte {at}");
        assert!(matches!(bad[..], [Piece::Damaged { offset: 0, .. }]), "byte {at}: {bad:?}");
        assert_eq!(fs::read(&path).unwrap(), rotten);
        assert_eq!(folder.files().len(), 2);
        fs::remove_file(&folder.files()[1].path).unwrap();
    }
}

#[test]
fn what_could_not_be_synced_is_cut_off_before_anything_else_is_written() {
    let folder = Folder::new();
    let mut cabinet = folder.cabinet();
    put(&mut cabinet, "1");
    let long = "x".repeat(ARCHIVE_FRAME_BYTES);
    assert!(cabinet.put(Kind::Tasks, long.as_bytes()).unwrap() > 0, "it was written");
    cabinet.put(Kind::Tasks, b"2").unwrap();
    cabinet.drop_unsynced();
    cabinet.begin().unwrap();
    put(&mut cabinet, "3");
    assert_eq!(folder.read(), (vec!["1".into(), "3".into()], vec![]));
    assert_eq!(folder.files().len(), 2, "nobody trusts a file after a failure");
}

#[test]
fn a_write_that_fails_is_told_and_forgotten_and_the_next_one_works() {
    let folder = Folder::new();
    let mut cabinet = folder.cabinet();
    put(&mut cabinet, "1");
    let path = folder.files()[0].path.clone();
    let read_only = File::open(&path).unwrap();
    let open = cabinet.rows[0].open.as_mut().unwrap();
    let writable = std::mem::replace(&mut open.file, read_only);
    cabinet.put(Kind::Tasks, b"2").unwrap();
    assert_eq!(cabinet.sync().unwrap_err().path, path);
    cabinet.drop_unsynced();
    assert!(cabinet.begin().is_err(), "it cannot be cut either, so it is not left");
    cabinet.rows[0].open.as_mut().unwrap().file = writable;
    cabinet.begin().unwrap();
    put(&mut cabinet, "3");
    assert_eq!(folder.read(), (vec!["1".into(), "3".into()], vec![]));
}

#[test]
fn a_folder_that_went_away_is_not_made_anew() {
    let folder = Folder::new();
    let mut cabinet = folder.cabinet();
    let away = folder.0.with_extension("away");
    fs::rename(&folder.0, &away).unwrap();
    assert!(cabinet.begin().is_err());
    fs::create_dir(&folder.0).unwrap();
    fs::write(folder.0.join(LOCK), b"").unwrap();
    let error = cabinet.begin().unwrap_err();
    assert!(error.cause.to_string().contains("not the one that was opened"), "{error:?}");
    fs::remove_dir_all(&folder.0).unwrap();
    fs::rename(&away, &folder.0).unwrap();
    cabinet.begin().unwrap();
}

#[test]
fn files_of_others_are_not_ours_and_numbers_count() {
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    for name in ["notes.txt", "tasks-2026-11-16.ndjson.zst", "tasks-20261116-1.ndjson.zst"] {
        fs::write(folder.0.join(name), b"").unwrap();
    }
    for number in [10_001, 2, 9_999] {
        let file = ArchiveFile::new(&folder.0, Kind::Tasks, "2026-11-16", number);
        fs::write(file.path, b"").unwrap();
    }
    let numbers: Vec<_> = folder.files().iter().map(|file| file.number).collect();
    assert_eq!(numbers, [2, 9_999, 10_001]);
}

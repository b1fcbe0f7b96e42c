//! The shelf alone: what it gives back, what it notices, and how much of the disk it takes.

use std::time::{Duration, Instant};

use super::*;

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tenure-shelf-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn shelf(&self) -> FileShelf {
        FileShelf::open(&self.0, WarningHandler::default()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes that no other seed has.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut number = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = std::iter::repeat_with(|| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (number >> 56) as u8
    });
    next.take(len).collect()
}

fn put(shelf: &FileShelf, bytes: &[u8]) -> Kept {
    let stretches = shelf.0.put(bytes).unwrap();
    let (len, crc) = (bytes.len(), crc32c::crc32c(bytes));
    shelf.0.strings.fetch_add(1, Ordering::Relaxed);
    Kept { shelf: Arc::clone(&shelf.0), stretches, len, crc }
}

#[test]
fn bytes_come_back_as_they_were_whatever_was_freed_around_them() {
    let folder = Folder::new("back");
    let shelf = folder.shelf();
    let mut kept: Vec<(u64, usize, Arc<dyn Shelved>)> = Vec::new();
    for seed in 0..600_u64 {
        let len = 65_537 + (seed as usize * 7_919) % 400_000;
        kept.push((seed, len, shelf.keep(&bytes(seed, len)).unwrap()));
        if seed % 3 > 0 {
            kept.swap_remove((seed as usize * 31) % kept.len());
        }
    }
    for (seed, len, there) in &kept {
        assert!(there.read().unwrap() == bytes(*seed, *len), "string {seed}");
        assert_eq!(there.len(), *len);
    }
    assert_eq!(shelf.in_use().strings, kept.len() as u64);
    drop(kept);
    assert_eq!((shelf.in_use().strings, shelf.in_use().bytes), (0, 0));
}

#[test]
fn bytes_that_were_changed_or_cut_off_are_never_given_out() {
    let folder = Folder::new("changed");
    let shelf = folder.shelf();
    let first = put(&shelf, &bytes(1, 100_000));
    let second = put(&shelf, &bytes(2, 100_000));
    let file = OpenOptions::new().write(true).open(folder.0.join(SHELF_FILE)).unwrap();
    for at in [0, 50_000, 99_999] {
        let was = first.try_read().unwrap()[at];
        file.write_all_at(&[was ^ 1], at as u64).unwrap();
        assert_eq!(first.try_read().unwrap_err().kind(), io::ErrorKind::InvalidData, "byte {at}");
        file.write_all_at(&[was], at as u64).unwrap();
    }
    assert!(first.try_read().is_ok());
    // Another's bytes are as wrong as no bytes.
    file.write_all_at(&second.try_read().unwrap(), 0).unwrap();
    assert_eq!(first.try_read().unwrap_err().kind(), io::ErrorKind::InvalidData);
    file.set_len(150_000).unwrap();
    assert_eq!(second.try_read().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_write_that_fails_is_a_refusal_and_leaves_no_trace() {
    let folder = Folder::new("refused");
    let path = folder.0.join("read-only");
    fs::write(&path, b"").unwrap();
    let mut shelf = folder.shelf();
    let inner = Arc::get_mut(&mut shelf.0).unwrap();
    inner.file = File::open(&path).unwrap();
    for _ in 0..3 {
        assert!(shelf.keep(&bytes(1, 70_000)).is_none());
    }
    let seen = shelf.in_use();
    assert_eq!((seen.strings, seen.bytes, seen.refused), (0, 0, 3));
    assert!(shelf.0.is_refusing.load(Ordering::Relaxed));
}

#[test]
fn a_file_stays_as_small_as_what_is_kept_through_many_rounds() {
    let folder = Folder::new("rounds");
    let shelf = folder.shelf();
    for round in 0..200_u64 {
        let size = 70_000 + (round as usize * 104_729) % 900_000;
        let kept: Vec<_> = (0..8).map(|_| shelf.keep(&vec![7; size]).unwrap()).collect();
        assert!(kept.iter().all(|there| there.len() == size));
    }
    let length = fs::metadata(folder.0.join(SHELF_FILE)).unwrap().len();
    assert!(length <= 8 * (970_000 + CHUNK_BYTES), "{length} bytes");
}

#[test]
fn what_is_free_goes_back_to_the_disk_though_a_string_stays_at_the_end() {
    let folder = Folder::new("holes");
    let shelf = folder.shelf();
    let kept: Vec<_> = (0..160).map(|_| shelf.keep(&vec![7; 1 << 20]).unwrap()).collect();
    let last = shelf.keep(&bytes(9, 80_000)).unwrap();
    drop(kept);
    let until = Instant::now() + Duration::from_secs(60);
    let idle_max = u64::from(plan::IDLE_CHUNKS) * CHUNK_BYTES;
    let too_much = || {
        let ShelfUse { bytes, held_bytes, .. } = shelf.in_use();
        held_bytes > 2 * bytes + idle_max
    };
    while too_much() && !shelf.0.keeps_holes.load(Ordering::Relaxed) {
        assert!(Instant::now() < until, "{:?}", shelf.in_use());
        std::thread::yield_now();
    }
    assert!(last.read().unwrap() == bytes(9, 80_000));
    if !shelf.0.keeps_holes.load(Ordering::Relaxed) {
        let blocks = fs::metadata(folder.0.join(SHELF_FILE)).unwrap().blocks();
        assert!(blocks * 512 < idle_max + (1 << 20), "{blocks} blocks, once 160 MiB");
    }
    // And they can be used again.
    let again = shelf.keep(&bytes(3, 1 << 20)).unwrap();
    assert!(again.read().unwrap() == bytes(3, 1 << 20));
}

#[test]
fn a_shelf_begins_empty_and_leaves_the_one_before_alone() {
    let folder = Folder::new("begins");
    let before = folder.shelf();
    let kept = before.keep(&bytes(4, 90_000)).unwrap();
    let after = folder.shelf();
    after.keep(&bytes(5, 90_000)).unwrap();
    assert!(kept.read().unwrap() == bytes(4, 90_000), "a late reader has its own file");
    assert_eq!(after.in_use().strings, 0);
    before.retire();
    assert!(folder.0.join(SHELF_FILE).exists(), "the name is another's by now");
    drop((kept, before));
    let other = after.keep(&bytes(6, 90_000)).unwrap();
    after.retire();
    assert!(other.read().unwrap() == bytes(6, 90_000), "who holds it still reads");
    assert!(!folder.0.join(SHELF_FILE).exists());
}

#[test]
fn a_shelf_without_a_name_leaves_no_file() {
    let folder = Folder::new("unnamed");
    let shelf = FileShelf::unnamed(&folder.0).unwrap();
    let kept = shelf.keep(&bytes(1, 70_000)).unwrap();
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    assert!(kept.read().unwrap() == bytes(1, 70_000));
}

#[test]
fn a_folder_in_its_place_is_an_error_and_not_removed() {
    let folder = Folder::new("folder");
    fs::create_dir(folder.0.join(SHELF_FILE)).unwrap();
    assert!(FileShelf::open(&folder.0, WarningHandler::default()).is_err());
    assert!(folder.0.join(SHELF_FILE).is_dir());
}

//! Damage: every bit flipped, every cut, sectors and segments lost, moved and mixed up. Whatever
//! was durable is either there unchanged, or the log says so and touches nothing.
//!
//! Proves P11 and P20.
#![allow(clippy::unwrap_used)]

use std::ops::Range;

use crate::support::image::{
    HEADER_BYTES, Image, Lies, SECOND_HEADER_AT, What, image_of, layout, reseal_headers,
    segment_name,
};
use crate::support::reference::{
    BATCHES, Ends, Outcome, Reference, file_of, open_image, reference, reference_of, refused,
};
use crate::support::{append, open, options};
use tenure_log::{Anchor, Fault};
use tenure_wal::disk::model::{ModelDisk, SECTOR_BYTES};
use tenure_wal::{Options, Wal};

const THREADS: usize = 4;

/// Damages the log in every way of a list, on all processors.
fn in_parallel<T: Sync>(ways: &[T], each: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for part in ways.chunks(ways.len().div_ceil(THREADS)) {
            scope.spawn(|| part.iter().for_each(&each));
        }
    });
}

fn flip_every_bit(ends: Ends) {
    let reference = reference(ends);
    // A mark changes nothing for the segments before its own.
    let passed = match ends {
        Ends::WithRecords => 0,
        Ends::WithMark => reference.image.len() - 1,
    };
    let bytes: Vec<(&String, usize)> = reference
        .image
        .iter()
        .skip(passed)
        .flat_map(|(file, bytes)| (0..bytes.len()).map(move |at| (file, at)))
        .collect();
    in_parallel(&bytes, |(file, at)| {
        let mut image = reference.image.clone();
        for bit in 0..8 {
            let byte = &mut image.get_mut(*file).unwrap()[*at];
            *byte ^= 1 << bit;
            let what = format!("{file}, byte {at}, bit {bit}");
            reference.check_flip(file, *at, &open_image(&image), &what);
            image.get_mut(*file).unwrap()[*at] ^= 1 << bit;
        }
    });
    println!("{} bits flipped", bytes.len() * 8);
}

#[test]
fn no_bit_changes_unnoticed_in_a_log_that_ends_with_records() {
    flip_every_bit(Ends::WithRecords);
}

#[test]
fn no_bit_changes_unnoticed_in_a_log_that_ends_with_a_mark() {
    flip_every_bit(Ends::WithMark);
}

#[test]
fn a_file_cut_at_any_byte_is_refused() {
    let reference = reference(Ends::WithRecords);
    let cuts: Vec<(&String, usize)> = reference
        .image
        .iter()
        .flat_map(|(file, bytes)| (0..bytes.len()).map(move |at| (file, at)))
        .collect();
    in_parallel(&cuts, |(file, at)| {
        let mut image = reference.image.clone();
        image.get_mut(*file).unwrap().truncate(*at);
        let outcome = open_image(&image);
        let Outcome::Refused(Fault::Corrupt(corruption)) = outcome else {
            unreachable!("{file} cut at {at}: {outcome:?}")
        };
        assert_eq!(corruption.file, **file);
    });
    println!("{} cuts", cuts.len());
}

impl Reference {
    /// All ways to put one sector's content (or zeros) over another, for all pairs.
    fn sectors(&self) -> Vec<(&str, usize, Option<usize>)> {
        let mut ways = Vec::new();
        for (file, bytes) in &self.image {
            let count = bytes.len() / SECTOR_BYTES;
            for at in 0..count {
                ways.push((file.as_str(), at, None));
                ways.extend((0..count).filter(|o| *o != at).map(|o| (file.as_str(), at, Some(o))));
            }
        }
        ways
    }
}

fn sector(at: usize) -> Range<usize> {
    at * SECTOR_BYTES..(at + 1) * SECTOR_BYTES
}

fn damage_sectors(ends: Ends) {
    let reference = reference(ends);
    let ways = reference.sectors();
    let lost = std::sync::atomic::AtomicUsize::new(0);
    in_parallel(&ways, |&(file, at, other)| {
        let mut bytes = reference.image[file].clone();
        let what = match other {
            None => {
                bytes[sector(at)].fill(0);
                format!("{file}, sector {at} zeroed")
            }
            Some(other) => {
                bytes.copy_within(sector(other), at * SECTOR_BYTES);
                format!("{file}, sector {at} overwritten with {other}")
            }
        };
        let mut gone = usize::from(reference.check_sectors(file, &bytes, &what));
        if let Some(other) = other.filter(|other| *other > at) {
            bytes[sector(other)].copy_from_slice(&reference.image[file][sector(at)]);
            let what = format!("{file}, sectors {at} and {other} swapped");
            gone += usize::from(reference.check_sectors(file, &bytes, &what));
        }
        lost.fetch_add(gone, std::sync::atomic::Ordering::Relaxed);
    });
    println!(
        "{} sectors zeroed, overwritten or swapped; in {lost:?} the last was lost",
        ways.len()
    );
}

#[test]
fn lost_and_misplaced_sectors_are_noticed() {
    damage_sectors(Ends::WithRecords);
}

#[test]
fn lost_and_misplaced_sectors_are_noticed_before_a_mark() {
    damage_sectors(Ends::WithMark);
}

#[test]
fn a_missing_segment_is_noticed() {
    let reference = reference(Ends::WithRecords);
    let names: Vec<_> = reference.image.keys().cloned().collect();
    for name in &names {
        let mut image = reference.image.clone();
        image.remove(name);
        let fault = refused(&image, name);
        assert!(matches!(fault, Fault::Corrupt(_)), "{fault}");
        assert_eq!(file_of(&fault), name, "{fault}");
    }
}

#[test]
fn a_log_that_begins_after_its_snapshot_is_refused() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    let mut anchors = Vec::new();
    for count in BATCHES {
        let lsn = append(&mut wal, count).unwrap();
        wal.sync().unwrap();
        anchors.push(Anchor { lsn, chain: wal.chain() });
    }
    drop(wal);
    disk.take(&segment_name(1));
    let begins = layout(&image_of(&disk))[0].first_lsn;
    for anchor in anchors {
        let opened = Wal::open(&disk, options(), Some(anchor), |_| {});
        match opened {
            Err(Fault::Corrupt(corruption)) => {
                assert!(anchor.lsn.0 + 1 < begins, "{anchor:?}: {corruption:?}");
                assert_eq!(corruption.file, segment_name(1));
            }
            Err(fault) => unreachable!("{anchor:?}: {fault}"),
            Ok(_) => assert!(anchor.lsn.0 + 1 >= begins, "{anchor:?}: records are missing"),
        }
    }
}

#[test]
fn a_snapshot_taken_right_after_a_mark_fits_the_log() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    append(&mut wal, 3).unwrap();
    wal.sync().unwrap();
    wal.mark(5_000).unwrap();
    let anchor = Anchor { lsn: wal.written(), chain: wal.chain() };
    append(&mut wal, 2).unwrap();
    wal.sync().unwrap();
    drop(wal);
    let mut visited = 0;
    let opened = Wal::open(&disk, options(), Some(anchor), |frame| {
        visited += frame.records().count();
    });
    assert!(opened.is_ok(), "{}", opened.unwrap_err());
    assert_eq!(visited, 2);
}

#[test]
fn segments_under_other_names_are_noticed() {
    let reference = reference(Ends::WithMark);
    let count = reference.image.len() as u64;
    for from in 1..=count {
        for to in 1..=count + 2 {
            if from == to {
                continue;
            }
            let (from, to) = (segment_name(from), segment_name(to));
            let what = format!("{from} as {to}");
            let mut renamed = reference.image.clone();
            let bytes = renamed.remove(&from).unwrap();
            let replaced = renamed.insert(to.clone(), bytes);
            let fault = refused(&renamed, &what);
            assert!([&from, &to].map(String::as_str).contains(&file_of(&fault)), "{what}: {fault}");
            if let Some(replaced) = replaced {
                renamed.insert(from.clone(), replaced);
                let fault = refused(&renamed, &format!("{from} and {to} swapped"));
                assert!([&from, &to].map(String::as_str).contains(&file_of(&fault)), "{fault}");
            }
            let mut copied = reference.image.clone();
            copied.insert(to.clone(), reference.image[&from].clone());
            let fault = refused(&copied, &format!("{from} copied to {to}"));
            assert!(matches!(fault, Fault::Foreign { .. }), "{what}: {fault}");
            assert_eq!(file_of(&fault), to);
        }
    }
}

#[test]
fn a_segment_of_another_log_is_noticed() {
    let ours = reference(Ends::WithRecords);
    let other_log = Options { new_log_id: 0xdef, ..options() };
    let other_history = Options { salt_seed: 43, ..options() };
    for options in [other_log, other_history] {
        // The other history has other records in frames of other sizes.
        let theirs = reference_with_one_more_batch(options);
        for name in ours.image.keys() {
            let mut image = ours.image.clone();
            image.insert(name.clone(), theirs[name].clone());
            let fault = refused(&image, name);
            assert!(matches!(fault, Fault::Foreign { .. } | Fault::Corrupt(_)), "{fault}");
        }
    }
}

fn reference_with_one_more_batch(options: Options) -> Image {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options, None, |_| {}).unwrap();
    for count in [2].into_iter().chain(BATCHES) {
        append(&mut wal, count).unwrap();
        wal.sync().unwrap();
    }
    image_of(&disk)
}

#[test]
fn frames_of_a_segment_with_another_salt_do_not_fit() {
    reference(Ends::WithRecords).check_salts();
}

#[test]
fn a_newer_format_is_left_alone() {
    let reference = reference(Ends::WithRecords);
    for name in reference.image.keys() {
        for (both, other) in [(true, 3_u32), (false, 3), (true, 1), (false, 1)] {
            let mut image = reference.image.clone();
            let bytes = image.get_mut(name).unwrap();
            for at in [0, SECOND_HEADER_AT] {
                bytes[at + 8..at + 12].copy_from_slice(&other.to_le_bytes());
            }
            reseal_headers(bytes);
            // What another format keeps behind its header is not checked.
            bytes[HEADER_BYTES + 10] = 7;
            if !both {
                bytes[20] ^= 1;
            }
            let fault = refused(&image, name);
            assert!(
                matches!(&fault, Fault::Format { version, .. } if *version == other),
                "{fault}"
            );
            let says = fault.to_string();
            let advice = if other > 2 { "use the newer binary" } else { "empty data folder" };
            assert!(says.contains(advice), "{says}");
            assert_eq!(file_of(&fault), name);
        }
    }
}

/// The sectors of what lies at the end of a file.
fn sectors_of(frame: &Lies) -> Range<usize> {
    frame.from / SECTOR_BYTES..frame.until.div_ceil(SECTOR_BYTES)
}

#[test]
fn damage_to_the_last_page_of_records_is_noticed_by_the_mark_behind_it() {
    // Several small frames share the last page of records.
    let larger = Options { segment_bytes: 25 << 10, ..options() };
    let reference = reference_of(&[1, 1, 1, 2, 1], Ends::WithMark, larger);
    let [.., records, gap, mark] = &reference.frames[..] else { unreachable!("there are more") };
    assert_eq!(
        (records.what, gap.what, mark.what),
        (What::Records, What::Gap, What::Mark),
        "{records:?}, {mark:?}"
    );
    let page = records.from / SECOND_HEADER_AT * SECOND_HEADER_AT;
    assert!(mark.from >= page + SECOND_HEADER_AT, "the mark is in a page of its own");
    // Every run of changed bytes in that page that touches a frame: random, inverted and zeros.
    for from in (page..gap.from).step_by(61) {
        for length in [1, 7, 88, 512, 4_096] {
            let until = (from + length).min(page + SECOND_HEADER_AT);
            for change in [|_: u8| 0, |byte: u8| !byte, |byte: u8| byte.wrapping_mul(37) ^ 0x5a] {
                let mut image = reference.image.clone();
                let bytes = image.get_mut(&mark.file).unwrap();
                bytes[from..until].iter_mut().for_each(|byte| *byte = change(*byte));
                if *bytes == reference.image[&mark.file] {
                    continue;
                }
                let what = format!("bytes {from} to {until}");
                let fault = refused(&image, &what);
                assert!(matches!(fault, Fault::Corrupt(_)), "{what}: {fault}");
                assert_eq!(file_of(&fault), mark.file, "{what}: {fault}");
            }
        }
    }
}

#[test]
fn a_missing_last_segment_is_noticed() {
    let reference = reference(Ends::WithRecords);
    let last = reference.last_file().to_owned();
    let first = reference.frames.iter().find(|frame| frame.file == last).unwrap();
    let mut image = reference.image.clone();
    image.remove(&last);
    let fault = refused(&image, &last);
    let Fault::Corrupt(corruption) = fault else { unreachable!("{fault}") };
    assert_eq!((corruption.file, corruption.lsn.0), (last, first.first_lsn));
}

/// The limit of what a log alone can know: its last segment is gone whole, with its name, and so is
/// the word of the one before. A snapshot that goes further notices.
#[test]
fn without_the_word_of_the_one_before_a_missing_segment_is_noticed_only_with_a_snapshot() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    for count in BATCHES {
        append(&mut wal, count).unwrap();
        wal.sync().unwrap();
    }
    let anchor = Anchor { lsn: wal.written(), chain: wal.chain() };
    drop(wal);
    let image = image_of(&disk);
    let frames = layout(&image);
    let word = frames.iter().rfind(|frame| frame.what == What::GoesOn).unwrap();
    let mut bytes = image[&word.file].clone();
    for at in sectors_of(word) {
        bytes[sector(at)].fill(0);
    }
    disk.put(&word.file, bytes);
    disk.take(image.keys().next_back().unwrap());
    let opened = Wal::open(&disk, options(), Some(anchor), |_| {});
    assert!(matches!(opened, Err(Fault::Corrupt(_))));
    let (_, recovered, records) = open(&disk).unwrap();
    assert!((records.len() as u64) < anchor.lsn.0 && recovered.notes.is_empty());
}

/// A header that is whole and makes its file so short that no frame is in it would hide them all.
#[test]
fn a_segment_that_calls_itself_too_short_for_frames_is_refused() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    append(&mut wal, 1).unwrap();
    wal.sync().unwrap();
    drop(wal);
    let mut bytes = disk.bytes(&segment_name(1)).unwrap();
    for at in [0, SECOND_HEADER_AT] {
        bytes[at + 88..at + 96].copy_from_slice(&8_191_u64.to_le_bytes());
    }
    reseal_headers(&mut bytes);
    disk.put(&segment_name(1), bytes);
    assert!(matches!(open(&disk), Err(Fault::Foreign { .. })));
}

/// Both are whole and say different things: no accident of a disk does that.
#[test]
fn two_headers_that_differ_are_refused() {
    let disk = ModelDisk::default();
    drop(Wal::open(&disk, options(), None, |_| {}).unwrap());
    let mut bytes = disk.bytes(&segment_name(1)).unwrap();
    bytes[SECOND_HEADER_AT + 80] ^= 1;
    reseal_headers(&mut bytes);
    disk.put(&segment_name(1), bytes);
    assert!(matches!(open(&disk), Err(Fault::Foreign { .. })));
}

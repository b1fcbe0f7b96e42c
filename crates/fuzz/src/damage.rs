//! Damage to files: flips, cuts, splices, lost and misplaced sectors, files gone and renamed. What
//! is done, and where, follows from the input.

use std::collections::BTreeMap;

use tenure_wal::disk::model::SECTOR_BYTES;

use crate::input::Input;

/// All files of a folder, by name.
pub(crate) type Image = BTreeMap<String, Vec<u8>>;

/// More than this is no longer damage but another file.
const STEPS_MAX: usize = 12;
const SPLICE_BYTES_MAX: usize = 6_000;
const WRITE_BYTES_MAX: usize = 40;

/// Somewhere that is worth hitting: in this file, where something begins.
pub(crate) type Landmark = (String, usize);

/// Damages the image step by step as the input says.
pub(crate) fn damage(image: &mut Image, landmarks: &[Landmark], input: &mut Input<'_>) {
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            return;
        }
        step(image, landmarks, input);
    }
}

fn step(image: &mut Image, landmarks: &[Landmark], input: &mut Input<'_>) {
    let kind = input.byte();
    let (file, at) = place(image, landmarks, input);
    let Some(length) = image.get(&file).map(Vec::len) else { return };
    match kind % 12 {
        0 => edit(image, &file, at, |byte| *byte ^= 1 << (kind / 12 % 8)),
        1 | 2 => {
            let count = input.pick(WRITE_BYTES_MAX) + 1;
            write(image, &file, at, input.take(count));
        }
        3 => image.entry(file).or_default().truncate(at),
        4 => write(image, &file, at / SECTOR_BYTES * SECTOR_BYTES, &[0; SECTOR_BYTES]),
        5 => {
            let (from_file, from) = place(image, landmarks, input);
            move_sector(image, (&from_file, from), (&file, at));
        }
        6 => {
            let (other_file, other) = place(image, landmarks, input);
            let kept = sector(image, &file, at);
            move_sector(image, (&other_file, other), (&file, at));
            write(image, &other_file, other / SECTOR_BYTES * SECTOR_BYTES, &kept);
        }
        7 => {
            let (from_file, from) = place(image, landmarks, input);
            let count = input.pick(SPLICE_BYTES_MAX) + 1;
            let bytes = image.get(&from_file).and_then(|bytes| bytes.get(from..));
            let bytes = bytes.map(|bytes| bytes[..count.min(bytes.len())].to_vec());
            write(image, &file, at, &bytes.unwrap_or_default());
        }
        8 => write(image, &file, at, &vec![0; length.saturating_sub(at)]),
        9 => {
            let more = input.pick(SPLICE_BYTES_MAX);
            image.entry(file).or_default().resize(length + more, input.byte());
        }
        10 => {
            let to = name_of(image, input);
            let bytes = match kind / 12 % 2 {
                0 => image.remove(&file),
                _ => image.get(&file).cloned(),
            };
            image.insert(to, bytes.unwrap_or_default());
        }
        _ => drop(image.remove(&file)),
    }
}

/// A file and an offset in it: near a landmark, or anywhere.
fn place(image: &Image, landmarks: &[Landmark], input: &mut Input<'_>) -> (String, usize) {
    let kind = input.byte();
    if !kind.is_multiple_of(4)
        && let Some((file, at)) = landmarks.get(usize::from(kind / 4) % landmarks.len().max(1))
    {
        return (file.clone(), (at + usize::from(input.byte())).saturating_sub(8));
    }
    let nth = usize::from(kind / 4) % image.len().max(1);
    let Some((file, bytes)) = image.iter().nth(nth) else { return (String::new(), 0) };
    (file.clone(), input.pick(bytes.len()))
}

/// The name of a segment near those that are there.
fn name_of(image: &Image, input: &mut Input<'_>) -> String {
    let number = input.byte() % 8;
    match image.keys().next() {
        Some(name) if name.starts_with("snapshot") => format!("snapshot-{number:016x}.snap"),
        _ => format!("segment-{number:016x}.wal"),
    }
}

fn edit(image: &mut Image, file: &str, at: usize, change: impl FnOnce(&mut u8)) {
    if let Some(byte) = image.get_mut(file).and_then(|bytes| bytes.get_mut(at)) {
        change(byte);
    }
}

/// Writes as much as there is room for.
fn write(image: &mut Image, file: &str, at: usize, bytes: &[u8]) {
    if let Some(room) = image.get_mut(file).and_then(|file| file.get_mut(at..)) {
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
    }
}

fn sector(image: &Image, file: &str, at: usize) -> Vec<u8> {
    let from = at / SECTOR_BYTES * SECTOR_BYTES;
    let bytes = image.get(file).and_then(|bytes| bytes.get(from..)).unwrap_or_default();
    bytes[..SECTOR_BYTES.min(bytes.len())].to_vec()
}

fn move_sector(image: &mut Image, from: (&str, usize), to: (&str, usize)) {
    let bytes = sector(image, from.0, from.1);
    write(image, to.0, to.1 / SECTOR_BYTES * SECTOR_BYTES, &bytes);
}

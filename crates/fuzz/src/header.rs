//! The header of a segment: any bytes, once or twice, with a checksum that fits or not.

use tenure_log::{FORMAT, Fault};
use tenure_wal::disk::model::ModelDisk;
use tenure_wal::{Beginning, forge, inspect};

use crate::damage::Image;
use crate::input::Input;
use crate::opened::open;
use crate::reference::reference;

const HEADER_BYTES: usize = 104;
const SECOND_HEADER_AT: usize = 4_096;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input(bytes);
    let seals = input.byte();
    let written = input.take(HEADER_BYTES);
    let Some((_, sound)) = reference(0).image.first_key_value() else { return };
    let mut segment = sound.clone();
    segment[..written.len()].copy_from_slice(written);
    if seals & 2 == 0 {
        segment.copy_within(..HEADER_BYTES, SECOND_HEADER_AT);
    }
    if seals & 1 == 0 {
        forge::reseal_headers(&mut segment, None);
        forge::reseal_frames(&mut segment);
    }
    let number = long(&segment, 32);
    let image = Image::from([(format!("segment-{number:016x}.wal"), segment.clone())]);
    let found = open(&image, None);
    if seals & 3 == 0 && found.is_ok() {
        is_read_as_written(&image, &segment);
    }
    let version = u32::from_le_bytes([segment[8], segment[9], segment[10], segment[11]]);
    let is_other = seals & 3 == 0 && written.starts_with(b"TenureWL") && version != FORMAT;
    let is_refused = matches!(found, Err(Fault::Format { .. }));
    assert!(!is_other || is_refused, "format {version} was not refused");
}

/// What a good header says is what its bytes say.
fn is_read_as_written(image: &Image, bytes: &[u8]) {
    let disk = ModelDisk::default();
    for (name, bytes) in image {
        disk.put(name, bytes.clone());
    }
    let inspection =
        inspect(&disk, Beginning::First, |_| {}).expect("what was opened can be looked at");
    let header = inspection.segments[0].header;
    let log_id = u128::from(long(bytes, 16)) | u128::from(long(bytes, 24)) << 64;
    assert_eq!(header.log_id, log_id);
    assert_eq!((header.number, header.first_lsn.0), (long(bytes, 32), long(bytes, 40)));
    assert_eq!((header.salt, header.file_bytes), (long(bytes, 80), long(bytes, 88)));
    assert_eq!(header.before.0, bytes[48..80]);
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let mut long = [0; 8];
    long.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(long)
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let Some((_, sound)) = reference(0).image.first_key_value() else { return Vec::new() };
    let sound = &sound[..HEADER_BYTES];
    let with = |seals: u8, at: usize, value: u64| {
        let mut seed = vec![seals];
        seed.extend_from_slice(sound);
        seed[1 + at..9 + at].copy_from_slice(&value.to_le_bytes());
        seed
    };
    let mut seeds: Vec<_> = (0..4).map(|seals| with(seals, 32, 1)).collect();
    for at in [8, 32, 40, 88] {
        for value in [0, 1, 2, 8_192, 14_336, u64::MAX - 1, u64::MAX, 1 << 63] {
            seeds.push(with(0, at, value));
        }
    }
    seeds
}

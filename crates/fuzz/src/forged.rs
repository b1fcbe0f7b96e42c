//! A log is damaged and then given checksums that fit. What nobody ever wrote is refused or makes
//! sense: sizes, counts, kinds and numbers are believed only as far as they go together.

use tenure_wal::forge;

use crate::damage::damage;
use crate::input::Input;
use crate::opened::open;
use crate::reference::reference;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input(bytes);
    let reference = reference(input.byte());
    let seals = input.byte();
    let mut image = reference.image.clone();
    damage(&mut image, &reference.landmarks, &mut input);
    let mut before = None;
    for segment in image.values_mut() {
        if seals & 1 == 0 {
            forge::reseal_headers(segment, before.filter(|_| seals & 2 == 0));
        }
        if seals & 4 == 0 {
            before = forge::reseal_frames(segment);
        }
    }
    let anchor = reference.frames[usize::from(seals / 16) % reference.frames.len()].anchor;
    let _ = open(&image, (seals & 8 != 0).then_some(anchor));
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    // The fields of a frame's header: kind, size, first LSN, records, epoch, durable, time.
    let fields = [8_u8, 12, 16, 24, 32, 40, 48].map(|at| at + 8);
    let mut seeds = vec![vec![0, 0], vec![1, 2], vec![2, 4]];
    for (nth, at) in fields.into_iter().enumerate() {
        for value in [[0; 8], [255; 8], [1, 0, 0, 0, 0, 0, 0, 0]] {
            let frame = 4 * (6 + nth as u8) + 1;
            let mut seed = vec![nth as u8, 0, 1, frame, at, 7, 0];
            seed.extend_from_slice(&value);
            seeds.push(seed);
        }
    }
    seeds
}

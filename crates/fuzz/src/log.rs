//! A sound log is damaged, and opened. It is refused, or what is opened is a beginning of what was
//! written, ends where a torn end may be, and nothing that is still whole says that more was
//! durable.

use crate::damage::{Image, damage};
use crate::input::Input;
use crate::opened::{Found, open};
use crate::reference::{Lies, Reference, reference};

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input(bytes);
    let reference = reference(input.byte());
    // Every second time a snapshot vouches for a part of the log.
    let anchored = input.byte();
    let anchor = (anchored % 2 == 1)
        .then(|| reference.frames[usize::from(anchored / 2) % reference.frames.len()].anchor);
    let mut image = reference.image.clone();
    damage(&mut image, &reference.landmarks, &mut input);
    let from = anchor.map_or(0, |anchor| anchor.lsn.0 as usize);
    match open(&image, anchor) {
        Ok(found) => reference.check_opened(&image, &found, from),
        Err(fault) => {
            assert!(image != reference.image, "a sound log is refused: {fault}");
            let torn = anchor.is_none() && reference.only_last_frame_changed(&image);
            assert!(!torn, "a torn end is refused: {fault}");
        }
    }
}

impl Reference {
    fn check_opened(&self, image: &Image, found: &Found, from: usize) {
        let last = found.last_lsn.0 as usize;
        assert!(last >= from, "a snapshot goes up to {from} and the log up to {last}");
        let written = self.records.get(from..last).expect("more is there than was written");
        assert!(found.records == written, "records changed");
        let ends = |frame: &Lies| frame.end_lsn == last as u64 + 1;
        assert!(last == from || self.frames.iter().any(ends), "half a frame is there");
        let witness =
            self.frames.iter().find(|f| f.durable > last as u64 && f.is_whole(self, image));
        assert!(witness.is_none(), "{last} is the last, but this is still there: {witness:?}");
        if *image == self.image {
            // With a snapshot the older segments, and what they tell, are passed over.
            assert!(found.notes == self.notes || from > 0, "{:?}", found.notes);
            assert_eq!(last, self.records.len(), "a sound log");
        } else if self.only_last_frame_changed(image) {
            let torn = self.frames.last().map_or(0, |frame| frame.first_lsn - 1);
            assert_eq!(last as u64, torn.max(from as u64), "more is lost than was torn");
        }
        if last < self.records.len() && !self.is_shorter(image) {
            assert!(!found.notes.is_empty(), "nobody says that {last} is not the end");
        }
    }

    /// Whether nothing is left to tell that there was more: a file is gone, or was overwritten with
    /// zeros up to its end.
    fn is_shorter(&self, image: &Image) -> bool {
        let zeros = |frame: &Lies| {
            // What was added behind the end of a file belongs to nobody.
            let until = self.image[&frame.file].len();
            let bytes = image.get(&frame.file).and_then(|bytes| bytes.get(frame.from..until));
            bytes.is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0))
        };
        self.frames.iter().any(zeros) || self.image.keys().any(|file| !image.contains_key(file))
    }

    fn only_last_frame_changed(&self, image: &Image) -> bool {
        let Some(last) = self.frames.last() else { return false };
        if image.len() != self.image.len() || *image == self.image {
            return false;
        }
        self.image.iter().all(|(file, before)| {
            let Some(after) = image.get(file).filter(|after| after.len() == before.len()) else {
                return false;
            };
            match *file == last.file {
                false => before == after,
                true => {
                    before[..last.from] == after[..last.from]
                        && before[last.until..] == after[last.until..]
                }
            }
        })
    }
}

impl Lies {
    /// Whether it and a header of its segment are as they were written.
    fn is_whole(&self, reference: &Reference, image: &Image) -> bool {
        let Some(after) = image.get(&self.file) else { return false };
        let before = &reference.image[&self.file];
        let same = |from: usize, until: usize| before.get(from..until) == after.get(from..until);
        same(self.from, self.until) && (same(0, 4_096) || same(4_096, 8_192))
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for kind in 0..12 {
        for (nth, anchored) in [(0, 0), (1, 0), (2, 9)] {
            // Once near a frame, once anywhere.
            seeds.push(vec![nth, anchored, kind, 4 * 9 + 1, 20, 30, 40, 50, 60]);
            seeds.push(vec![nth, anchored, kind + 12, 4, 120, 130, 140, 150, 160]);
        }
    }
    seeds
}

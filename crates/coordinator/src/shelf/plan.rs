//! Which chunks of the shelf's file are free. A string need not lie in one piece, so every free
//! chunk fits, and the file never holds more than its fullest moment did.

use std::collections::BTreeMap;

/// Bytes of a chunk. What is kept is over 64 KiB, so the unused end of its last chunk is less than a
/// quarter of it.
pub(super) const CHUNK_BYTES: u64 = 16 << 10;
/// Free chunks that the disk has blocks for are given back to it once they are more than what is in
/// use and this many: 64 MiB.
pub(super) const IDLE_CHUNKS: u32 = (64 << 20) / CHUNK_BYTES as u32;

/// Chunks side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    first: u32,
    count: u32,
}

impl Stretch {
    /// Where it begins in the file.
    pub(super) fn offset(self) -> u64 {
        u64::from(self.first) * CHUNK_BYTES
    }

    /// How long it is.
    pub(super) fn bytes(self) -> u64 {
        u64::from(self.count) * CHUNK_BYTES
    }
}

/// Which chunks are free.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// One past the last chunk that was ever in use.
    end: u32,
    /// Chunks in use.
    used: u32,
    /// Free, and the disk has blocks for them: to use them again costs it nothing.
    idle: Free,
    /// Free, and given back to the disk.
    hollow: Free,
    /// Chunks that are on their way from one to the other.
    leaving: u32,
}

/// So many chunks hold so many bytes.
pub(super) fn chunks_for(bytes: usize) -> Option<u32> {
    u32::try_from((bytes as u64).div_ceil(CHUNK_BYTES)).ok()
}

impl Plan {
    /// Of so many chunks, how many the disk would have to find room for.
    pub(super) fn fresh(&self, chunks: u32) -> u32 {
        chunks.saturating_sub(self.idle.chunks)
    }

    /// Bytes in use, and bytes that the disk has blocks for.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let held = u64::from(self.used) + u64::from(self.idle.chunks) + u64::from(self.leaving);
        (u64::from(self.used) * CHUNK_BYTES, held * CHUNK_BYTES)
    }

    /// Takes chunks: first those that cost the disk nothing, and the file grows last. Nothing if a
    /// file cannot have so many.
    pub(super) fn take(&mut self, chunks: u32) -> Option<Vec<Stretch>> {
        let grown = chunks.saturating_sub(self.idle.chunks + self.hollow.chunks);
        let end = self.end.checked_add(grown)?;
        let (mut taken, mut left) = (Vec::new(), chunks);
        for free in [&mut self.idle, &mut self.hollow] {
            while left > 0
                && let Some(stretch) = free.take_lowest(left)
            {
                left -= stretch.count;
                taken.push(stretch);
            }
        }
        if left > 0 {
            taken.push(Stretch { first: self.end, count: left });
            self.end = end;
        }
        self.used += chunks;
        Some(taken)
    }

    /// Takes chunks back.
    pub(super) fn give_back(&mut self, stretches: &[Stretch]) {
        for stretch in stretches {
            self.used -= stretch.count;
            self.idle.add(*stretch);
        }
    }

    /// All idle chunks, if they are too many; until [`Plan::emptied`] nobody else gets them.
    pub(super) fn take_idle(&mut self) -> Option<Vec<Stretch>> {
        if self.leaving > 0 || self.idle.chunks <= self.used.saturating_add(IDLE_CHUNKS) {
            return None;
        }
        self.leaving = self.idle.chunks;
        Some(self.idle.take_all())
    }

    /// What [`Plan::take_idle`] took is free again.
    pub(super) fn emptied(&mut self, stretches: &[Stretch], now: Emptied) {
        let free = match now {
            Emptied::Hollow => &mut self.hollow,
            Emptied::AsBefore => &mut self.idle,
        };
        stretches.iter().for_each(|stretch| free.add(*stretch));
        self.leaving = 0;
    }
}

/// What became of chunks that were to go back to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emptied {
    /// The disk has them.
    Hollow,
    /// It did not take them.
    AsBefore,
}

/// Free chunks: where a stretch begins, and how long it is. No two of them touch.
#[derive(Debug, Default)]
struct Free {
    stretches: BTreeMap<u32, u32>,
    chunks: u32,
}

impl Free {
    fn add(&mut self, stretch: Stretch) {
        let Stretch { mut first, mut count } = stretch;
        self.chunks += count;
        if let Some(after) = self.stretches.remove(&(first + count)) {
            count += after;
        }
        if let Some((&before, &long)) = self.stretches.range(..first).next_back()
            && before + long == first
        {
            self.stretches.remove(&before);
            (first, count) = (before, long + count);
        }
        self.stretches.insert(first, count);
    }

    /// The lowest stretch, or its beginning if it is longer.
    fn take_lowest(&mut self, most: u32) -> Option<Stretch> {
        let (first, long) = self.stretches.pop_first()?;
        let count = long.min(most);
        if long > count {
            self.stretches.insert(first + count, long - count);
        }
        self.chunks -= count;
        Some(Stretch { first, count })
    }

    fn take_all(&mut self) -> Vec<Stretch> {
        self.chunks = 0;
        let stretches = std::mem::take(&mut self.stretches);
        stretches.into_iter().map(|(first, count)| Stretch { first, count }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same numbers on every run, and no two alike for long.
    fn numbers() -> impl Iterator<Item = u32> {
        let mut number = 1_u64;
        std::iter::repeat_with(move || {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (number >> 33) as u32
        })
    }

    #[test]
    fn a_chunk_never_has_two_owners_and_none_is_lost() {
        let mut plan = Plan::default();
        let mut held: Vec<Vec<Stretch>> = Vec::new();
        let mut fullest = 0;
        for number in numbers().take(20_000) {
            if number % 2 == 0 && !held.is_empty() {
                let freed = held.swap_remove(number as usize / 2 % held.len());
                plan.give_back(&freed);
            } else {
                held.push(plan.take(5 + number % 60).unwrap());
            }
            if number % 97 == 0
                && let Some(idle) = plan.take_idle()
            {
                plan.emptied(&idle, Emptied::Hollow);
            }
            fullest = fullest.max(plan.used);
            assert_eq!(plan.used + plan.idle.chunks + plan.hollow.chunks, plan.end);
            assert!(plan.end <= fullest, "the file grew though there was room in it");
        }
        let mut owned: Vec<_> = held.concat();
        for free in [&plan.idle, &plan.hollow] {
            owned.extend(free.stretches.iter().map(|(&first, &count)| Stretch { first, count }));
        }
        owned.sort_by_key(|stretch| stretch.first);
        let mut next = 0;
        for stretch in owned {
            assert_eq!(stretch.first, next, "a chunk is lost, or has two owners");
            next += stretch.count;
        }
        assert_eq!(next, plan.end);
    }

    #[test]
    fn stretches_that_touch_become_one() {
        let mut plan = Plan::default();
        let each: Vec<_> = (0..10).map(|_| plan.take(3).unwrap()).collect();
        for at in [1, 3, 2, 9, 8, 0] {
            plan.give_back(&each[at]);
        }
        let stretches: Vec<_> = plan.idle.stretches.into_iter().collect();
        assert_eq!(stretches, [(0, 12), (24, 6)]);
    }

    #[test]
    fn what_costs_the_disk_nothing_is_used_first() {
        let mut plan = Plan::default();
        let low = plan.take(2 * IDLE_CHUNKS).unwrap();
        let high = plan.take(4).unwrap();
        plan.give_back(&low);
        let idle = plan.take_idle().expect("that is too much");
        assert_eq!(plan.take_idle(), None, "it is on its way already");
        plan.emptied(&idle, Emptied::Hollow);
        plan.give_back(&high);
        assert_eq!((plan.fresh(4), plan.fresh(5)), (0, 1));
        assert_eq!(plan.take(4).unwrap(), high);
        assert_eq!(plan.bytes(), (4 * CHUNK_BYTES, 4 * CHUNK_BYTES));
    }

    #[test]
    fn a_file_that_is_as_long_as_can_be_takes_no_more() {
        let mut plan = Plan { end: u32::MAX - 1, used: u32::MAX - 1, ..Plan::default() };
        assert_eq!(plan.take(2), None);
        assert_eq!(plan.used, u32::MAX - 1);
    }
}

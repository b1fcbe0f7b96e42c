//! Which ids were seen: a bit for each, because there may be very many, and most are neighbors.

use std::collections::BTreeMap;

const PAGE_BITS: u64 = 1 << 12;

/// A set of ids.
#[derive(Debug, Default)]
pub(super) struct Seen(BTreeMap<u64, Box<[u64; (PAGE_BITS / 64) as usize]>>);

impl Seen {
    pub(super) fn has(&self, id: u64) -> bool {
        let page = self.0.get(&(id / PAGE_BITS));
        page.is_some_and(|page| page[word(id)] & bit(id) != 0)
    }

    pub(super) fn add(&mut self, id: u64) {
        let page = self.0.entry(id / PAGE_BITS);
        page.or_insert_with(|| Box::new([0; (PAGE_BITS / 64) as usize]))[word(id)] |= bit(id);
    }
}

fn word(id: u64) -> usize {
    (id % PAGE_BITS / 64) as usize
}

fn bit(id: u64) -> u64 {
    1 << (id % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_was_seen_and_nothing_else() {
        let mut seen = Seen::default();
        let ids = [1, 63, 64, 4_095, 4_096, 1 << 52, u64::MAX];
        ids.iter().for_each(|id| seen.add(*id));
        assert!(ids.iter().all(|id| seen.has(*id)));
        for other in [0, 2, 62, 65, 4_094, 4_097, (1 << 52) + 1, u64::MAX - 1] {
            assert!(!seen.has(other), "{other}");
        }
    }
}

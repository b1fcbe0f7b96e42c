//! A compressed set of ids that is cheap to fill and empty one by one.

use roaring::RoaringBitmap;

/// Ids by their upper halves. (The library's own set of 64-bit numbers drops and makes its parts
/// again whenever a list goes empty, which a queue that keeps up does with every task.)
#[derive(Clone, Debug, Default)]
pub(crate) struct IdSet {
    /// Ascending. The last one stays even when it is empty.
    parts: Vec<(u32, RoaringBitmap)>,
}

impl IdSet {
    pub(crate) fn insert(&mut self, id: u64) {
        let (high, low) = halves(id);
        let at = self.find(high).unwrap_or_else(|at| {
            self.parts.insert(at, (high, RoaringBitmap::new()));
            at
        });
        self.parts[at].1.insert(low);
    }

    pub(crate) fn remove(&mut self, id: u64) {
        let (high, low) = halves(id);
        let Ok(at) = self.find(high) else { return };
        self.parts[at].1.remove(low);
        if at + 1 < self.parts.len() && self.parts[at].1.is_empty() {
            self.parts.remove(at);
        }
    }

    /// The smallest id.
    pub(crate) fn first(&self) -> Option<u64> {
        self.parts.iter().find_map(|(high, part)| part.min().map(|low| joined(*high, low)))
    }

    /// The ids up to and including `newest`, from the largest down.
    pub(crate) fn down_from(&self, newest: u64) -> impl Iterator<Item = u64> {
        let (top, low) = halves(newest);
        let parts = self.parts.iter().rev().skip_while(move |(high, _)| *high > top);
        parts.flat_map(move |(high, part)| {
            let mut ids = part.iter();
            if *high == top {
                ids.advance_back_to(low);
            }
            ids.rev().map(|low| joined(*high, low))
        })
    }

    fn find(&self, high: u32) -> Result<usize, usize> {
        match self.parts.last() {
            Some((last, _)) if *last == high => Ok(self.parts.len() - 1),
            _ => self.parts.binary_search_by_key(&high, |(high, _)| *high),
        }
    }
}

impl PartialEq for IdSet {
    fn eq(&self, other: &Self) -> bool {
        fn filled(set: &IdSet) -> impl Iterator<Item = &(u32, RoaringBitmap)> {
            set.parts.iter().filter(|(_, part)| !part.is_empty())
        }
        filled(self).eq(filled(other))
    }
}

fn halves(id: u64) -> (u32, u32) {
    ((id >> 32) as u32, (id & u64::from(u32::MAX)) as u32)
}

fn joined(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_out_from_the_largest_down() {
        let mut set = IdSet::default();
        let ids = [1, 7, 1 << 32, (1 << 32) + 5, 1 << 50];
        ids.iter().for_each(|id| set.insert(*id));
        assert_eq!(set.first(), Some(1));
        assert_eq!(
            set.down_from(u64::MAX).collect::<Vec<_>>(),
            [1 << 50, (1 << 32) + 5, 1 << 32, 7, 1]
        );
        assert_eq!(set.down_from((1 << 32) + 4).collect::<Vec<_>>(), [1 << 32, 7, 1]);
        assert_eq!(set.down_from(6).collect::<Vec<_>>(), [1]);
        assert_eq!(set.down_from(0).next(), None);
    }

    #[test]
    fn an_emptied_set_equals_an_empty_one() {
        let mut set = IdSet::default();
        set.insert(3);
        set.insert(1 << 40);
        assert_ne!(set, IdSet::default());
        set.remove(3);
        set.remove(1 << 40);
        set.remove(1 << 40);
        assert_eq!(set, IdSet::default());
        assert_eq!(set.first(), None);
    }
}

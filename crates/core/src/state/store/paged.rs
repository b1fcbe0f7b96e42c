//! A map from dense ids to slots of fixed size, in shared pages.
//!
//! A clone shares every page and costs next to nothing; the first write to a shared page copies
//! that page. So a snapshot, a hash or a long list can work on a clone while the writer goes on.
//! Ids need not be dense for ever: what is empty takes no page, and a jump of the counter costs
//! nothing.

use std::sync::Arc;

/// Pages in one directory: two levels let ids jump far ahead at no cost.
const DIR_PAGES: usize = 1024;

/// Slots by id, `N` to a page.
#[derive(Clone, Debug)]
pub(crate) struct Paged<T, const N: usize> {
    /// By number, ascending. Each covers `DIR_PAGES * N` ids.
    dirs: Vec<(u64, Box<[Page<T>]>)>,
    len: u64,
    /// Pages that take room.
    pages: usize,
    /// The highest id so far. Its page stays even when it is empty: a queue that is drained as
    /// fast as it fills would otherwise make and drop a page with every task.
    newest: u64,
}

#[derive(Clone, Debug)]
struct Page<T> {
    slots: Option<Arc<[Option<T>]>>,
    used: u32,
}

impl<T> Page<T> {
    /// The taken slots; the page begins with the id `first`.
    fn iter(&self, first: u64) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        let slots = self.slots.as_deref().unwrap_or_default();
        let slots = slots.iter().enumerate();
        slots.filter_map(move |(at, slot)| slot.as_ref().map(|value| (first + at as u64, value)))
    }
}

impl<T, const N: usize> Default for Paged<T, N> {
    fn default() -> Self {
        Self { dirs: Vec::new(), len: 0, pages: 0, newest: 0 }
    }
}

impl<T: Clone, const N: usize> Paged<T, N> {
    const DIR_SLOTS: u64 = (DIR_PAGES * N) as u64;

    /// How many slots are taken.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<&T> {
        let dir = self.find_dir(id / Self::DIR_SLOTS).ok()?;
        let page = self.dirs[dir].1[Self::page_of(id)].slots.as_deref()?;
        page[Self::slot_of(id)].as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let dir = self.find_dir(id / Self::DIR_SLOTS).ok()?;
        let page = &mut self.dirs[dir].1[Self::page_of(id)];
        Arc::make_mut(page.slots.as_mut()?)[Self::slot_of(id)].as_mut()
    }

    /// Fills a slot, which must be empty.
    pub(crate) fn insert(&mut self, id: u64, value: T) {
        let number = id / Self::DIR_SLOTS;
        let dir = self.find_dir(number).unwrap_or_else(|at| {
            let empty = Page { slots: None, used: 0 };
            self.dirs.insert(at, (number, vec![empty; DIR_PAGES].into_boxed_slice()));
            at
        });
        let page = &mut self.dirs[dir].1[Self::page_of(id)];
        self.pages += usize::from(page.slots.is_none());
        let slots = page.slots.get_or_insert_with(|| (0..N).map(|_| None).collect());
        let slot = &mut Arc::make_mut(slots)[Self::slot_of(id)];
        assert!(slot.is_none(), "an id is given once");
        *slot = Some(value);
        page.used += 1;
        self.len += 1;
        if id > self.newest {
            let before = std::mem::replace(&mut self.newest, id);
            if !Self::same_page(before, id) {
                self.drop_page_if_empty(before);
            }
        }
    }

    /// Empties a slot; a page or directory left empty goes with it.
    pub(crate) fn remove(&mut self, id: u64) -> Option<T> {
        let dir = self.find_dir(id / Self::DIR_SLOTS).ok()?;
        let page = &mut self.dirs[dir].1[Self::page_of(id)];
        let removed = Arc::make_mut(page.slots.as_mut()?)[Self::slot_of(id)].take()?;
        page.used -= 1;
        self.len -= 1;
        if page.used == 0 && !Self::same_page(id, self.newest) {
            self.drop_page_if_empty(id);
        }
        Some(removed)
    }

    /// All taken slots, by id.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        self.dirs.iter().flat_map(|(number, pages)| {
            let first = number * Self::DIR_SLOTS;
            pages.iter().enumerate().flat_map(move |(at, page)| page.iter(first + (at * N) as u64))
        })
    }

    /// The taken slots from this id on, by id.
    pub(crate) fn up_from(&self, oldest: u64) -> impl Iterator<Item = (u64, &T)> {
        let dirs =
            self.dirs.iter().skip_while(move |(number, _)| *number < oldest / Self::DIR_SLOTS);
        let pages = dirs.flat_map(|(number, pages)| {
            let first = number * Self::DIR_SLOTS;
            pages.iter().enumerate().map(move |(at, page)| (first + (at * N) as u64, page))
        });
        let pages = pages.skip_while(move |(first, _)| first + N as u64 <= oldest);
        pages.flat_map(|(first, page)| page.iter(first)).skip_while(move |(id, _)| *id < oldest)
    }

    /// The taken slots up to and including `newest`, from the highest id down.
    pub(crate) fn down_from(&self, newest: u64) -> impl Iterator<Item = (u64, &T)> {
        let dirs = self.dirs.iter().rev();
        let pages = dirs.flat_map(|(number, pages)| {
            let first = number * Self::DIR_SLOTS;
            pages.iter().enumerate().rev().map(move |(at, page)| (first + (at * N) as u64, page))
        });
        let pages = pages.skip_while(move |(first, _)| *first > newest);
        pages
            .flat_map(|(first, page)| page.iter(first).rev())
            .skip_while(move |(id, _)| *id > newest)
    }

    /// Bytes of all pages and directories. O(1).
    pub(crate) fn bytes(&self) -> u64 {
        let pages = self.pages * N * size_of::<Option<T>>();
        (pages + self.dirs.len() * DIR_PAGES * size_of::<Page<T>>()) as u64
    }

    /// Pages that take room, counted one by one.
    #[cfg(test)]
    pub(crate) fn pages(&self) -> usize {
        let pages = self.dirs.iter().flat_map(|(_, pages)| pages.iter());
        let count = pages.filter(|page| page.slots.is_some()).count();
        assert_eq!(count, self.pages, "the count of pages is kept up");
        count
    }

    fn drop_page_if_empty(&mut self, id: u64) {
        let Ok(dir) = self.find_dir(id / Self::DIR_SLOTS) else { return };
        let pages = &mut self.dirs[dir].1;
        let page = &mut pages[Self::page_of(id)];
        if page.used > 0 {
            return;
        }
        self.pages -= usize::from(page.slots.take().is_some());
        if pages.iter().all(|page| page.slots.is_none()) {
            self.dirs.remove(dir);
        }
    }

    fn same_page(a: u64, b: u64) -> bool {
        a / N as u64 == b / N as u64
    }

    #[inline]
    fn find_dir(&self, number: u64) -> Result<usize, usize> {
        // Work happens at the young end far more often than anywhere else.
        match self.dirs.last() {
            Some((last, _)) if *last == number => Ok(self.dirs.len() - 1),
            Some((last, _)) if *last < number => Err(self.dirs.len()),
            _ => self.dirs.binary_search_by_key(&number, |(number, _)| *number),
        }
    }

    fn page_of(id: u64) -> usize {
        (id % Self::DIR_SLOTS) as usize / N
    }

    fn slot_of(id: u64) -> usize {
        id as usize % N
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Small = Paged<u64, 4>;

    #[test]
    fn what_goes_in_comes_out_in_order_of_ids() {
        let mut paged = Small::default();
        let far = 1 << 50;
        for id in [far, 1, 9, 5_000, 2] {
            paged.insert(id, id * 10);
        }
        assert_eq!(paged.len(), 5);
        let ids: Vec<_> = paged.iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [1, 2, 9, 5_000, far]);
        assert_eq!(paged.iter().next_back(), Some((far, &(far * 10))));
        assert_eq!(paged.get(9), Some(&90));
        for from in [0, 1, 2, 3, 9, 10, 4_999, 5_000, 5_001, far, far + 1] {
            let up: Vec<_> = paged.up_from(from).map(|(id, _)| id).collect();
            let expected: Vec<_> = ids.iter().copied().filter(|id| *id >= from).collect();
            assert_eq!(up, expected, "from {from}");
        }
        assert_eq!((paged.get(3), paged.get(far + 1), paged.get(1 << 40)), (None, None, None));
    }

    #[test]
    fn a_clone_does_not_see_later_writes() {
        let mut paged = Small::default();
        (1..100).for_each(|id| paged.insert(id, id));
        let view = paged.clone();
        *paged.get_mut(7).unwrap() = 700;
        paged.remove(8);
        paged.insert(100, 100);
        assert_eq!((view.get(7), view.get(8), view.get(100)), (Some(&7), Some(&8), None));
        assert_eq!((paged.get(7), paged.get(8), paged.get(100)), (Some(&700), None, Some(&100)));
    }

    #[test]
    fn empty_pages_are_given_back_but_for_the_newest() {
        let pages = Small::pages;
        let mut paged = Small::default();
        (1..10_000).for_each(|id| paged.insert(id, id));
        (1..10_000).for_each(|id| assert_eq!(paged.remove(id), Some(id)));
        assert_eq!((paged.len(), pages(&paged), paged.dirs.len()), (0, 1, 1));
        assert_eq!(paged.remove(1), None);
        paged.insert(1 << 40, 0);
        assert_eq!((paged.len(), pages(&paged), paged.dirs.len()), (1, 1, 1));
    }
}

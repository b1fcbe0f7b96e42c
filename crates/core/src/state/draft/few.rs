//! What a command touched of one kind, by its id: nearly always a handful, now and then many
//! thousands. A handful lies side by side and is looked through; a table finds the rest.

use std::hash::Hash;

use hashbrown::HashMap;

type FixedState = foldhash::fast::FixedState;

/// Past this many a table finds them; below, a look at each is faster.
const SCAN_MAX: usize = 8;

/// Touched things, in the order in which they were touched.
#[derive(Debug)]
pub(super) struct Few<K, V> {
    items: Vec<(K, V)>,
    /// Where each is, once there are many.
    places: HashMap<K, usize, FixedState>,
}

impl<K, V> Default for Few<K, V> {
    fn default() -> Self {
        Self { items: Vec::new(), places: HashMap::with_hasher(FixedState::default()) }
    }
}

impl<K: Copy + Eq + Hash, V> Few<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.place(key).map(|at| &self.items[at].1)
    }

    /// The thing itself; `make` gives it if it was not touched before.
    pub(super) fn touch(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = self.place(&key).unwrap_or_else(|| self.add(key, make()));
        &mut self.items[at].1
    }

    /// Adds what is new.
    pub(super) fn insert(&mut self, key: K, value: V) {
        match self.place(&key) {
            Some(at) => self.items[at].1 = value,
            None => {
                self.add(key, value);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.items.iter().map(|(key, value)| (key, value))
    }

    fn place(&self, key: &K) -> Option<usize> {
        if self.items.len() > SCAN_MAX {
            return self.places.get(key).copied();
        }
        self.items.iter().position(|(there, _)| there == key)
    }

    fn add(&mut self, key: K, value: V) -> usize {
        let at = self.items.len();
        self.items.push((key, value));
        if at == SCAN_MAX {
            let keys = self.items.iter().map(|(key, _)| *key);
            self.places.extend(keys.zip(0..));
        } else if at > SCAN_MAX {
            self.places.insert(key, at);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found_alike() {
        let mut few = Few::default();
        for key in 0..50_u32 {
            assert_eq!(few.get(&key), None);
            few.insert(key, key);
            *few.touch(key, || unreachable!("it was touched before")) += 1;
            assert!((0..=key).all(|key| few.get(&key) == Some(&(key + 1))));
        }
        few.insert(7, 0);
        assert_eq!(few.iter().count(), 50);
        assert_eq!(few.get(&7), Some(&0));
    }
}

//! Tables that find things by their texts without keeping the texts twice. Their order is never
//! looked at, so they may hash with whatever seed the process was given.

use std::hash::{BuildHasher, Hash};

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use hashbrown::HashTable;

/// A set of references, found by the text they stand for.
#[derive(Clone, Debug)]
pub(crate) struct Names<R> {
    table: HashTable<(u64, R)>,
    hasher: SeedableRandomState,
}

impl<R: Copy + PartialEq> Names<R> {
    /// `seed` keeps strangers from choosing texts that collide.
    pub(crate) fn new(seed: u64) -> Self {
        let shared = SharedSeed::global_fixed();
        Self { table: HashTable::new(), hasher: SeedableRandomState::with_seed(seed, shared) }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// The reference for which `same` holds, among those with the text's hash.
    pub(crate) fn find(&self, text: impl Hash, same: impl Fn(R) -> bool) -> Option<R> {
        let hash = self.hasher.hash_one(text);
        self.table.find(hash, |(there, at)| *there == hash && same(*at)).map(|(_, at)| *at)
    }

    /// Adds one that is not there.
    pub(crate) fn insert(&mut self, text: impl Hash, at: R) {
        let hash = self.hasher.hash_one(text);
        self.table.insert_unique(hash, (hash, at), |(hash, _)| *hash);
    }

    pub(crate) fn remove(&mut self, text: impl Hash, at: R) {
        let hash = self.hasher.hash_one(text);
        if let Ok(found) = self.table.find_entry(hash, |(_, there)| *there == at) {
            found.remove();
        }
    }
}

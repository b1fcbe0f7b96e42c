//! A list that grows at its end, in shared chunks: a clone copies a word for each chunk, and the
//! first write to a shared chunk copies that chunk. A short list takes no more room than it needs.

use std::sync::Arc;

/// Items to a chunk.
const CHUNK_ITEMS: usize = 256;

/// Items by their place.
#[derive(Clone, Debug)]
pub(crate) struct Chunks<T> {
    chunks: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Clone> Chunks<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK_ITEMS)?.get(at % CHUNK_ITEMS)
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        Arc::make_mut(self.chunks.get_mut(at / CHUNK_ITEMS)?).get_mut(at % CHUNK_ITEMS)
    }

    pub(crate) fn push(&mut self, item: T) {
        if self.len.is_multiple_of(CHUNK_ITEMS) {
            self.chunks.push(Arc::default());
        }
        let last = self.chunks.last_mut().expect("a chunk was made if there was none");
        Arc::make_mut(last).push(item);
        self.len += 1;
    }

    /// Drops so many chunks at the end.
    pub(crate) fn shorten(&mut self, chunks: usize) {
        self.chunks.truncate(self.chunks.len().saturating_sub(chunks));
        self.len = self.len.min(self.chunks.len() * CHUNK_ITEMS);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_does_not_see_later_writes() {
        let mut chunks = Chunks::default();
        (0..1_000).for_each(|n| chunks.push(n));
        let view = chunks.clone();
        *chunks.get_mut(700).unwrap() = 0;
        chunks.push(1_000);
        assert_eq!((view.get(700), view.len(), view.get(1_000)), (Some(&700), 1_000, None));
        assert_eq!((chunks.get(700), chunks.len()), (Some(&0), 1_001));
        assert!(view.iter().copied().eq(0..1_000));
        chunks.shorten(1);
        assert_eq!((chunks.len(), chunks.get(767), chunks.get(768)), (768, Some(&767), None));
        chunks.shorten(9);
        assert_eq!(chunks.len(), 0);
    }
}

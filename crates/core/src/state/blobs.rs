//! Payloads and outputs, in append-only blocks.
//!
//! A block is filled from front to back and never changed after that, so views share it (and one
//! that is still being filled is copied once for each view). What is
//! freed leaves a hole. Blocks whose tasks end together go together; only when holes add up does
//! a block that is mostly holes get emptied, by moving the rest of it.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::id::TaskId;

/// Bytes of an ordinary block; a larger blob gets a block of its own.
const BLOCK_BYTES: usize = 256 << 10;
/// In front of each blob: its length and whose it is.
const HEADER_BYTES: usize = 12;
/// A sealed block is worth emptying when less than this part of it is alive,
const SPARSE_PART: usize = 4;
/// and when all blocks together hold this much more than twice what is alive.
const HOLES_BYTES_MAX: usize = 16 << 20;

/// Where a blob is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlobRef(u64);

impl BlobRef {
    /// There is no blob: it would be empty.
    pub(crate) const NONE: Self = Self(u64::MAX);

    fn new(block: usize, offset: usize) -> Self {
        Self((block as u64) << 32 | offset as u64)
    }

    fn block(self) -> usize {
        (self.0 >> 32) as usize
    }

    fn offset(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }
}

impl std::fmt::Debug for BlobRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::NONE => f.write_str("-"),
            blob => write!(f, "{}+{}", blob.block(), blob.offset()),
        }
    }
}

/// Which of a task's two blobs it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlobKind {
    Payload,
    Output,
}

/// Bytes that stay readable whatever happens to the state.
#[derive(Clone, Debug)]
pub struct SharedBytes {
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Blobs {
    blocks: Vec<Option<Block>>,
    /// Empty places in `blocks`.
    free: Vec<usize>,
    /// The block that is being filled.
    open: Option<usize>,
    /// Bytes of all blobs, and of all blocks.
    live_bytes: usize,
    held_bytes: usize,
}

#[derive(Clone, Debug)]
struct Block {
    bytes: Arc<Vec<u8>>,
    live_bytes: usize,
}

impl Blobs {
    /// Keeps the bytes; an empty blob takes no room.
    pub(crate) fn put(&mut self, owner: TaskId, kind: BlobKind, bytes: &[u8]) -> BlobRef {
        if bytes.is_empty() {
            return BlobRef::NONE;
        }
        let size = HEADER_BYTES + bytes.len();
        let at = self.block_with_room(size);
        let block = self.blocks[at].as_mut().expect("a block with room exists");
        let room = Arc::get_mut(&mut block.bytes).expect("a block with room is not shared");
        let offset = room.len();
        room.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        room.extend_from_slice(&owner_word(owner, kind).to_le_bytes());
        room.extend_from_slice(bytes);
        block.live_bytes += size;
        self.live_bytes += size;
        self.held_bytes += size;
        BlobRef::new(at, offset)
    }

    /// The bytes of a blob that is there; nothing for no blob.
    pub(crate) fn get(&self, blob: BlobRef) -> &[u8] {
        match self.find(blob) {
            Some((block, range)) => &block.bytes[range],
            None => &[],
        }
    }

    /// The same bytes, for keeping. From the block that is being filled they are copied: whoever
    /// holds that block makes the next blob copy all of it.
    pub(crate) fn share(&self, blob: BlobRef) -> SharedBytes {
        let Some((block, range)) = self.find(blob) else {
            return SharedBytes { bytes: Arc::default(), range: 0..0 };
        };
        if self.open != Some(blob.block()) {
            return SharedBytes { bytes: Arc::clone(&block.bytes), range };
        }
        let copy = block.bytes[range].to_vec();
        SharedBytes { range: 0..copy.len(), bytes: Arc::new(copy) }
    }

    /// Whose blob it is.
    pub(crate) fn owner(&self, blob: BlobRef) -> Option<(TaskId, BlobKind)> {
        let (block, range) = self.find(blob)?;
        Some(read_header(&block.bytes[range.start - HEADER_BYTES..]).0)
    }

    /// Forgets a blob. Gives back the number of its block if that is now worth emptying.
    pub(crate) fn free(&mut self, blob: BlobRef) -> Option<usize> {
        let size = HEADER_BYTES + self.find(blob)?.1.len();
        let at = blob.block();
        let block = self.blocks[at].as_mut()?;
        block.live_bytes -= size;
        self.live_bytes -= size;
        if self.open == Some(at) {
            return None;
        }
        if block.live_bytes == 0 {
            self.drop_block(at);
            return None;
        }
        let is_sparse = block.live_bytes < block.bytes.len() / SPARSE_PART;
        let many_holes = self.held_bytes > 2 * self.live_bytes + HOLES_BYTES_MAX;
        (is_sparse && many_holes).then_some(at)
    }

    /// Every blob ever put into a block, with its owner at that time.
    pub(crate) fn in_block(&self, at: usize) -> Vec<(TaskId, BlobKind, BlobRef)> {
        let Some(block) = self.blocks.get(at).and_then(Option::as_ref) else { return Vec::new() };
        let mut found = Vec::new();
        let mut offset = 0;
        while offset < block.bytes.len() {
            let ((owner, kind), len) = read_header(&block.bytes[offset..]);
            found.push((owner, kind, BlobRef::new(at, offset)));
            offset += HEADER_BYTES + len;
        }
        found
    }

    /// Copies a blob to the open block and frees the old place.
    pub(crate) fn relocate(&mut self, owner: TaskId, kind: BlobKind, blob: BlobRef) -> BlobRef {
        let bytes = self.share(blob);
        let moved = self.put(owner, kind, &bytes);
        self.free(blob);
        moved
    }

    fn find(&self, blob: BlobRef) -> Option<(&Block, Range<usize>)> {
        let block = self.blocks.get(blob.block())?.as_ref()?;
        let start = blob.offset() + HEADER_BYTES;
        let (_, len) = read_header(&block.bytes[blob.offset()..]);
        Some((block, start..start + len))
    }

    fn block_with_room(&mut self, size: usize) -> usize {
        if size > BLOCK_BYTES {
            return self.add_block(size);
        }
        if let Some(at) = self.open
            && let Some(block) = &mut self.blocks[at]
        {
            if BLOCK_BYTES - block.bytes.len() >= size {
                // A view that shares the open block keeps it as it is, and a copy is filled on.
                if Arc::get_mut(&mut block.bytes).is_none() {
                    let mut copy = Vec::with_capacity(BLOCK_BYTES);
                    copy.extend_from_slice(&block.bytes);
                    block.bytes = Arc::new(copy);
                }
                return at;
            }
            if block.live_bytes == 0 {
                self.drop_block(at);
            }
        }
        let at = self.add_block(BLOCK_BYTES);
        self.open = Some(at);
        at
    }

    fn add_block(&mut self, capacity: usize) -> usize {
        let block = Some(Block { bytes: Arc::new(Vec::with_capacity(capacity)), live_bytes: 0 });
        let at = self.free.pop().unwrap_or(self.blocks.len());
        if at == self.blocks.len() {
            self.blocks.push(block);
        } else {
            self.blocks[at] = block;
        }
        at
    }

    fn drop_block(&mut self, at: usize) {
        let block = self.blocks[at].take().expect("a block is dropped once");
        self.held_bytes -= block.bytes.len();
        self.free.push(at);
    }
}

const OUTPUT_BIT: u64 = 1 << 63;

fn owner_word(owner: TaskId, kind: BlobKind) -> u64 {
    match kind {
        BlobKind::Payload => owner.0,
        BlobKind::Output => owner.0 | OUTPUT_BIT,
    }
}

fn read_header(bytes: &[u8]) -> ((TaskId, BlobKind), usize) {
    let (len, rest) = bytes.split_first_chunk().expect("a header is whole");
    let word = u64::from_le_bytes(*rest.first_chunk().expect("a header is whole"));
    let kind = if word & OUTPUT_BIT == 0 { BlobKind::Payload } else { BlobKind::Output };
    ((TaskId(word & !OUTPUT_BIT), kind), u32::from_le_bytes(*len) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(blobs: &mut Blobs, count: u64, bytes: usize) -> Vec<BlobRef> {
        (1..=count)
            .map(|id| blobs.put(TaskId(id), BlobKind::Payload, &vec![id as u8; bytes]))
            .collect()
    }

    #[test]
    fn blobs_read_back_and_know_their_owner() {
        let mut blobs = Blobs::default();
        let refs = fill(&mut blobs, 5_000, 100);
        let large = blobs.put(TaskId(9), BlobKind::Output, &vec![7; 1 << 20]);
        for (i, blob) in refs.iter().enumerate() {
            assert_eq!(blobs.get(*blob), vec![(i + 1) as u8; 100]);
        }
        assert_eq!(blobs.get(large).len(), 1 << 20);
        assert_eq!(blobs.owner(large), Some((TaskId(9), BlobKind::Output)));
        assert_eq!(blobs.put(TaskId(1), BlobKind::Payload, b""), BlobRef::NONE);
        assert_eq!(blobs.get(BlobRef::NONE), b"");
    }

    #[test]
    fn a_view_keeps_what_it_saw() {
        let mut blobs = Blobs::default();
        let refs = fill(&mut blobs, 10, 50);
        let view = blobs.clone();
        let kept = blobs.share(refs[3]);
        for blob in &refs {
            blobs.free(*blob);
        }
        fill(&mut blobs, 10_000, 100);
        assert_eq!(view.get(refs[3]), vec![4; 50]);
        assert_eq!(&*kept, vec![4; 50]);
    }

    #[test]
    fn blobs_that_are_held_cost_no_more_than_themselves() {
        let mut blobs = Blobs::default();
        let held: Vec<_> = (1..=20_000)
            .map(|id| {
                let blob = blobs.put(TaskId(id), BlobKind::Payload, &[7; 100]);
                blobs.share(blob)
            })
            .collect();
        assert!(held.iter().all(|bytes| **bytes == [7; 100]));
        assert_eq!(blobs.blocks.len(), (20_000 * 112_usize).div_ceil(BLOCK_BYTES - 112));
        let views: Vec<_> = (1..=100)
            .map(|id| {
                blobs.put(TaskId(id), BlobKind::Output, &[8; 100]);
                blobs.clone()
            })
            .collect();
        assert!(views.iter().all(|view| blobs.blocks.len() - view.blocks.len() <= 1));
    }

    #[test]
    fn a_block_of_holes_is_given_back() {
        let mut blobs = Blobs::default();
        let refs = fill(&mut blobs, 400_000, 100);
        let mut sparse = None;
        // One in ten stays; at some point a block asks to be emptied.
        for (_, blob) in refs.iter().enumerate().filter(|(i, _)| i % 10 != 0) {
            sparse = sparse.or(blobs.free(*blob));
        }
        let at = sparse.expect("a block with a tenth alive is sparse");
        for (owner, kind, blob) in blobs.in_block(at) {
            if owner.0 % 10 == 1 {
                let moved = blobs.relocate(owner, kind, blob);
                assert_eq!(blobs.get(moved), vec![owner.0 as u8; 100]);
            }
        }
        assert!(blobs.blocks[at].is_none());
    }

    #[test]
    fn blobs_freed_in_their_order_need_no_moving() {
        let mut blobs = Blobs::default();
        let refs = fill(&mut blobs, 400_000, 100);
        assert!(refs.iter().all(|blob| blobs.free(*blob).is_none()));
        assert_eq!(blobs.live_bytes, 0);
        assert!(blobs.held_bytes <= BLOCK_BYTES);
    }
}

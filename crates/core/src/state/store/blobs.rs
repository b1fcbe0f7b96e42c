//! Payloads and outputs, in append-only blocks.
//!
//! A block is filled from front to back and never changed after that, so views share it (and one
//! that is still being filled is copied once for each view). What is
//! freed leaves a hole. Blocks whose tasks end together go together; only when holes add up does
//! a block that is mostly holes get emptied, by moving the rest of it.
//!
//! What is large lies on the shelf, if there is one: then there is a line about it here and no more.

use std::borrow::Cow;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use tenure_record::id::TaskId;

use crate::limits::LARGE_BYTES;
use crate::shelf::{Shelf, Shelved};
use crate::state::store::{Dense, ShelvedRef};

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

    /// No block has a number with this bit: so one look finds what is in a block, and only what is
    /// not found there is looked for on the shelf.
    const SHELVED_BIT: u64 = 1 << 63;

    fn shelved(at: ShelvedRef) -> Self {
        Self(Self::SHELVED_BIT | u64::from(at.0))
    }

    fn on_shelf(self) -> Option<ShelvedRef> {
        (self != Self::NONE && self.0 & Self::SHELVED_BIT != 0).then_some(ShelvedRef(self.0 as u32))
    }

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
            Self(word) if word & Self::SHELVED_BIT != 0 => write!(f, "shelf+{}", word as u32),
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

/// Bytes that stay readable whatever happens to the state. Whoever holds them for a caller need not
/// read them; large ones may have to be read from a disk.
#[derive(Clone, Debug)]
pub struct SharedBytes(Shared);

#[derive(Clone, Debug)]
enum Shared {
    Near(NearBytes),
    Shelved(Arc<dyn Shelved>),
}

impl SharedBytes {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Shared::Near(bytes) => bytes.len(),
            Shared::Shelved(bytes) => bytes.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether to read them is to wait for a disk.
    #[must_use]
    pub fn is_shelved(&self) -> bool {
        matches!(self.0, Shared::Shelved(_))
    }

    /// The bytes; from the shelf, if that is where they are.
    ///
    /// # Errors
    /// The shelf cannot be read. Bytes in memory can always be read.
    pub fn read(&self) -> io::Result<Cow<'_, [u8]>> {
        match &self.0 {
            Shared::Near(bytes) => Ok(Cow::Borrowed(bytes)),
            Shared::Shelved(bytes) => bytes.read().map(Cow::Owned),
        }
    }

    /// Brings them into memory, where the next one to read them finds them.
    ///
    /// # Errors
    /// The shelf cannot be read.
    pub fn fetch(&mut self) -> io::Result<()> {
        if let Shared::Shelved(bytes) = &self.0 {
            self.0 = Shared::Near(NearBytes::new(bytes.read()?));
        }
        Ok(())
    }

    /// The bytes in memory.
    ///
    /// # Errors
    /// The shelf cannot be read.
    pub fn into_near(self) -> io::Result<NearBytes> {
        match self.0 {
            Shared::Near(bytes) => Ok(bytes),
            Shared::Shelved(bytes) => bytes.read().map(NearBytes::new),
        }
    }
}

/// Bytes in memory that stay readable whatever happens to the state.
#[derive(Clone, Debug, Default)]
pub struct NearBytes {
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl NearBytes {
    fn new(bytes: Vec<u8>) -> Self {
        Self { range: 0..bytes.len(), bytes: Arc::new(bytes) }
    }
}

impl Deref for NearBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

impl AsRef<[u8]> for NearBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Blobs {
    /// Where large blobs go, if they do not stay here.
    shelf: Option<Arc<dyn Shelf>>,
    shelved: Dense<ShelvedRef, ShelvedBlob>,
    blocks: Vec<Option<Block>>,
    /// Empty places in `blocks`.
    free: Vec<usize>,
    /// The block that is being filled.
    open: Option<usize>,
    /// Bytes of all blobs, and of all blocks.
    live_bytes: usize,
    held_bytes: usize,
    /// Bytes that all blocks have room for.
    room_bytes: usize,
}

#[derive(Clone, Debug)]
struct Block {
    bytes: Arc<Vec<u8>>,
    live_bytes: usize,
}

/// What the place of a shelved blob takes in memory beside its slot.
const SHELVED_BYTES: usize = 64;

/// A blob that lies elsewhere.
#[derive(Clone, Debug)]
struct ShelvedBlob {
    owner: TaskId,
    kind: BlobKind,
    bytes: Arc<dyn Shelved>,
}

impl Blobs {
    /// From here on large blobs go to the shelf.
    pub(crate) fn set_shelf(&mut self, shelf: Option<Arc<dyn Shelf>>) {
        self.shelf = shelf;
    }

    /// Bytes of memory that all blobs take, holes and the lines about shelved ones included. O(1).
    pub(crate) fn bytes(&self) -> u64 {
        (self.room_bytes + self.shelved.len() * SHELVED_BYTES) as u64 + self.shelved.bytes()
    }

    /// Keeps the bytes; an empty blob takes no room.
    pub(crate) fn put(&mut self, owner: TaskId, kind: BlobKind, bytes: &[u8]) -> BlobRef {
        if bytes.is_empty() {
            return BlobRef::NONE;
        }
        if bytes.len() > LARGE_BYTES
            && let Some(bytes) = self.shelf.as_ref().and_then(|shelf| shelf.keep(bytes))
        {
            return BlobRef::shelved(self.shelved.insert(ShelvedBlob { owner, kind, bytes }));
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

    /// A copy of a blob for another owner. Bytes on the shelf are shared, those in memory are copied.
    pub(crate) fn copy(&mut self, owner: TaskId, kind: BlobKind, blob: BlobRef) -> BlobRef {
        if let Some(shelved) = self.find_shelved(blob) {
            let bytes = Arc::clone(&shelved.bytes);
            return BlobRef::shelved(self.shelved.insert(ShelvedBlob { owner, kind, bytes }));
        }
        let bytes = self.near(blob).unwrap_or_default();
        self.put(owner, kind, &bytes)
    }

    /// How many bytes a copy of it copies.
    pub(crate) fn near_len(&self, blob: BlobRef) -> usize {
        self.find(blob).map_or(0, |(_, range)| range.len())
    }

    /// The bytes of a blob that is there; nothing for no blob. Those on the shelf are read, so this
    /// is not for the writer.
    pub(crate) fn get(&self, blob: BlobRef) -> io::Result<Cow<'_, [u8]>> {
        match self.find(blob) {
            Some((block, range)) => Ok(Cow::Borrowed(&block.bytes[range])),
            None => match self.find_shelved(blob) {
                Some(shelved) => shelved.bytes.read().map(Cow::Owned),
                None => Ok(Cow::Borrowed(&[])),
            },
        }
    }

    /// How many those are.
    pub(crate) fn len(&self, blob: BlobRef) -> usize {
        match self.find(blob) {
            Some((_, range)) => range.len(),
            None => self.find_shelved(blob).map_or(0, |shelved| shelved.bytes.len()),
        }
    }

    /// The same bytes, for keeping. From the block that is being filled they are copied: whoever
    /// holds that block makes the next blob copy all of it.
    pub(crate) fn share(&self, blob: BlobRef) -> SharedBytes {
        SharedBytes(match self.near(blob) {
            Some(bytes) => Shared::Near(bytes),
            None => match self.find_shelved(blob) {
                Some(shelved) => Shared::Shelved(Arc::clone(&shelved.bytes)),
                None => Shared::Near(NearBytes::default()),
            },
        })
    }

    /// The bytes of a blob that is in memory.
    fn near(&self, blob: BlobRef) -> Option<NearBytes> {
        let (block, range) = self.find(blob)?;
        Some(match self.open == Some(blob.block()) {
            true => NearBytes::new(block.bytes[range].to_vec()),
            false => NearBytes { bytes: Arc::clone(&block.bytes), range },
        })
    }

    /// Whose blob it is.
    pub(crate) fn owner(&self, blob: BlobRef) -> Option<(TaskId, BlobKind)> {
        let Some((block, range)) = self.find(blob) else {
            return self.find_shelved(blob).map(|shelved| (shelved.owner, shelved.kind));
        };
        Some(read_header(&block.bytes[range.start - HEADER_BYTES..]).0)
    }

    /// Forgets a blob. Gives back the number of its block if that is now worth emptying.
    pub(crate) fn free(&mut self, blob: BlobRef) -> Option<usize> {
        let Some((_, range)) = self.find(blob) else {
            // Its place on the shelf is free when nobody holds it any more, a view or a reply.
            self.shelved.remove(blob.on_shelf()?);
            return None;
        };
        let size = HEADER_BYTES + range.len();
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
        let bytes = self.near(blob).unwrap_or_default();
        let moved = self.put(owner, kind, &bytes);
        self.free(blob);
        moved
    }

    fn find_shelved(&self, blob: BlobRef) -> Option<&ShelvedBlob> {
        self.shelved.get(blob.on_shelf()?)
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
        self.room_bytes += capacity;
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
        // A block is as large as most are, or as the one blob that it was made for.
        self.room_bytes -= block.bytes.len().max(BLOCK_BYTES);
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
            assert_eq!(blobs.get(*blob).unwrap(), vec![(i + 1) as u8; 100]);
        }
        assert_eq!(blobs.get(large).unwrap().len(), 1 << 20);
        assert_eq!(blobs.owner(large), Some((TaskId(9), BlobKind::Output)));
        assert_eq!(blobs.put(TaskId(1), BlobKind::Payload, b""), BlobRef::NONE);
        assert!(blobs.get(BlobRef::NONE).unwrap().is_empty());
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
        assert_eq!(view.get(refs[3]).unwrap(), vec![4; 50]);
        assert_eq!(kept.read().unwrap(), vec![4; 50]);
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
        assert!(held.iter().all(|bytes| *bytes.read().unwrap() == [7; 100]));
        assert_eq!(blobs.blocks.len(), (20_000 * 112_usize).div_ceil(BLOCK_BYTES - 112));
        let views: Vec<_> = (1..=100)
            .map(|id| {
                blobs.put(TaskId(id), BlobKind::Output, &[8; 100]);
                blobs.clone()
            })
            .collect();
        assert!(views.iter().all(|view| blobs.blocks.len() - view.blocks.len() <= 1));
    }

    /// It takes so many, and gives them back.
    #[derive(Debug)]
    struct Small(std::sync::atomic::AtomicUsize);

    impl Shelf for Small {
        fn keep(&self, bytes: &[u8]) -> Option<Arc<dyn Shelved>> {
            use std::sync::atomic::Ordering::Relaxed;
            let has_room = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            has_room.ok().map(|_| Arc::new(bytes.to_vec()) as Arc<dyn Shelved>)
        }
    }

    impl Shelved for Vec<u8> {
        fn len(&self) -> usize {
            self.len()
        }

        fn read(&self) -> io::Result<Vec<u8>> {
            Ok(self.clone())
        }
    }

    #[test]
    fn large_blobs_take_no_memory_unless_the_shelf_refuses() {
        let mut blobs = Blobs::default();
        blobs.set_shelf(Some(Arc::new(Small(3.into()))));
        let refs: Vec<_> = (1..=5)
            .map(|id| blobs.put(TaskId(id), BlobKind::Output, &vec![id as u8; LARGE_BYTES + 1]))
            .collect();
        let small = blobs.put(TaskId(6), BlobKind::Payload, &vec![6; LARGE_BYTES]);
        assert_eq!(blobs.shelved.len(), 3, "it takes what it can");
        assert_eq!(blobs.live_bytes, 3 * HEADER_BYTES + 2 * (LARGE_BYTES + 1) + LARGE_BYTES);
        let view = blobs.clone();
        let kept = blobs.share(refs[1]);
        assert!(kept.is_shelved() && !blobs.share(refs[4]).is_shelved());
        for (blob, id) in refs.iter().zip(1_u8..) {
            assert_eq!(blobs.len(*blob), LARGE_BYTES + 1);
            assert_eq!(blobs.owner(*blob), Some((TaskId(id.into()), BlobKind::Output)));
            assert_eq!(blobs.free(*blob), None);
            assert!(blob.on_shelf().is_none() || blobs.owner(*blob).is_none(), "{blob:?} is gone");
            assert!(
                *view.get(*blob).unwrap() == vec![id; LARGE_BYTES + 1],
                "a view keeps what it saw"
            );
        }
        assert_eq!(blobs.shelved.len(), 0);
        assert!(*kept.into_near().unwrap() == vec![2; LARGE_BYTES + 1]);
        assert_eq!(blobs.len(small), LARGE_BYTES);
        assert_eq!((blobs.len(BlobRef::NONE), blobs.free(BlobRef::NONE)), (0, None));
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
                assert_eq!(blobs.get(moved).unwrap(), vec![owner.0 as u8; 100]);
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
        assert_eq!(blobs.bytes(), BLOCK_BYTES as u64, "only the open block is left");
        let large = blobs.put(TaskId(1), BlobKind::Payload, &vec![1; 2 * BLOCK_BYTES]);
        assert_eq!(blobs.bytes(), (3 * BLOCK_BYTES + HEADER_BYTES) as u64);
        blobs.free(large);
        assert_eq!(blobs.bytes(), BLOCK_BYTES as u64);
    }
}

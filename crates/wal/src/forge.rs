//! Checksums made to fit bytes that were changed on purpose, so that tests and fuzzing get past
//! them and reach what is behind: sizes, counts, kinds and numbers that no writer ever wrote.

use tenure_log::{Chain, Frame, Lsn};

use crate::segment::{self, FRAMES_FROM, SegmentHeader};
use crate::snapshot;

/// Where a segment's field `before` is: the chain at the end of the segment before.
const BEFORE_AT: usize = 48;

/// Makes a segment's two headers fit what they say. With `before`, they also say that the segment
/// follows that chain.
pub fn reseal_headers(segment: &mut [u8], before: Option<Chain>) {
    for at in [0, segment::SECOND_HEADER_AT as usize] {
        let Some(header) = segment.get_mut(at..at + segment::HEADER_BYTES) else { return };
        if let Some(Chain(before)) = before {
            header[BEFORE_AT..BEFORE_AT + before.len()].copy_from_slice(&before);
        }
        let crc = u64::from(crc32c::crc32c(&header[..segment::CRC_AT]));
        header[segment::CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Makes the frames of a segment fit their places and each other, from the first one up to where
/// none begins. Returns the chain at their end; nothing if the segment's first header is not good.
pub fn reseal_frames(bytes: &mut [u8]) -> Option<Chain> {
    let (_, header) = SegmentHeader::decode(bytes.first_chunk()?)?;
    let (mut at, mut chain) = (FRAMES_FROM as usize, header.before);
    while let Some(rest) = bytes.get_mut(at..)
        && let Some(next) = Frame::reseal(rest, header.seed(at as u64), chain)
    {
        at = at.saturating_add(next.0 as usize);
        chain = next.1;
    }
    Some(chain)
}

/// Makes a snapshot's header, its blocks and its footer fit what they say, as far as they go.
pub fn reseal_snapshot(bytes: &mut [u8]) -> Option<()> {
    let (header, mut rest) = bytes.split_at_mut_checked(snapshot::HEADER_BYTES)?;
    let crc = u64::from(crc32c::crc32c(&header[..40]));
    header[40..].copy_from_slice(&crc.to_le_bytes());
    let lsn = Lsn(u64::from(word(header, 32)?) | u64::from(word(header, 36)?) << 32);
    for number in 0.. {
        let (head, after) = rest.split_at_mut_checked(snapshot::BLOCK_HEADER_BYTES)?;
        let size = word(head, 0)? as usize;
        if size == 0 {
            rest = after;
            break;
        }
        let (block, after) = after.split_at_mut_checked(size)?;
        head[4..].copy_from_slice(&snapshot::block_crc(lsn, number, block).to_le_bytes());
        rest = after;
    }
    let footer = rest.get_mut(..snapshot::FOOTER_BYTES)?;
    let crc = u64::from(snapshot::block_crc(lsn, u64::MAX, &footer[..88]));
    footer[88..].copy_from_slice(&crc.to_le_bytes());
    Some(())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

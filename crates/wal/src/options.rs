//! How a log is kept.

/// Bytes of a segment, unless other ones are asked for.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Trimmed segments that are kept as room for new ones. Writing over a file that is there can be
/// ten times as fast as making one, on a disk that hands out its blocks late.
const RECYCLED_MAX: usize = 4;
/// Free bytes below which new work should be refused: two segments.
const LOW_WATER_BYTES: u64 = 2 * SEGMENT_BYTES;

/// When a record may be acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it is durable. Nothing that was told can be lost.
    #[default]
    Sync,
    /// When it is written; it is durable at most so many milliseconds later. A loss of power can
    /// take back what was told in that time.
    IntervalMs(u64),
    /// When it is written; it is durable when the system pleases. A loss of power can take back
    /// half a minute and more.
    Os,
}

/// Who makes the next segment ready, which takes as long as a thousand syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spares {
    /// A thread for each, as soon as the one before is in use.
    #[default]
    Background,
    /// The caller of [`Wal::prepare`](crate::Wal::prepare); for disks that must be called in a
    /// fixed order.
    Caller,
}

/// How a log is kept.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When a record may be acknowledged.
    pub durability: Durability,
    /// Who makes the next segment ready.
    pub spares: Spares,
    /// Bytes of a segment. At least twice the largest frame, so that each holds some.
    pub segment_bytes: u64,
    /// How many files of trimmed segments are kept, to be overwritten and used again.
    pub recycled_max: usize,
    /// With fewer free bytes than this on the disk, [`Wal::room`](crate::Wal::room) says so.
    pub low_water_bytes: u64,
    /// Names a log that is made; never used for one that exists. Any number that no other log has.
    pub new_log_id: u128,
    /// Where the salts of new segments come from. Different at every start.
    pub salt_seed: u64,
}

impl Options {
    /// The usual: durable before it is told, segments of 64 MiB, made ready in the background.
    /// `entropy` is any number that no other start has.
    #[must_use]
    pub fn new(entropy: u128) -> Self {
        Self {
            durability: Durability::default(),
            spares: Spares::default(),
            segment_bytes: SEGMENT_BYTES,
            recycled_max: RECYCLED_MAX,
            low_water_bytes: LOW_WATER_BYTES,
            new_log_id: entropy,
            salt_seed: (entropy >> 64) as u64 ^ entropy as u64,
        }
    }
}

//! What keeps a log from growing for ever: when snapshots are taken, what of the log is kept after
//! them, and how long finished tasks are.

use tenure_core::command::Retention;
use tenure_log::Keep;

use crate::limits::{LOG_KEEP_BYTES, PURGE_ITEMS_MAX, SNAPSHOT_EVERY_MS, SNAPSHOT_LOG_BYTES};

/// How a log is looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upkeep {
    /// Log bytes after which a snapshot is taken, unless the last one was larger.
    pub snapshot_log_bytes: u64,
    /// How old the last snapshot gets before another one is taken, if that is worth it.
    pub snapshot_every_ms: u64,
    /// What of the log is kept beyond what the snapshots need.
    pub log_keep: Keep,
    /// How long finished tasks are kept.
    pub retention: Retention,
    /// Who forgets them then.
    pub purge: Purge,
}

/// How what is finished is forgotten when its time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purge {
    /// The coordinator does it by itself.
    #[default]
    ByItself,
    /// Somebody archives it first, and names what is in the archive (`Command::PurgeArchived`).
    AfterArchive,
}

impl Default for Upkeep {
    fn default() -> Self {
        Self {
            snapshot_log_bytes: SNAPSHOT_LOG_BYTES,
            snapshot_every_ms: SNAPSHOT_EVERY_MS,
            log_keep: Keep::Bytes(LOG_KEEP_BYTES),
            retention: Retention { items_max: PURGE_ITEMS_MAX, ..Retention::default() },
            purge: Purge::ByItself,
        }
    }
}

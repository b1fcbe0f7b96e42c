//! Room on the disk and in memory, and the pace at which finished tasks are forgotten.

use tenure_core::State;
use tenure_core::command::Rest;
use tenure_log::{Maintenance, Room};
use tenure_record::time::{Now, Timestamp};

use crate::limits::{PURGE_EVERY_MS, ROOM_CHECK_MS};
use crate::memory::{Memory, Pool};
use crate::parking::Parking;
use crate::refusal::Refusal;
use crate::snapshot::Kept;
use crate::upkeep::{Purge, Upkeep};

/// What new work needs room in, and when the next purge may run.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    /// How much room the disk has for new work.
    room: Room,
    /// When that was looked at.
    room_seen_at: Option<Timestamp>,
    /// The memory budget, in which the state has a pool.
    memory: Memory,
    /// Nothing is purged before this.
    purge_from: Timestamp,
}

impl Housekeeping {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { room: Room::Plenty, room_seen_at: None, memory, purge_from: Timestamp::ZERO }
    }

    pub(crate) fn room(&self) -> Room {
        self.room
    }

    /// Asks the log how much room there is, if it is time.
    pub(crate) fn look_at_room(&mut self, log: &mut impl Maintenance, kept: &mut Kept, now: Now) {
        if self.room_seen_at.is_none_or(|at| at.plus_ms(ROOM_CHECK_MS) <= now.log) {
            self.room_seen_at = Some(now.log);
            self.room = log.room();
            kept.extent = log.extent();
        }
    }

    /// Whether the disk and the memory budget have room for new work, as memory was counted last.
    pub(crate) fn admit_new_work(&self) -> Result<(), Refusal> {
        match (self.room, self.memory.is_full()) {
            (Room::Low, _) => Err(Refusal::DiskFull),
            (Room::Plenty, true) => Err(Refusal::memory_full(&self.memory)),
            (Room::Plenty, false) => Ok(()),
        }
    }

    /// Counts the memory of the state and of parked callers.
    pub(crate) fn count_memory(&self, state: &State, parking: &Parking) {
        self.memory.pool(Pool::State).set(state.bytes().total());
        self.memory.pool(Pool::Parked).set(parking.bytes());
    }

    /// How many bytes parked callers may take.
    pub(crate) fn parked_bytes_max(&self) -> u64 {
        self.memory.pool(Pool::Parked).max()
    }

    /// When something is to be forgotten. Not while the disk is nearly full: what is left of it is
    /// for those who wait.
    pub(crate) fn next_purge(&self, state: &State, upkeep: &Upkeep) -> Option<Timestamp> {
        match (upkeep.purge, self.room) {
            // What is in no archive yet is not forgotten, whatever its age.
            (Purge::AfterArchive, _) | (Purge::ByItself, Room::Low) => None,
            (Purge::ByItself, Room::Plenty) => {
                Some(state.next_purge(&upkeep.retention)?.max(self.purge_from))
            }
        }
    }

    /// A purge has run; the next one follows at once if there is more to forget.
    pub(crate) fn purged(&mut self, rest: Rest, now: Now) {
        self.purge_from = match rest {
            Rest::More => now.log,
            Rest::Nothing => now.log.plus_ms(PURGE_EVERY_MS),
        };
    }
}

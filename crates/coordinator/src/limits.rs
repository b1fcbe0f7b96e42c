//! Every bound of the coordinator has a name, a value and a place where it is enforced.

/// Requests that wait to be decided. Beyond half of it new work is refused, beyond three quarters
/// everything but reports.
pub const INBOX_REQUESTS_MAX: usize = 32_768;
/// Bytes of those requests, about.
pub const INBOX_BYTES_MAX: usize = 128 << 20;
/// Things in outcomes that wait until they are durable; beyond that nothing is decided.
pub const OUTBOX_ITEMS_MAX: usize = 100_000;
/// Bytes of those outcomes, about; beyond that nothing is decided.
pub const OUTBOX_BYTES_MAX: u64 = 128 << 20;
/// What one of those things takes, about.
pub const OUTBOX_ITEM_BYTES: u64 = 256;
/// Lease requests that wait for work.
pub const PARKED_LEASES_MAX: usize = 10_000;
/// Readers that wait for a task or a run to end.
pub const PARKED_READERS_MAX: usize = 10_000;
/// Bytes of lease requests and readers that wait, about.
pub const PARKED_BYTES_MAX: u64 = 128 << 20;
/// Requests that wait and whose callers are gone are looked for at most this often, in milliseconds.
pub const PARKED_SWEEP_MS: u64 = 100;
/// The longest that a request may wait, in milliseconds.
pub const WAIT_MS_MAX: u64 = 60_000;
/// A frame is closed at about this size; one more record fits.
pub const FRAME_BYTES: usize = 4 << 20;
/// Background work (dispatch of wide groups, ends in parts) adds nothing to a frame that has this many
/// bytes: a request that arrives meanwhile waits for two frames, so these stay small.
pub const BACKGROUND_FRAME_BYTES: usize = 1 << 20;
/// A frame with more records than this is committed on the log's thread even if nobody else waits:
/// where many come together, more are on their way.
pub const INLINE_RECORDS_MAX: u32 = 4;
/// Requests that one step decides; the rest waits for the next one.
pub const STEP_REQUESTS_MAX: usize = 1_024;
/// Batches of reports that need more than one record and are not decided yet; beyond that no
/// requests are taken.
pub const UNFINISHED_REPORTS_MAX: usize = 256;
/// Work of one step, in the units of [`tenure_core::limits::RECORD_WORK_MAX`], after which the rest
/// waits for the next step: what is decided so far is synced first, and time is looked at.
pub const STEP_WORK_MAX: u64 = 20_000;
/// Parked requests that one step serves.
pub const STEP_GRANTS_MAX: usize = 1_024;
/// Records of timers that fire in one step. Timers of one kind fire in one record; where moments of
/// several kinds alternate, each alternation begins another.
pub const STEP_SWEEPS_MAX: usize = 2;
/// The last leases that tell whether workers find more work than they take.
pub const SUPPLY_LEASES: u32 = 32;
/// After so long without a lease nobody takes work, and there is no such thing as enough of it.
pub const SUPPLY_MEMORY_MS: u64 = 1_000;
/// Workers that are remembered.
pub const WORKERS_MAX: usize = 10_000;
/// Bytes of what workers say about their progress, about. Beyond that, what is over is forgotten
/// first, and then what was said longest ago.
pub const PROGRESS_BYTES_MAX: usize = 16 << 20;
/// A worker that was silent for so long is shown as dead.
pub const WORKER_DEAD_AFTER_MS: u64 = 60_000;
/// Bytes of recent frames that are kept for those who follow.
pub const FEED_BYTES_MAX: usize = 32 << 20;
/// Frames that are kept for those who follow.
pub const FEED_FRAMES_MAX: usize = 4_096;
/// After so long a pause the log is told that all is durable.
pub const MARK_AFTER_MS: u64 = 1_000;
/// How often the wall clock is read while a calendar moment is ahead: it can be set at any time.
pub const WALL_CHECK_MS: u64 = 1_000;
/// A start with log time further ahead of the wall clock than this is reported.
pub const LOG_TIME_AHEAD_MS_MAX: u64 = 3_600_000;
/// A wall clock that is no further than this from where it was expected is told as expected.
pub const WALL_ROUNDING_MS: u64 = 2;
/// A difference between the clocks that changes by more than this is a jump.
pub const CLOCK_JUMP_MS: u64 = 1_000;
/// How often the disk is asked how much room it has, while there is something to do.
pub const ROOM_CHECK_MS: u64 = 1_000;
/// Percent of the memory budget at which new work is refused.
pub const MEMORY_FULL_PERCENT: u64 = 90;
/// No pool but the state may hold more than one part of the memory budget out of this many.
pub const MEMORY_POOL_PART: u64 = 8;
/// How long a full disk is left alone before the same frame is tried again.
pub const FULL_RETRY_MS: u64 = 100;
/// How long the log is left alone before it is asked to find out an unknown outcome.
pub const UNKNOWN_RETRY_MS: u64 = 50;
/// Beside a frame that is under way, another one is sent only with this payload or more. Smaller
/// ones gain more from being gathered than from being sent ahead.
pub const PIPELINED_FRAME_BYTES_MIN: usize = 64 << 10;
/// Steps of one task's history, or records of a run's, that are given at once: the latest.
pub const HISTORY_ITEMS_MAX: usize = 1_000;
/// Bytes of a task's or a run's history after which no older steps are given.
pub const HISTORY_BYTES: usize = 2 << 20;
/// Log bytes after which a snapshot is taken, unless the last one was larger: then as many as that,
/// so that snapshots never cost more than the log itself.
pub const SNAPSHOT_LOG_BYTES: u64 = 256 << 20;
/// After so long one is taken too, if at least [`SNAPSHOT_WORTH_BYTES`] were written.
pub const SNAPSHOT_EVERY_MS: u64 = 3_600_000;
/// Fewer log bytes than this are replayed faster than a snapshot is worth taking for its age.
pub const SNAPSHOT_WORTH_BYTES: u64 = 16 << 20;
/// At an orderly stop one is taken if so many log bytes would have to be replayed at the next start,
/// and if that is at least a quarter of the last snapshot.
pub const SNAPSHOT_STOP_BYTES: u64 = 64 << 20;
/// How long a snapshot that could not be written is left alone before another one is tried.
pub const SNAPSHOT_RETRY_MS: u64 = 60_000;
/// Free bytes of the disk that the shelf leaves to the log: twice what makes it refuse new work. What
/// would need them stays in memory.
pub const SHELF_SPARES_BYTES: u64 = 256 << 20;
/// Callers that wait for a snapshot.
pub const SNAPSHOT_CALLERS_MAX: usize = 1_000;
/// Log bytes that are kept beyond what the two snapshots need.
pub const LOG_KEEP_BYTES: u64 = 4 << 30;
/// Finished tasks that one step forgets, so that those who wait do not notice.
pub const PURGE_ITEMS_MAX: usize = 2_000;
/// How long what is to be forgotten may wait for company: one record for many.
pub const PURGE_EVERY_MS: u64 = 1_000;
/// Finished tasks that are archived at a time, if there is an archive.
pub const ARCHIVE_TASKS_MAX: usize = 2_000;
/// Runs that are archived at a time, each with all its tasks.
pub const ARCHIVE_RUNS_MAX: usize = 200;
/// Bytes of histories that are held while they are read together; beyond that fewer are.
pub const HISTORIES_BYTES_MAX: usize = 32 << 20;
/// Records that are applied again to rebuild an old state, at the most: some ten seconds.
pub const REDECIDE_RECORDS_MAX: u64 = 20_000_000;

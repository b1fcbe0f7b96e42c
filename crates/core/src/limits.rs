//! Every bound has a name, a value and a place where it is enforced.

/// Payload or output of one task, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// A payload or output of more bytes than this lies on the shelf, if there is one, and not in memory.
pub const LARGE_BYTES: usize = 64 << 10;
/// One encoded record, in bytes. Commands that would need a larger one are refused.
pub const RECORD_BYTES_MAX: usize = 8 << 20;
/// What the decisions about runs may take in one record, in bytes: with the item that they belong
/// to they stay below the bound of a record. Beyond it a token fails with `LIMIT_RECORD`.
pub const CASCADE_BYTES_MAX: usize = 6 << 20;
/// Branches of one run that are live at a time, groups inside groups multiplied: a group that is
/// wider begins the rest as others settle. So the end of a run, which takes all of them with it,
/// always fits a record.
pub const BRANCHES_LIVE_MAX: u32 = 250_000;
/// What the end of a token and its task takes in a record, if no two stand together.
pub const STOPPED_BYTES: usize = 8;
/// Bytes of a sweep's record after which the rest waits for the next one.
pub const SWEEP_BYTES_MAX: usize = 1 << 20;
/// Context and outputs that a scope of a run reads, in bytes (`LIMIT_CONTEXT`).
pub const CONTEXT_BYTES_MAX: usize = 4 << 20;
/// Branches that begin in one record; the rest waits for the next one.
pub const BRANCHES_BEGUN_MAX: u32 = 1_000;
/// Runs above each other.
pub const CHILD_DEPTH_MAX: u32 = 32;
/// Signals that a run keeps until somebody waits for them.
pub const SIGNALS_KEPT_MAX: usize = 1_000;
/// Signals with an id that a run takes.
pub const SIGNAL_IDS_MAX: usize = 10_000;
/// Bytes of a signal's id and of its correlation.
pub const SIGNAL_TEXT_BYTES_MAX: usize = 256;
/// Artifacts of one completion.
pub const ARTIFACTS_MAX: usize = 100;
/// Artifacts that a run may be handed, those included that are dropped (`LIMIT_ARTIFACTS`).
pub const ARTIFACTS_PER_RUN_MAX: usize = 10_000;
/// Bytes of an artifact's name.
pub const ARTIFACT_NAME_BYTES_MAX: usize = 200;
/// Folders in an artifact's name, and the file.
pub const ARTIFACT_LEVELS_MAX: usize = 16;
/// Bytes of an artifact's media type.
pub const MEDIA_TYPE_BYTES_MAX: usize = 128;
/// Versions of one workflow.
pub const WORKFLOW_VERSIONS_MAX: u32 = 10_000;
/// Workflows that exist at a time.
pub const WORKFLOWS_MAX: usize = 10_000;
/// Tasks in one submit, and reports in one request.
pub const BATCH_ITEMS_MAX: usize = 10_000;
/// Leases given to one request.
pub const LEASE_TASKS_MAX: u32 = 1_000;
/// Bytes of payloads and tags after which a lease request gets no more; the task that passes it is
/// still given.
pub const LEASE_BYTES: usize = 2 << 20;
/// Queues that one lease request may name.
pub const LEASE_QUEUES_MAX: usize = 100;
/// Ready tasks that one lease request looks at: those it may get, and as many whose deadline has
/// passed and whose end is not yet on record.
pub const LEASE_SCAN_MAX: usize = 11_000;
/// Leases ended, deadlines fired or tasks purged by one record; the rest waits for the next one.
pub const DUE_ITEMS_MAX: usize = 10_000;
/// Queues that exist at a time.
pub const QUEUES_MAX: usize = 100_000;
/// Bytes of a queue's or worker's name.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of an idempotency key.
pub const KEY_BYTES_MAX: usize = 256;
/// Tags of one task.
pub const TAGS_MAX: usize = 64;
/// Bytes of a tag's key and of its value.
pub const TAG_BYTES_MAX: usize = 256;
/// Bytes of a failure's reason that are kept.
pub const REASON_BYTES_MAX: usize = 4_096;
/// Bytes of a failure's code.
pub const CODE_BYTES_MAX: usize = 128;
/// Failures that a task keeps with it; older ones are in its history.
pub const FAILURES_KEPT_MAX: usize = 3;
/// The shortest lease, in milliseconds.
pub const LEASE_MS_MIN: u32 = 50;
/// The longest lease: a day.
pub const LEASE_MS_MAX: u32 = 86_400_000;
/// The lease a task asks for when it does not say.
pub const LEASE_MS_DEFAULT: u32 = 30_000;
/// Delayed tasks that become ready in one step; the rest waits for the next one.
pub const ADVANCE_TASKS_MAX: usize = 10_000;
/// The longest delay, retry delay, timeout, grace, backoff or retention: a leap year.
pub const DELAY_MS_MAX: u64 = 366 * 86_400_000;
/// Lowest priority.
pub const PRIORITY_MIN: i8 = -100;
/// Highest priority.
pub const PRIORITY_MAX: i8 = 100;
/// The largest budget of failures or expiries.
pub const BUDGET_MAX: u16 = 10_000;
/// Failures that a task may have when it does not say.
pub const MAX_ATTEMPTS_DEFAULT: u16 = 3;
/// Expired leases that a task may have when it does not say.
pub const MAX_EXPIRIES_DEFAULT: u16 = 10;
/// How long finished tasks are kept: seven days.
pub const RETENTION_MS_DEFAULT: u64 = 7 * 86_400_000;
/// How many finished tasks are kept.
pub const RETENTION_TASKS_DEFAULT: u64 = 10_000_000;
/// Longer than anything is kept. Added to a moment it stays short of the last one; past that, all
/// moments would be the same and their order lost.
pub(crate) const FOR_EVER_MS: u64 = u64::MAX / 2;
/// Tasks that one page of a list looks at before it gives back what it has.
pub const LIST_SCAN_MAX: usize = 10_000;
/// Tasks that are counted in front of one that waits in line.
pub const PLACE_SCAN_MAX: usize = 10_000;
/// Tasks on one page of a list.
pub const LIST_ITEMS_MAX: usize = 1_000;
/// How far the ids jump ahead where a tail of the log may be lost: 2^36, about 69 billion.
///
/// It must be more than any tail that was told and lost could hold. A crash of the machine loses what
/// the page cache had, seconds to minutes; a restore loses what came after the backup. At a million
/// ids a second, more than one coordinator gives, the jump is 19 hours; at ten thousand a second it
/// is 79 days. And it must be short of 2^53 by many jumps: there is room for 131,072 of them, one
/// every hour for fifteen years.
pub const ID_JUMP: u64 = 1 << 36;

//! Every bound has a name, a value and a place where it is enforced.

/// A payload or output of more bytes than this lies on the shelf, if there is one, and not in memory.
pub const LARGE_BYTES: usize = 64 << 10;
/// What the decisions about runs may take in one record, in bytes: with the item that they belong
/// to they stay below the bound of a record. Beyond it a token fails with `LIMIT_RECORD`.
pub const CASCADE_BYTES_MAX: usize = 6 << 20;
/// The input of a run together with the defaults of its context, in bytes as a value.
pub const INPUT_BYTES_MAX: usize = CASCADE_BYTES_MAX / 4;
/// Tokens, tasks and child runs that end in one record because the scope around them does. What is
/// more is decided in that record (`EndScope`) and listed in those that follow (`EndContinued`).
pub const END_ITEMS_MAX: usize = 2_000;
/// Tokens or groups that a run may have made, ended ones included, to be looked through when it
/// ends in one record.
pub const END_SCAN_MAX: u32 = 100_000;
/// Work of one record, in units of about a microsecond: an item of a batch, a decision, a KiB that
/// is written, or [`STEPS_PER_UNIT`] steps of an expression or a schema. No record takes more: it is
/// what a cascade may take, and then the costliest expression and the costliest schema.
pub const RECORD_WORK_MAX: u64 = 250_000;
/// Work after which what is left of a batch, a sweep or a dispatch waits for the next record.
pub const RECORD_WORK: u64 = 10_000;
/// Work after which a cascade takes no further step: its token fails with `CASCADE_LIMIT`.
pub const CASCADE_WORK_MAX: u64 = 40_000;
/// Steps of an expression or a schema that are one unit of work.
pub const STEPS_PER_UNIT: u64 = 32;
/// Tokens that are live at a time in one scope beside each other. A fan-out has a scope for each of
/// its branches, and no such bound.
pub const SCOPE_TOKENS_MAX: usize = 10_000;
/// Bytes of a sweep's record after which the rest waits for the next one.
pub const SWEEP_BYTES_MAX: usize = 1 << 20;
/// Context and outputs that a scope of a run reads, in bytes (`LIMIT_CONTEXT`).
pub const CONTEXT_BYTES_MAX: usize = 4 << 20;
/// Branches that begin in one record; the rest waits for the next one.
pub const BRANCHES_BEGUN_MAX: u32 = 1_000;
/// Causes that an error of a run carries: the outermost ones and the first. The rest is counted in
/// `causes_omitted`.
pub const CAUSES_MAX: usize = 8;
/// Runs above each other.
pub const CHILD_DEPTH_MAX: u32 = 32;
/// Signals that a run keeps until a token waits for them.
pub const SIGNALS_KEPT_MAX: usize = 1_000;
/// Bytes of their payloads: sixteen of the largest.
pub const SIGNALS_KEPT_BYTES_MAX: usize = 16 << 20;
/// Signals with an id that a run takes.
pub const SIGNAL_IDS_MAX: usize = 10_000;
/// Artifacts that a run may be handed, those included that are dropped (`LIMIT_ARTIFACTS`).
pub const ARTIFACTS_PER_RUN_MAX: usize = 10_000;
/// Versions of one workflow.
pub const WORKFLOW_VERSIONS_MAX: u32 = 10_000;
/// Names of deleted workflows that are remembered, so that no version number is used twice.
pub const DELETED_WORKFLOWS_MAX: usize = 100_000;
/// Runs in one batch of starts. The starts together also stay below [`RECORD_WORK`] and
/// [`SWEEP_BYTES_MAX`].
pub const RUN_BATCH_ITEMS_MAX: usize = 1_000;
/// Workflows that exist at a time.
pub const WORKFLOWS_MAX: usize = 10_000;
/// Tasks in one submit, and reports in one request.
pub const BATCH_ITEMS_MAX: usize = 10_000;
/// Leases given to one request.
pub const LEASE_TASKS_MAX: u32 = 1_000;
/// Bytes of payloads, checkpoints and tags after which a lease request gets no more; the task that passes it is
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
/// Names of tasks that exist at a time. A name goes away with its last task. Names in workflow
/// definitions are not refused, as definitions have limits of their own.
pub const TASK_NAMES_MAX: usize = 10_000;
/// Failures that a task keeps with it; older ones are in its history.
pub const FAILURES_KEPT_MAX: usize = 3;
/// Delayed tasks that become ready in one step; the rest waits for the next one.
pub const ADVANCE_TASKS_MAX: usize = 10_000;
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
pub const POSITION_SCAN_MAX: usize = 10_000;
/// Tasks on one page of a list.
pub const LIST_ITEMS_MAX: usize = 1_000;
/// How far the ids jump ahead after an unclean start in a mode that may lose a tail of the log: 2^28,
/// about 268 million.
///
/// The tail is what the page cache held when the machine stopped: seconds to minutes. At a million ids
/// a second, more than one coordinator gives, the jump covers four minutes. There is room for 32,768
/// such jumps below [`tenure_record::id::ID_MAX`].
pub const ID_JUMP_UNCLEAN: u64 = 1 << 28;
/// How far the ids jump ahead after a restore: 2^36, about 69 billion.
///
/// The tail is everything after the backup. At ten thousand ids a second the jump covers 79 days.
/// There is room for 127 restores of restores below [`tenure_record::id::ID_MAX`].
pub const ID_JUMP_RESTORE: u64 = 1 << 36;
/// Ids that new work leaves free: submits and starts of runs are refused when fewer are left, so that
/// the tasks and runs that were accepted can still end.
pub const IDS_RESERVED: u64 = 1 << 28;

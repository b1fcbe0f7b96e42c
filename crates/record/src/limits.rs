//! The bounds of what a record may hold. Each has a name, a value and a place where it is enforced.

/// Payload or output of one task, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// A checkpoint of a task, in bytes.
pub const CHECKPOINT_BYTES_MAX: usize = 64 << 10;
/// The message of a heartbeat, in bytes.
pub const PROGRESS_MESSAGE_BYTES_MAX: usize = 1_024;
/// One encoded record, in bytes. Commands that would need a larger one are refused.
pub const RECORD_BYTES_MAX: usize = 8 << 20;
/// Bytes of a signal's id and of its correlation.
pub const SIGNAL_TEXT_BYTES_MAX: usize = 256;
/// Artifacts of one completion.
pub const ARTIFACTS_MAX: usize = 100;
/// Bytes of an artifact's name.
pub const ARTIFACT_NAME_BYTES_MAX: usize = 200;
/// Folders in an artifact's name, and the file.
pub const ARTIFACT_LEVELS_MAX: usize = 16;
/// Bytes of an artifact's media type.
pub const MEDIA_TYPE_BYTES_MAX: usize = 128;
/// Bytes of a queue's or worker's name.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of a task's name.
pub const TASK_NAME_BYTES_MAX: usize = 128;
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
/// Bytes of a trace context: the 55 of version 00, and room for the fields of later versions.
pub const TRACEPARENT_BYTES_MAX: usize = 128;
/// The shortest lease, in milliseconds.
pub const LEASE_MS_MIN: u32 = 50;
/// The longest lease: a day.
pub const LEASE_MS_MAX: u32 = 86_400_000;
/// The lease a task asks for when it does not say.
pub const LEASE_MS_DEFAULT: u32 = 30_000;
/// The longest delay, retry delay, timeout, grace, backoff or retention: a leap year.
pub const DELAY_MS_MAX: u64 = 366 * 86_400_000;
/// Lowest priority.
pub const PRIORITY_MIN: i8 = -100;
/// Highest priority.
pub const PRIORITY_MAX: i8 = 100;
/// Failures that end a task when it does not say.
pub const MAX_FAILURES_DEFAULT: u16 = 20;
/// Expired leases that end a task when it does not say.
pub const MAX_EXPIRIES_DEFAULT: u16 = 10;
/// The largest budget of failures, of expired leases or of both.
pub const BUDGET_MAX: u16 = 10_000;
/// The largest limit of a number of tasks that a queue can have.
pub const COUNT_MAX: u64 = 1_000_000_000;

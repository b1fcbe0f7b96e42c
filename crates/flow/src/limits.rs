//! Every bound has a name, a value and a place where it is enforced.

/// The latest moment that a task or a timer can wait for, in milliseconds since 1970: the last one
/// that RFC 3339 can write, 9999-12-31T23:59:59.999Z.
pub const MOMENT_MS_MAX: u64 = 253_402_300_799_999;
/// Bytes of a definition's text, YAML or JSON.
pub const DEFINITION_BYTES_MAX: usize = 1 << 20;
/// Faults that are reported of one definition; the rest waits until these are mended.
pub const FAULTS_MAX: usize = 100;
/// Endless cycles that are reported of one definition.
pub const CYCLES_REPORTED_MAX: usize = 10;
/// Nodes of a definition.
pub const NODES_MAX: usize = 1_000;
/// Transitions of a definition.
pub const TRANSITIONS_MAX: usize = 5_000;
/// Entries of a mapping.
pub const MAPPING_ENTRIES_MAX: usize = 256;
/// Merges of a join.
pub const MERGES_MAX: usize = 64;
/// Codes that a node's `retry_on` may list.
pub const RETRY_CODES_MAX: usize = 64;
/// Bytes of a workflow's, node's, transition's, group's, signal's or variable's name.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of a task's name.
pub const TASK_NAME_BYTES_MAX: usize = 128;
/// Values that the aliases of a YAML text may stand for, all together.
pub const YAML_ALIASED_VALUES_MAX: usize = 10_000;
/// Values in a YAML text, what its aliases stand for included.
pub const YAML_VALUES_MAX: usize = 100_000;

/// Bytes of an expression.
pub const EXPRESSION_BYTES_MAX: usize = 4_096;
/// Brackets of an expression that may be open at a time.
pub const EXPRESSION_NESTING_MAX: usize = 32;
/// How deep the operators of an expression may stand in each other, brackets included.
pub const EXPRESSION_DEPTH_MAX: usize = 64;
/// What one evaluation may cost: about one for each operator, element and 64 bytes of text.
pub const EXPRESSION_STEPS_MAX: u64 = 1_000_000;
/// Bytes of a list, map or text that an expression makes.
pub const EXPRESSION_OUTPUT_BYTES_MAX: usize = 4 << 20;
/// Bytes of a pattern given to `matches`.
pub const PATTERN_BYTES_MAX: usize = 1_024;
/// Memory that one compiled pattern may take.
pub const PATTERN_MEMORY_BYTES_MAX: usize = 1 << 20;
/// Values that an evaluation notes as read.
pub const READS_MAX: usize = 64;
/// Bytes of what was read, when it is shown.
pub const READS_SHOWN_BYTES_MAX: usize = 1_024;

/// Bytes of a JSON Schema's text.
pub const SCHEMA_BYTES_MAX: usize = 256 << 10;
/// Subschemas that one value may be checked against where it stands, references followed.
pub const SCHEMA_WEIGHT_MAX: u64 = 10_000;
/// What one validation may cost: about one for each look at a value and 64 bytes of text.
pub const SCHEMA_STEPS_MAX: u64 = 2_000_000;
/// Complaints that one validation lists.
pub const SCHEMA_COMPLAINTS_MAX: usize = 10;

/// Lowest priority of a task.
pub const TASK_PRIORITY_MIN: i64 = -100;
/// Highest priority of a task.
pub const TASK_PRIORITY_MAX: i64 = 100;
/// The shortest lease of a task, in milliseconds.
pub const LEASE_MS_MIN: i64 = 50;
/// The longest lease of a task: a day.
pub const LEASE_MS_MAX: i64 = 86_400_000;
/// The largest budget of failures, of expired leases or of both.
pub const BUDGET_MAX: i64 = 10_000;
/// The longest delay, timeout or backoff: a leap year.
pub const SPAN_MS_MAX: i64 = 366 * 86_400_000;
/// Tags of a task.
pub const TAGS_MAX: usize = 64;
/// Bytes of a tag's key and of its value.
pub const TAG_BYTES_MAX: usize = 256;
/// Bytes of a failure's code.
pub const CODE_BYTES_MAX: usize = 128;
/// The tier that is tried last.
pub const TIER_MAX: i64 = 1_000_000;

/// Tokens that a run may make when its definition does not say.
pub const MAX_TOKENS_DEFAULT: u64 = 1_000_000;
/// Branches of one fan-out when the definition does not say.
pub const MAX_SPAWN_DEFAULT: u32 = 100_000;
/// Groups inside groups when the definition does not say.
pub const MAX_DEPTH_DEFAULT: u32 = 10;
/// Runs ever started in one tree of child runs when the definition of its top does not say.
pub const MAX_RUNS_DEFAULT: u32 = 100_000;
/// Steps of one cascade when the definition does not say.
pub const MAX_CASCADE_DEFAULT: u32 = 10_000;
/// The largest `max_tokens`. To find what is live in a run that ends, its tokens are looked through.
pub const MAX_TOKENS_MAX: i64 = 4_000_000;
/// The largest `max_spawn`, `spawn_count` and `m_of_n`.
pub const MAX_SPAWN_MAX: i64 = 1_000_000;
/// The largest `max_depth`.
pub const MAX_DEPTH_MAX: i64 = 100;
/// The largest `max_runs`.
pub const MAX_RUNS_MAX: i64 = 10_000_000;
/// The largest `max_cascade`.
pub const MAX_CASCADE_MAX: i64 = 1_000_000;

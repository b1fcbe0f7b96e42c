//! How branches meet, and how what they bring is put together.

use tenure_value::Path;

use super::NodeIndex;
use crate::expression::Expression;

/// How branches meet.
#[derive(Clone, Debug)]
pub struct Synchronization {
    /// How many must arrive.
    pub wait_for: WaitFor,
    /// How many are enough for `all`, and for a timeout that proceeds.
    pub min_success: Option<u32>,
    /// Is a join that became unreachable over at once, and not only when no branch is open?
    pub fail_fast: bool,
    /// What happens if too few can arrive.
    pub on_unreachable: OnUnreachable,
    /// What becomes of those that are late.
    pub on_late: OnLate,
    /// How long it waits.
    pub timeout: Option<JoinTimeout>,
    /// Where the run goes on after the join failed, with `error` bound.
    pub else_to: Option<NodeIndex>,
    /// What is put together. Empty if nothing is said of it.
    pub merge: Vec<Merge>,
}

/// How many branches must arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitFor {
    /// All that do not end on the way.
    #[default]
    All,
    /// The first.
    Any,
    /// So many.
    Count(u32),
    /// So many percent, 1 … 100, rounded up.
    Percent(u32),
}

/// What happens if too few branches can arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnreachable {
    /// `JOIN_UNREACHABLE`.
    #[default]
    Fail,
    /// It fires with what arrived, even with none.
    Proceed,
}

/// What becomes of branches that are late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLate {
    /// They end in the same record.
    #[default]
    Cancel,
    /// They run on, and nobody waits for them.
    Abandon,
}

/// How long a join waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinTimeout {
    /// So long.
    pub timeout_ms: u64,
    /// Since when.
    pub from: TimeoutFrom,
    /// What happens then.
    pub on_timeout: OnJoinTimeout,
}

/// Since when a join's time runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeoutFrom {
    /// The first branch that settled as arrived.
    #[default]
    FirstArrival,
    /// The fan-out.
    FanOut,
}

/// What happens when a join's time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnJoinTimeout {
    /// `JOIN_TIMEOUT`.
    #[default]
    Fail,
    /// It fires if `min_success` (default 1) arrived.
    ProceedWithAvailable,
}

/// One value per branch, put together.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The value of a branch, evaluated in its scope.
    pub source: Expression,
    /// Where the result goes; begins with `context`.
    pub target: Path,
    /// How they are put together.
    pub strategy: Strategy,
    /// Whether what is there stays.
    pub mode: MergeMode,
    /// What a branch without a value gives.
    pub missing: Missing,
    /// What counts if two branches differ; for `deep_merge`.
    pub on_conflict: OnMergeConflict,
    /// Does every settled branch give `{ok, index, key, value | error}`?
    pub include_failed: bool,
}

/// How the values of branches are put together, always by branch index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// A list, flattened one level if every value is a list.
    Append,
    /// A list, never flattened.
    Collect,
    /// Objects, one level; the higher index wins.
    Merge,
    /// Objects, all levels.
    DeepMerge,
    /// An object by foreach key, else by index.
    Keyed,
    /// The value of the highest arrived index.
    LastWins,
    /// The value of the first to arrive.
    FirstArrival,
}

/// Whether what is at the target stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeMode {
    /// It goes.
    #[default]
    Replace,
    /// It stays, and the result is added to it.
    Extend,
}

/// What a branch without a value gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// `null`.
    #[default]
    Null,
    /// Nothing.
    Skip,
    /// An error.
    Error,
}

/// What counts if two branches differ in a deep merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMergeConflict {
    /// The higher index.
    #[default]
    Last,
    /// The lower index.
    First,
    /// It is an error.
    Error,
}

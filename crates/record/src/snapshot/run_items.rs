//! The parts of a run in a snapshot. A run is a head, and then its other parts in this order; derived
//! facts are computed again. Values are bytes of their own (`values.rs`): the order of the fields
//! here is the order in which values are written and read.

use std::borrow::Cow;

use crate::codec::{message, one_of};
use crate::event::{
    BranchOutcome, CloseScope, Committed, GroupState, Json, LoopCount, RunState, StageArtifact,
    SubmitHash, Tag, TokenState,
};
use crate::id::{GroupId, Lsn, RunId, TaskId, TokenId};
use crate::name::Text;
use crate::time::{Clock, Timestamp, WallOffset};

one_of! {
    /// A part of a run.
    pub enum RunPart<'a> {
        /// The fields that a run has once. It comes first.
        1 => Head(HeadItem<'a>),
        /// A token.
        2 => Token(TokenItem<'a>),
        /// A group.
        3 => Group(GroupItem<'a>),
        /// A branch of the last group.
        4 => Branch(BranchItem<'a>),
        /// A kept output.
        5 => Kept(KeptItem<'a>),
        /// A kept signal.
        6 => Signal(SignalItem<'a>),
        /// The id of a signal.
        7 => SignalId(SignalIdItem<'a>),
    }
}

message! {
    /// A version of a workflow.
    pub struct WorkflowItem<'a> {
        /// Its name.
        1 => name: Text<'a>,
        /// Its version.
        2 => version: u32,
        /// When it was registered, by the wall clock.
        3 => registered_at: Timestamp,
        /// The definition as it was given; it is compiled when the state serves.
        4 => definition: Json,
        /// The names of its nodes, by their place.
        5 => nodes: Vec<Text<'a>>,
        /// How many transitions it has.
        6 => transitions: u32,
        /// How many groups of siblings it has.
        7 => groups: u32,
        /// The definition was deleted, and its number is not used again.
        8 => is_deleted: bool,
    }

    /// What a run has once.
    pub struct HeadItem<'a> {
        /// Its id.
        1 => id: RunId,
        /// The name of its workflow.
        2 => workflow: Text<'a>,
        /// The version of its workflow.
        3 => version: u32,
        /// Its state.
        4 => state: RunState,
        /// When it began, by the wall clock.
        5 => started_at: Timestamp,
        /// When it ended, by log time; zero while it runs.
        6 => finished_at: Timestamp,
        /// Once it has ended: how far the wall clock was from that moment of log time.
        40 => finished_offset: WallOffset,
        /// When it must have ended; zero for never.
        7 => deadline_at: Timestamp,
        /// The run that it is a child of.
        8 => parent: RunId,
        /// The token of the parent that waits for it.
        9 => parent_token: TokenId,
        /// Runs above it.
        10 => depth: u32,
        /// The last record of its history.
        11 => last_lsn: Lsn,
        /// Its input.
        12 => input: Cow<'a, [u8]>,
        /// Its output.
        13 => output: Cow<'a, [u8]>,
        /// Its error.
        14 => error: Cow<'a, [u8]>,
        /// The root scope.
        15 => root: ScopeItem<'a>,
        /// Its idempotency key.
        16 => key: Option<Text<'a>>,
        /// Its tags.
        17 => tags: Vec<Tag<'a>>,
        /// Signals received so far.
        18 => signal_count: u32,
        /// Tokens that follow.
        19 => tokens: u32,
        /// Groups that follow.
        20 => groups: u32,
        /// Kept outputs that follow.
        21 => kept: u64,
        /// Kept signals that follow.
        22 => signals: u32,
        /// Ids of signals that follow.
        23 => signal_ids: u32,
        /// Artifacts staged so far.
        24 => staged: u32,
        /// Artifacts that are committed.
        25 => artifacts: Vec<Committed<'a>>,
        /// The hash of the start under its key.
        31 => start_hash: Option<SubmitHash>,
        /// The run at the top of its tree.
        26 => top: RunId,
        /// Runs ever started below it, if it is the top.
        27 => descendants: u32,
        /// Set while the run ends as a whole.
        28 => ending: Option<EndingItem<'a>>,
        /// Branches that are ending.
        29 => ending_scopes: Vec<CloseScope>,
        /// Set while the run is parked.
        30 => parked: Option<ParkedItem<'a>>,
    }

    /// A run that ends as a whole.
    pub struct EndingItem<'a> {
        /// The state that it ends in.
        1 => state: RunState,
        /// The error that it ends with.
        2 => error: Cow<'a, [u8]>,
        /// When it began to end, by the wall clock.
        3 => since: Timestamp,
        /// Tokens up to this number have ended.
        4 => tokens_ended: u32,
        /// Groups above this number have closed.
        5 => groups_left: u32,
        /// Child runs that end with it; it is over after them.
        6 => children: u32,
        /// It is one of the children that its parent waits for.
        7 => holds_parent: bool,
    }

    /// Why a run is parked.
    pub struct ParkedItem<'a> {
        /// Why, for people.
        1 => reason: Text<'a>,
        /// Since when, by the wall clock.
        2 => at: Timestamp,
    }

    /// What a branch, or the root, has written. Its live tokens follow from tokens and groups.
    pub struct ScopeItem<'a> {
        /// The context.
        1 => context: Cow<'a, [u8]>,
        /// Outputs by node.
        2 => outputs: Cow<'a, [u8]>,
        /// The output of the scope.
        3 => output: Cow<'a, [u8]>,
        /// The output of the last node.
        4 => last: Cow<'a, [u8]>,
        /// Paths of the context that were written.
        5 => written: Vec<PathItem<'a>>,
        /// Nodes that have an output.
        6 => nodes: Vec<u32>,
        /// The branch is on its way to the join.
        7 => is_arriving: bool,
        /// Artifacts that were staged in it.
        8 => artifacts: Vec<StageArtifact<'a>>,
    }

    /// A path in the context.
    pub struct PathItem<'a> {
        /// The names, joined by dots.
        1 => path: Text<'a>,
    }

    /// A token. Tokens come in the order of their numbers.
    pub struct TokenItem<'a> {
        /// Its node, by index in the definition.
        1 => node: u32,
        /// The group of its branch.
        2 => group: GroupId,
        /// The index of its branch.
        3 => index: u32,
        /// The token that made it.
        4 => parent: TokenId,
        /// The transition that made it.
        5 => via: Option<u32>,
        /// Its state.
        6 => state: TokenState,
        /// When its node must be done; zero for never.
        7 => deadline_at: Timestamp,
        /// Counts of the loops on its way.
        8 => loops: Vec<LoopCount>,
        /// Its error.
        9 => error: Cow<'a, [u8]>,
        /// Its task. At most one of this field and the next three is set.
        10 => task: TaskId,
        /// Its child run.
        11 => child: RunId,
        /// The signal that it waits for.
        12 => signal: Option<WaitItem<'a>>,
        /// The moment that it waits for.
        13 => timer: Option<Timestamp>,
        /// The clock of that moment.
        14 => timer_clock: Clock,
    }

    /// What a token waits for.
    pub struct WaitItem<'a> {
        /// The signal's name.
        1 => name: Text<'a>,
        /// Its correlation; empty for none.
        2 => correlation: Text<'a>,
    }

    /// A group. Groups come in the order of their numbers; the branches follow while they are needed.
    pub struct GroupItem<'a> {
        /// The group, by index in the definition.
        1 => definition: u32,
        /// Its name.
        2 => name: Text<'a>,
        /// The token that opened it.
        3 => origin: TokenId,
        /// The group of the branch around it.
        4 => group: GroupId,
        /// The index of the branch around it.
        5 => index: u32,
        /// Branches in all.
        6 => total: u32,
        /// Arrivals that its join needs.
        7 => need: u32,
        /// Branches that may run at a time.
        8 => concurrency: u32,
        /// Its join promotes artifacts.
        9 => promotes: bool,
        /// Branches that have begun.
        10 => started: u32,
        /// Branches that arrived.
        11 => arrived: u32,
        /// Branches that failed.
        12 => failed: u32,
        /// Branches that were canceled.
        13 => canceled: u32,
        /// Branches that timed out.
        14 => timed_out: u32,
        /// Branches that ended before the join.
        15 => ended: u32,
        /// Its state.
        16 => state: GroupState,
        /// The token on which its branches meet.
        17 => fan_in: TokenId,
        /// When it must have fired; zero for never.
        18 => timeout_at: Timestamp,
        /// The first error of a branch.
        19 => first_error: Cow<'a, [u8]>,
        /// The transitions that opened its branches.
        20 => spawns: Vec<SpawnItem<'a>>,
        /// The context that its branches read.
        21 => context: Cow<'a, [u8]>,
        /// The outputs that its branches read.
        22 => outputs: Cow<'a, [u8]>,
        /// The outcome of all branches that have none of their own.
        23 => rest: BranchOutcome,
    }

    /// Branches that one transition opened.
    pub struct SpawnItem<'a> {
        /// The transition, by index in the definition.
        1 => transition: u32,
        /// The node that the branches begin at.
        2 => node: u32,
        /// Branches.
        3 => count: u32,
        /// The items of a foreach, one for each branch.
        4 => items: Cow<'a, [u8]>,
        /// The name under which a branch reads its item.
        5 => item_var: Text<'a>,
        /// The keys of a foreach, one for each branch.
        6 => keys: Cow<'a, [u8]>,
    }

    /// A branch that has begun. Branches come in the order of their indices.
    pub struct BranchItem<'a> {
        /// Its outcome.
        1 => outcome: BranchOutcome,
        /// Its place in the order of arrivals.
        2 => arrived_as: u32,
        /// Its scope, while it is needed.
        3 => scope: Option<ScopeItem<'a>>,
        /// What it left when it settled.
        4 => result: Option<ResultItem<'a>>,
    }

    /// What a settled branch left.
    pub struct ResultItem<'a> {
        /// The values that the merges of the join read.
        1 => values: Vec<ValueItem<'a>>,
        /// Its error.
        2 => error: Cow<'a, [u8]>,
        /// Artifacts that it staged.
        3 => artifacts: Vec<StageArtifact<'a>>,
    }

    /// A value, or none.
    pub struct ValueItem<'a> {
        /// The value; empty for none.
        1 => value: Cow<'a, [u8]>,
    }

    /// The output of a visit that is kept beside those of other branches.
    pub struct KeptItem<'a> {
        /// The node.
        1 => node: u32,
        /// The group of the branch.
        2 => group: GroupId,
        /// The indices of the branch and of those around it.
        3 => indices: Vec<u32>,
        /// The token.
        4 => token: TokenId,
        /// The output.
        5 => value: Cow<'a, [u8]>,
    }

    /// A signal that no token has waited for yet.
    pub struct SignalItem<'a> {
        /// Its place in the order of arrival.
        1 => number: u32,
        /// Its name.
        2 => name: Text<'a>,
        /// Its correlation; empty for none.
        3 => correlation: Text<'a>,
        /// Its payload.
        4 => payload: Cow<'a, [u8]>,
    }

    /// A signal that came with an id.
    pub struct SignalIdItem<'a> {
        /// The id.
        1 => id: Text<'a>,
        /// The hash of the signal under that id.
        2 => hash: Option<SubmitHash>,
    }
}

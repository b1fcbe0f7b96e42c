//! The parts of a run in a snapshot. A run is a head, and then its other parts in this order; what
//! follows from them is worked out again. Values are bytes of their own (`values.rs`): the order in
//! which they stand here is the order in which they are written and read.
#![allow(unreachable_pub, reason = "the macro makes its messages public")]

use std::borrow::Cow;

use crate::codec::{message, one_of};
use crate::event::{
    BranchOutcome, Committed, GroupState, Json, LoopCount, RunState, StageArtifact, Tag, TokenState,
};
use crate::id::{GroupId, Lsn, RunId, TaskId, TokenId};
use crate::name::Text;
use crate::time::Timestamp;

one_of! {
    /// A part of a run.
    pub enum RunPart<'a> {
        1 => Head(HeadItem<'a>),
        2 => Token(TokenItem<'a>),
        3 => Group(GroupItem<'a>),
        4 => Branch(BranchItem<'a>),
        5 => Kept(KeptItem<'a>),
        6 => Signal(SignalItem<'a>),
        7 => SignalId(SignalIdItem<'a>),
    }
}

message! {
    /// A version of a workflow.
    pub struct WorkflowItem<'a> {
        1 => name: Text<'a>,
        2 => version: u32,
        3 => registered_at: Timestamp,
        /// As it was given; it is compiled again.
        4 => definition: Json,
    }

    /// What a run has once.
    pub struct HeadItem<'a> {
        1 => id: RunId,
        2 => workflow: Text<'a>,
        3 => version: u32,
        4 => state: RunState,
        5 => started_at: Timestamp,
        6 => finished_at: Timestamp,
        7 => deadline_at: Timestamp,
        8 => parent: RunId,
        9 => parent_token: TokenId,
        10 => depth: u32,
        11 => last_lsn: Lsn,
        12 => input: Cow<'a, [u8]>,
        13 => output: Cow<'a, [u8]>,
        14 => error: Cow<'a, [u8]>,
        15 => root: ScopeItem<'a>,
        16 => key: Option<Text<'a>>,
        17 => tags: Vec<Tag<'a>>,
        18 => signal_count: u32,
        /// How many of each there are.
        19 => tokens: u32,
        20 => groups: u32,
        21 => kept: u64,
        22 => signals: u32,
        23 => signal_ids: u32,
        24 => staged: u32,
        25 => artifacts: Vec<Committed<'a>>,
    }

    /// What a branch, or the root, has written. What is live in it follows from tokens and groups.
    pub struct ScopeItem<'a> {
        1 => context: Cow<'a, [u8]>,
        2 => outputs: Cow<'a, [u8]>,
        3 => output: Cow<'a, [u8]>,
        4 => last: Cow<'a, [u8]>,
        5 => written: Vec<PathItem<'a>>,
        6 => nodes: Vec<u32>,
        7 => is_arriving: bool,
        8 => artifacts: Vec<StageArtifact<'a>>,
    }

    /// A path in the context.
    pub struct PathItem<'a> {
        1 => path: Text<'a>,
    }

    /// A token, the one after the last.
    pub struct TokenItem<'a> {
        1 => node: u32,
        2 => group: GroupId,
        3 => index: u32,
        4 => parent: TokenId,
        5 => via: Option<u32>,
        6 => state: TokenState,
        7 => deadline_at: Timestamp,
        8 => loops: Vec<LoopCount>,
        9 => error: Cow<'a, [u8]>,
        /// What moves it on: at most one of these.
        10 => task: TaskId,
        11 => child: RunId,
        12 => signal: Option<WaitItem<'a>>,
        13 => timer: Option<Timestamp>,
    }

    /// What a token waits for.
    pub struct WaitItem<'a> {
        1 => name: Text<'a>,
        2 => correlation: Text<'a>,
    }

    /// A group, the one after the last. Its branches follow, if it still needs them.
    pub struct GroupItem<'a> {
        1 => definition: u32,
        2 => name: Text<'a>,
        3 => origin: TokenId,
        4 => group: GroupId,
        5 => index: u32,
        6 => total: u32,
        7 => need: u32,
        8 => concurrency: u32,
        9 => promotes: bool,
        10 => started: u32,
        11 => arrived: u32,
        12 => failed: u32,
        13 => canceled: u32,
        14 => timed_out: u32,
        15 => ended: u32,
        16 => state: GroupState,
        17 => fan_in: TokenId,
        18 => timeout_at: Timestamp,
        19 => first_error: Cow<'a, [u8]>,
        20 => spawns: Vec<SpawnItem<'a>>,
        21 => context: Cow<'a, [u8]>,
        22 => outputs: Cow<'a, [u8]>,
    }

    /// Branches that one transition opened.
    pub struct SpawnItem<'a> {
        1 => transition: u32,
        2 => node: u32,
        3 => count: u32,
        4 => items: Cow<'a, [u8]>,
        5 => item_var: Text<'a>,
        6 => keys: Cow<'a, [u8]>,
    }

    /// A branch that has begun, the one after the last of its group.
    pub struct BranchItem<'a> {
        1 => outcome: BranchOutcome,
        2 => arrived_as: u32,
        3 => scope: Option<ScopeItem<'a>>,
        4 => result: Option<ResultItem<'a>>,
    }

    /// What a settled branch left.
    pub struct ResultItem<'a> {
        1 => values: Vec<ValueItem<'a>>,
        2 => error: Cow<'a, [u8]>,
        3 => artifacts: Vec<StageArtifact<'a>>,
    }

    /// A value, or none.
    pub struct ValueItem<'a> {
        1 => value: Cow<'a, [u8]>,
    }

    /// The output of a visit that is kept beside those of other branches.
    pub struct KeptItem<'a> {
        1 => node: u32,
        2 => group: GroupId,
        3 => indices: Vec<u32>,
        4 => token: TokenId,
        5 => value: Cow<'a, [u8]>,
    }

    /// A signal that nobody has waited for yet.
    pub struct SignalItem<'a> {
        1 => number: u32,
        2 => name: Text<'a>,
        3 => correlation: Text<'a>,
        4 => payload: Cow<'a, [u8]>,
    }

    /// A signal that came with an id.
    pub struct SignalIdItem<'a> {
        1 => id: Text<'a>,
    }
}

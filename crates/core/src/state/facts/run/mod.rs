//! A run as the state holds it: a head that is copied freely, its tokens, and its groups with their
//! branches. Values are shared, so a copy of any of these costs a few words.

mod bytes;
mod ending;
mod signals;
mod stored;
mod versions;
mod workflow;

use std::sync::Arc;

use smallvec::SmallVec;
use tenure_record::artifact::Sha256;
use tenure_record::event::{BranchOutcome, GroupState, RunState, SubmitHash, TokenState};
use tenure_record::id::{GroupId, Lsn, RunId, TaskId, TokenId};
use tenure_record::time::{Clock, Timestamp, WallOffset};
use tenure_value::{Path, Value};

pub(crate) use self::bytes::{
    branch_bytes, group_bytes, head_bytes, kept_bytes, signal_id_bytes, token_bytes,
};
pub(crate) use self::ending::{EndingRoot, EndingScope, Endings, Parked};
pub(crate) use self::signals::{KeptSignal, KeptSignals};
pub(crate) use self::stored::{KeptKey, StoredGroup, StoredRun};
pub(crate) use self::versions::Versions;
pub(crate) use self::workflow::{Outline, Workflow};

/// Where values live: the root of a run, or a branch of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ScopeRef {
    /// Zero for the root.
    pub group: GroupId,
    pub index: u32,
}

impl ScopeRef {
    pub(crate) const ROOT: Self = Self { group: GroupId::NONE, index: 0 };

    pub(crate) fn is_root(self) -> bool {
        self.group == GroupId::NONE
    }
}

/// What a command needs of a run often.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub workflow: Arc<Workflow>,
    pub input: Value,
    pub state: RunState,
    /// By the wall clock: nothing is compared with it.
    pub started_at: Timestamp,
    /// By log time, which retention counts from; zero while it runs.
    pub finished_at: Timestamp,
    /// How far the wall clock was from that moment.
    pub finished_offset: WallOffset,
    /// Zero for none.
    pub deadline_at: Timestamp,
    pub output: Option<Value>,
    pub error: Option<Value>,
    pub root: Arc<Scope>,
    pub parent: Option<(RunId, TokenId)>,
    /// The run at the top of its tree of child runs; itself if it has no parent.
    pub top: RunId,
    /// Child runs ever started in its tree, counted at the top only.
    pub descendants: u32,
    /// How many runs are above it.
    pub depth: u32,
    /// How many groups there were.
    pub groups: u32,
    /// How many tokens there were.
    pub tokens: u32,
    pub live: u32,
    /// Live tokens that are neither waiting for something outside nor for siblings.
    pub busy: u32,
    /// Branches of groups that have not begun.
    pub unstarted: u64,
    pub rare: Option<Arc<RareRun>>,
    /// What of it is ending, over several records.
    pub endings: Option<Arc<Endings>>,
    /// Why it stands still, if it does.
    pub parked: Option<Arc<Parked>>,
    /// How many artifacts it was handed, those included that were dropped.
    pub staged: u32,
    /// What it leaves behind, once it is over.
    pub artifacts: Option<Arc<[CommittedArtifact]>>,
    /// The last record of its history.
    pub last_lsn: Lsn,
}

impl Run {
    /// Whether all that is live in it waits for a signal, a timer or a child.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state == RunState::Running
            && self.busy == 0
            && self.unstarted == 0
            && self.ending_root().is_none()
            && self.parked.is_none()
    }

    /// Whether nothing in it may move: it is parked, or its definition no longer compiles.
    pub(crate) fn stands_still(&self) -> bool {
        !self.state.is_terminal() && (self.parked.is_some() || self.workflow.is_broken())
    }

    /// How the run will end, if it is ending as a whole.
    pub(crate) fn ending_root(&self) -> Option<&EndingRoot> {
        self.endings.as_ref()?.root.as_ref()
    }
}

/// What few runs have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RareRun {
    pub key: Option<Arc<str>>,
    /// What the start looked like; absent without a key, or if its record did not say.
    pub start_hash: Option<SubmitHash>,
    pub tags: Vec<(Arc<str>, Arc<str>)>,
    /// Signals that no token has waited for yet, oldest first.
    pub signals: KeptSignals,
    /// Signals that came, kept or not.
    pub signal_count: u32,
}

/// A file that was handed in with a completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Staged {
    pub name: Arc<str>,
    pub media_type: Arc<str>,
    pub bytes: u64,
    pub sha256: Sha256,
    pub token: TokenId,
}

/// A file that a run leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommittedArtifact {
    /// What it is called now.
    pub name: Arc<str>,
    pub staged: Arc<Staged>,
}

/// What a branch, or the root, has written, and what is live in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// What it reads: the snapshot at its fork with its own writes.
    pub context: Value,
    pub outputs: Value,
    /// Its output, if a mapping has set it.
    pub output: Option<Value>,
    /// The last completed node's output.
    pub last: Option<Value>,
    /// What it has written to the context.
    pub written: Vec<Path>,
    /// The nodes whose outputs it has written.
    pub nodes: Vec<u32>,
    /// Its own live tokens, in order.
    pub tokens: SmallVec<[TokenId; 2]>,
    /// Groups that were opened in it and in which something may be live, in order.
    pub groups: SmallVec<[GroupId; 2]>,
    /// Those of them that are open, and hold it open.
    pub open_groups: u32,
    /// A token of it came to the join.
    pub is_arriving: bool,
    /// Files that its completions handed in, and those of branches that met in it.
    pub artifacts: Vec<Arc<Staged>>,
}

impl Scope {
    /// Whether nothing in it, or deeper, holds it open.
    pub(crate) fn is_quiet(&self) -> bool {
        self.tokens.is_empty() && self.open_groups == 0
    }

    /// What the branch gives.
    pub(crate) fn branch_output(&self) -> Option<&Value> {
        self.output.as_ref().or(self.last.as_ref())
    }

    /// About how many bytes it reads.
    pub(crate) fn bytes(&self) -> usize {
        self.context.bytes().saturating_add(self.outputs.bytes())
    }
}

/// A place in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub node: u32,
    pub scope: ScopeRef,
    pub parent: TokenId,
    /// The transition it took; none for the first.
    pub via: Option<u32>,
    pub state: TokenState,
    pub work: Work,
    /// Zero for none.
    pub deadline_at: Timestamp,
    /// How often its line took the transitions that count.
    pub loops: Option<Arc<[(u32, u32)]>>,
    /// The error it deals with; once it failed, its own.
    pub error: Option<Arc<Value>>,
}

impl Token {
    /// Its task, if it has one.
    pub(crate) fn task(&self) -> Option<TaskId> {
        match self.work {
            Work::Task(id) => Some(id),
            Work::Nothing | Work::Child(_) | Work::Signal(_) | Work::Timer(..) => None,
        }
    }
}

/// What moves a token on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Work {
    /// The cascade itself.
    #[default]
    Nothing,
    Task(TaskId),
    Child(RunId),
    Signal(Arc<(Arc<str>, Arc<str>)>),
    /// A moment: of log time after a delay, of the wall clock for `until`.
    Timer(Timestamp, Clock),
}

/// A fan-out and its fan-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Its place in the definition.
    pub definition: u32,
    pub name: Arc<str>,
    pub origin: TokenId,
    /// Where it was opened.
    pub scope: ScopeRef,
    pub depth: u32,
    pub total: u32,
    pub need: u32,
    /// How many run at a time; zero for all.
    pub concurrency: u32,
    pub promotes: bool,
    /// Branches that have begun; the rest begins in order.
    pub started: u32,
    /// Branches that began and have not settled.
    pub running: u32,
    pub arrived: u32,
    pub failed: u32,
    pub canceled: u32,
    pub timed_out: u32,
    pub ended: u32,
    /// How its branches count that are stored as open and have settled with the rest of them;
    /// `Open` if there are none.
    pub rest: BranchOutcome,
    /// Scopes of it that are ending. Its branches are kept until there are none.
    pub ending: u32,
    pub state: GroupState,
    /// Zero until the first branch arrives.
    pub fan_in: TokenId,
    /// Zero for none.
    pub timeout_at: Timestamp,
    /// Why the first of its branches to fail did.
    pub first_error: Option<Value>,
    pub spawns: Arc<[Spawn]>,
    /// What its branches begin with.
    pub context: Value,
    pub outputs: Value,
}

/// Branches that one transition opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spawn {
    pub transition: u32,
    pub node: u32,
    /// The first index.
    pub first: u32,
    pub count: u32,
    pub items: Option<Value>,
    pub item_var: Arc<str>,
    pub keys: Option<Value>,
}

impl Group {
    /// Branches that have not settled, begun or not.
    pub(crate) fn open(&self) -> u32 {
        self.running + (self.total - self.settled() - self.running)
    }

    /// Branches that have settled.
    pub(crate) fn settled(&self) -> u32 {
        self.arrived + self.failed + self.canceled + self.timed_out + self.ended
    }

    /// Branches that have not begun and still will.
    pub(crate) fn unstarted(&self) -> u32 {
        self.total - self.settled() - self.running
    }

    /// How many more branches may begin now.
    pub(crate) fn room(&self) -> u32 {
        let room = match self.concurrency {
            0 => u32::MAX,
            most => most.saturating_sub(self.running),
        };
        room.min(self.unstarted())
    }

    /// What opened a branch.
    pub(crate) fn spawn_of(&self, index: u32) -> &Spawn {
        let at = self.spawns.partition_point(|spawn| spawn.first <= index);
        &self.spawns[at - 1]
    }

    /// A branch's item, if it is for one.
    pub(crate) fn item(&self, index: u32) -> Option<&Value> {
        let spawn = self.spawn_of(index);
        spawn.items.as_ref()?.as_list()?.as_slice().get((index - spawn.first) as usize)
    }

    /// A branch's key, if it has one.
    pub(crate) fn key(&self, index: u32) -> Option<&Value> {
        let spawn = self.spawn_of(index);
        spawn.keys.as_ref()?.as_list()?.as_slice().get((index - spawn.first) as usize)
    }
}

/// A branch that has begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Branch {
    pub outcome: BranchOutcome,
    /// Its place among those that arrived, from 1.
    pub arrived_as: u32,
    /// While it runs, and until its group has fired if its changes may be promoted.
    pub scope: Option<Arc<Scope>>,
    /// What it gives to the merges, or why it failed.
    pub result: Option<Arc<BranchResult>>,
}

/// What a settled branch left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BranchResult {
    /// For each merge of the join: a value, or none.
    pub values: SmallVec<[Option<Value>; 1]>,
    pub error: Option<Value>,
    /// Files that go on if it counts.
    pub artifacts: Vec<Arc<Staged>>,
}

//! Decisions: what becomes of a run, as data. A record that moves a run carries them in the order
//! in which they were taken, and `apply` stores what each one says.

use super::items::{Created, SubmitHash, Tag};
use super::json::Json;
use super::names::{
    BranchOutcome, GroupState, MergeConflict, MergeMissing, MergeMode, MergeStrategy, RunState,
    TimerKind, TokenState,
};
use super::rows::{StoppedRows, TokenRows};
use crate::artifact::Sha256;
use crate::codec::{Field, Malformed, Message, Numbers, Reader, Wire, message, one_of};
use crate::id::{GroupId, Lsn, RunId, TokenId};
use crate::name::Text;
use crate::terms::Priority;
use crate::time::{Clock, Timestamp};

/// One decision about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Which run.
    pub run_id: RunId,
    /// The record before this one in the run's history; only on the first decision about the run
    /// in a record.
    pub previous: Lsn,
    /// What was decided.
    pub step: Step<'a>,
}

const RUN_ID: u32 = 1;
const PREVIOUS: u32 = 2;

impl<'a> Message<'a> for Decision<'a> {
    const NAME: &'static str = "Decision";
    const FIELDS: Numbers = &[("run_id", RUN_ID), ("previous", PREVIOUS)];

    fn put_fields(&self, out: &mut Vec<u8>) {
        self.run_id.put_unless_default(RUN_ID, out);
        self.previous.put_unless_default(PREVIOUS, out);
        self.step.put_one(out);
    }

    fn take_field(&mut self, tag: u32, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        match tag {
            RUN_ID => self.run_id.take(wire, from),
            PREVIOUS => self.previous.take(wire, from),
            _ => {
                self.step = Step::take_one(tag, wire, from)?;
                Ok(())
            }
        }
    }
}

one_of! {
    /// What can be decided. (16 is for clearing a timer, which goes with its owner today.)
    pub enum Step<'a> {
        /// Tokens begin.
        3 => CreateTokens(CreateTokens<'a>),
        /// A fan-out: its branches exist from here on, and begin as there is room.
        4 => OpenGroup(OpenGroup<'a>),
        /// The first branch arrived: the token on which the others meet it.
        5 => CreateFanInToken(CreateFanInToken),
        /// The branches have met; their token goes on.
        6 => ActivateFanInToken(ActivateFanInToken),
        /// Tokens are now so.
        7 => UpdateTokenStates(UpdateTokenStates),
        /// Branches have come to an end.
        8 => SettleBranch(SettleBranch),
        /// Tokens have something that will move them on.
        9 => MarkForDispatch(MarkForDispatch<'a>),
        /// A node's result is kept.
        10 => ApplyNodeOutput(ApplyNodeOutput),
        /// A scope's context changes.
        11 => SetContext(SetContext<'a>),
        /// What the branches gave is put together in the scope around them.
        12 => MergeBranches(MergeBranches<'a>),
        /// A group is over; what its branches held goes.
        13 => DropBranches(DropBranches),
        /// Tokens end because nobody needs them, and their tasks with them.
        14 => CancelTokens(CancelTokens<'a>),
        /// A moment at which something happens if nothing else does before.
        15 => SetTimer(SetTimer),
        /// A run of another workflow begins.
        17 => StartChild(StartChild<'a>),
        /// The run is over.
        19 => FinishRun(FinishRun<'a>),
        /// A signal that was kept is given to a token.
        20 => TakeSignal(TakeSignal),
        /// A completion handed in a file; it is staged in the scope of its token.
        18 => StageArtifact(StageArtifact<'a>),
        /// What branches have staged goes to the scope around them.
        21 => PromoteArtifacts(PromoteArtifacts),
        /// A scope with more in it than one record may end begins to end. Its outcome is fixed here;
        /// the records that follow list what ends.
        22 => EndScope(EndScope),
        /// Nothing is left of a scope that was ending.
        23 => CloseScope(CloseScope),
    }
}

impl Default for Step<'_> {
    fn default() -> Self {
        Step::UpdateTokenStates(UpdateTokenStates::default())
    }
}

message! {
    /// Tokens begin.
    pub struct CreateTokens<'a> {
        /// In the order of their numbers.
        1 => tokens: Vec<NewToken<'a>>,
    }

    /// A token begins. The first token in a branch begins the branch.
    pub struct NewToken<'a> {
        /// Its number.
        1 => token: TokenId,
        /// Its node, by its place in the definition.
        2 => node: u32,
        /// The group of its scope; zero for the root.
        3 => group: GroupId,
        /// The branch of its scope.
        4 => index: u32,
        /// The token that it comes from; zero for the first.
        5 => parent: TokenId,
        /// The transition that it took, by its place in the definition.
        6 => via: Option<u32>,
        /// How often its line took transitions that count.
        7 => loops: Vec<LoopCount>,
        /// The error that it was sent to deal with.
        8 => error: Option<Json>,
        /// What the transition's condition read, as JSON; empty if there was none.
        9 => why: Text<'a>,
    }

    /// How often a token's line took a transition.
    pub struct LoopCount {
        /// The transition, by its place in the definition.
        1 => transition: u32,
        /// How often.
        2 => count: u32,
    }

    /// A fan-out.
    pub struct OpenGroup<'a> {
        /// Its number.
        1 => group: GroupId,
        /// What it is called in the definition, by place.
        2 => definition: u32,
        /// Its name.
        3 => name: Text<'a>,
        /// The token that was routed.
        4 => origin: TokenId,
        /// How many branches there are.
        5 => total: u32,
        /// How many must arrive, as it looks now; zero if nothing joins them.
        6 => need: u32,
        /// How many run at a time; zero for all.
        7 => concurrency: u32,
        /// Whether the winner's changes become those of the scope around it.
        8 => promotes: bool,
        /// What opens the branches, in the order of their indices.
        9 => spawns: Vec<Spawned<'a>>,
    }

    /// Branches that one transition opens.
    pub struct Spawned<'a> {
        /// The transition, by its place in the definition.
        1 => transition: u32,
        /// The node where they begin.
        2 => node: u32,
        /// How many.
        3 => count: u32,
        /// The list that they are for, one item each.
        4 => items: Option<Json>,
        /// What the item is called in the branch.
        5 => item_var: Text<'a>,
        /// The items' keys, a list of texts.
        6 => keys: Option<Json>,
        /// What the transition's condition read, as JSON; empty if there was none.
        7 => why: Text<'a>,
    }

    /// The token on which branches meet.
    pub struct CreateFanInToken {
        /// The group.
        1 => group: GroupId,
        /// The token's number.
        2 => token: TokenId,
        /// Its node.
        3 => node: u32,
        /// The transition that joins.
        4 => via: Option<u32>,
    }

    /// The branches have met.
    pub struct ActivateFanInToken {
        /// The group.
        1 => group: GroupId,
        /// The token that goes on.
        2 => token: TokenId,
    }

    /// Tokens are now so.
    pub struct UpdateTokenStates {
        /// Which, and how.
        1 => tokens: Vec<TokenUpdate>,
    }

    /// A token is now so.
    pub struct TokenUpdate {
        /// Which token.
        1 => token: TokenId,
        /// How it is.
        2 => state: TokenState,
        /// Why it failed.
        3 => error: Option<Json>,
        /// The groups to whose joins it came; its branch arrives when nothing in it is live.
        4 => arrives: Vec<GroupId>,
    }

    /// Branches have come to an end.
    pub struct SettleBranch {
        /// The group.
        1 => group: GroupId,
        /// The first of them.
        2 => index: u32,
        /// How many, one after the other.
        3 => count: u32,
        /// How they ended.
        4 => outcome: BranchOutcome,
        /// What an arrived branch gives to each merge of its join.
        5 => values: Vec<BranchValue>,
        /// Why a branch failed.
        6 => error: Option<Json>,
        /// They are all that had not settled, wherever they stand; `index` says nothing.
        7 => rest: bool,
    }

    /// What a branch gives to a merge.
    pub struct BranchValue {
        /// The value, unless it is the branch's output or there is none.
        1 => value: Option<Json>,
        /// It is the branch's output, which is in the state.
        2 => is_output: bool,
    }

    /// Tokens have something that will move them on.
    pub struct MarkForDispatch<'a> {
        /// Which, and what.
        1 => tokens: Vec<Dispatched<'a>>,
    }

    /// A token has something that will move it on.
    pub struct Dispatched<'a> {
        /// Which token.
        1 => token: TokenId,
        /// How it waits.
        2 => state: TokenState,
        /// Its task, which is new.
        3 => task: Option<Created<'a>>,
        /// What tells the signal that it waits for from others of the name.
        4 => correlation: Option<Text<'a>>,
        /// The signal that it waits for.
        5 => signal: Option<Text<'a>>,
    }

    /// A node's result is kept.
    pub struct ApplyNodeOutput {
        /// The token whose node is done.
        1 => token: TokenId,
        /// The result; absent if it is that of the item that this decision belongs to.
        2 => output: Option<Json>,
        /// Whether it is kept beside those of other branches.
        4 => keep: bool,
    }

    /// A scope's context changes.
    pub struct SetContext<'a> {
        /// The scope's group; zero for the root.
        1 => group: GroupId,
        /// The scope's branch.
        2 => index: u32,
        /// What is set, in this order.
        3 => writes: Vec<Write<'a>>,
    }

    /// One thing that is set.
    pub struct Write<'a> {
        /// Where: below `context`, or `branch.output`.
        1 => path: Text<'a>,
        /// What.
        2 => value: Json,
    }

    /// What the branches gave is put together.
    pub struct MergeBranches<'a> {
        /// The group.
        1 => group: GroupId,
        /// The version of the rules of merging.
        2 => version: u32,
        /// What is put together, in this order.
        3 => merges: Vec<MergeInto<'a>>,
        /// The branch whose changes become those of the scope around it.
        4 => promote: Option<u32>,
        /// How many branches had arrived.
        5 => arrived: u32,
    }

    /// One thing that is put together.
    pub struct MergeInto<'a> {
        /// Where the result goes.
        1 => target: Text<'a>,
        /// How.
        2 => strategy: MergeStrategy,
        /// Whether what is there stays.
        3 => mode: MergeMode,
        /// What a branch without a value gives.
        4 => missing: MergeMissing,
        /// What counts if two differ.
        5 => on_conflict: MergeConflict,
        /// Whether every settled branch gives `{ok, index, key, value | error}`.
        6 => include_failed: bool,
    }

    /// A group is over.
    pub struct DropBranches {
        /// The group.
        1 => group: GroupId,
        /// How it is now.
        2 => state: GroupState,
    }

    /// Tokens end because nobody needs them. (1 was a plain list of them.)
    pub struct CancelTokens<'a> {
        /// Their tasks, which are CANCELED, leased or not.
        2 => tasks: Vec<StoppedTasks<'a>>,
        /// Which.
        3 => tokens: TokenRows,
    }

    /// Tasks of one queue and worker that end with their tokens. (3 was a plain list of them.)
    pub struct StoppedTasks<'a> {
        /// Their queue.
        1 => queue: Text<'a>,
        /// Their priority.
        2 => priority: Priority,
        /// Who holds them; empty for nobody.
        4 => worker: Text<'a>,
        /// Which.
        5 => tasks: StoppedRows,
    }

    /// A moment at which something happens if nothing else does before.
    pub struct SetTimer {
        /// What it means.
        1 => kind: TimerKind,
        /// The token, if it is a token's.
        2 => token: TokenId,
        /// The group, if it is a group's.
        3 => group: GroupId,
        /// When.
        4 => at: Timestamp,
        /// By which clock: the wall clock for `until`.
        5 => clock: Clock,
    }

    /// A run of another workflow begins.
    pub struct StartChild<'a> {
        /// The token that waits for it.
        1 => token: TokenId,
        /// The new run.
        2 => run: RunBegun<'a>,
    }

    /// A new run.
    pub struct RunBegun<'a> {
        /// Its number.
        1 => run_id: RunId,
        /// Its workflow.
        2 => workflow: Text<'a>,
        /// The version, which stays.
        3 => version: u32,
        /// What it was given.
        4 => input: Json,
        /// Its context at the start.
        5 => context: Json,
        /// When it must be over, by log time; zero for never.
        6 => deadline_at: Timestamp,
        /// Makes the same start give the same run.
        7 => key: Option<Text<'a>>,
        /// Labels for people, ordered by key.
        8 => tags: Vec<Tag<'a>>,
        /// The run that it is a child of; zero for none.
        9 => parent: RunId,
        /// The token there that waits for it.
        10 => parent_token: TokenId,
        /// How many runs are above it.
        11 => depth: u32,
        /// The run at the top of its tree; zero if it is that run.
        12 => root: RunId,
        /// What the start looked like, to tell it from another one under the same key. Absent without
        /// a key.
        13 => start_hash: Option<SubmitHash>,
    }

    /// The run is over.
    pub struct FinishRun<'a> {
        /// How.
        1 => state: RunState,
        /// What came out.
        2 => output: Option<Json>,
        /// Why it could not go on.
        3 => error: Option<Json>,
        /// The artifacts that are committed with it.
        4 => artifacts: Vec<Committed<'a>>,
    }

    /// A scope begins to end.
    pub struct EndScope {
        /// The scope's group; zero for the root, with which the run ends.
        1 => group: GroupId,
        /// The scope's branch; absent for all branches of the group that have not settled.
        2 => index: Option<u32>,
        /// How the run ends, if the scope is the root.
        3 => state: RunState,
        /// Why, if the scope is the root.
        4 => error: Option<Json>,
    }

    /// Nothing is left of a scope that was ending.
    pub struct CloseScope {
        /// The scope's group.
        1 => group: GroupId,
        /// The scope's branch; absent for all branches of the group.
        2 => index: Option<u32>,
    }

    /// A file.
    pub struct ArtifactItem<'a> {
        /// What it was called when it was handed in.
        1 => name: Text<'a>,
        /// What kind of file it is.
        2 => media_type: Text<'a>,
        /// How long it is.
        3 => bytes: u64,
        /// Where its bytes are.
        4 => sha256: Sha256,
    }

    /// A completion handed in a file.
    pub struct StageArtifact<'a> {
        /// Whose completion.
        1 => token: TokenId,
        /// The file.
        2 => artifact: ArtifactItem<'a>,
    }

    /// What branches have staged goes to the scope around them.
    pub struct PromoteArtifacts {
        /// The group.
        1 => group: GroupId,
        /// Its branches that count.
        2 => branches: Vec<u32>,
    }

    /// A file that a run leaves behind.
    pub struct Committed<'a> {
        /// What it is called now.
        1 => name: Text<'a>,
        /// Whose completion handed it in.
        2 => token: TokenId,
        /// The file.
        3 => artifact: ArtifactItem<'a>,
    }

    /// A signal that was kept is given to a token.
    pub struct TakeSignal {
        /// Which token.
        1 => token: TokenId,
        /// Which signal, by its number in the run.
        2 => signal: u32,
    }
}

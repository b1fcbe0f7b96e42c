//! What happens to workflows and their runs from outside, or because of the time.

use super::decision::{Decision, RunBegun};
use super::items::SubmitHash;
use super::json::Json;
use crate::codec::message;
use crate::id::{GroupId, Lsn, RunId, TokenId};
use crate::name::Text;
use crate::time::Timestamp;

message! {
    /// A definition, checked.
    pub struct WorkflowRegistered<'a> {
        /// The workflow's name.
        1 => name: Text<'a>,
        /// Its version: one more than the last of that name.
        2 => version: u32,
        /// The definition as it was given, as JSON with its keys in order.
        3 => definition: Json,
        /// The names of its nodes, by their place: decisions name places.
        4 => nodes: Vec<Text<'a>>,
        /// How many transitions it has.
        5 => transitions: u32,
        /// How many groups of siblings it has.
        6 => groups: u32,
    }

    /// A definition was deleted: one version, or all of them.
    pub struct WorkflowDeleted<'a> {
        /// The workflow's name.
        1 => name: Text<'a>,
        /// The version; zero for all.
        2 => version: u32,
    }

    /// A run begins.
    pub struct RunStarted<'a> {
        /// The run.
        1 => run: RunBegun<'a>,
        /// What was decided at once.
        2 => cascade: Vec<Decision<'a>>,
    }

    /// Runs begin together, all or none.
    pub struct RunsStarted<'a> {
        /// The runs, in the order in which they were asked for.
        1 => runs: Vec<RunStarted<'a>>,
    }

    /// A signal by key begins the run that holds the key from here on, and is its first news.
    pub struct RunStartedBySignal<'a> {
        /// The start.
        1 => start: RunStarted<'a>,
        /// The signal.
        2 => signal: SignalReceived<'a>,
    }

    /// News from outside for a run.
    pub struct SignalReceived<'a> {
        /// The run.
        1 => run_id: RunId,
        /// The signal's name.
        2 => name: Text<'a>,
        /// What tells it from others of the name; empty for none.
        3 => correlation: Text<'a>,
        /// Makes the same signal count once.
        4 => signal_id: Option<Text<'a>>,
        /// What it says.
        5 => payload: Json,
        /// The token that it is for; zero if none waits, and it is kept for the next.
        6 => token: TokenId,
        /// The record before this one in the run's history.
        7 => previous: Lsn,
        /// What was decided.
        8 => cascade: Vec<Decision<'a>>,
        /// What the signal looked like, to tell it from another one under the same id. Absent without
        /// an id.
        9 => signal_hash: Option<SubmitHash>,
    }

    /// A client wants a run to stop.
    pub struct RunCancelRequested<'a> {
        /// The run.
        1 => run_id: RunId,
        /// What was decided.
        2 => cascade: Vec<Decision<'a>>,
    }

    /// More branches of wide groups begin.
    pub struct DispatchContinued<'a> {
        /// What was decided.
        1 => cascade: Vec<Decision<'a>>,
    }

    /// More of what is ending ended.
    pub struct EndContinued<'a> {
        /// What was decided.
        1 => cascade: Vec<Decision<'a>>,
        /// The bound of tokens, tasks and child runs by which it was decided.
        2 => items_max: u32,
    }

    /// A run cannot go on by itself: what comes next does not fit a record. It stands still until
    /// an operator cancels or unparks it.
    pub struct RunParked<'a> {
        /// The run.
        1 => run_id: RunId,
        /// Why, for people.
        2 => reason: Text<'a>,
        /// The record before this one in the run's history.
        3 => previous: Lsn,
    }

    /// An operator lets a parked run go on.
    pub struct RunUnparked {
        /// The run.
        1 => run_id: RunId,
        /// The record before this one in the run's history.
        2 => previous: Lsn,
    }

    /// A run that took too long.
    pub struct RunDeadlinePassed<'a> {
        /// The run.
        1 => run_id: RunId,
        /// When it should have been over.
        2 => deadline_at: Timestamp,
        /// What was decided.
        3 => cascade: Vec<Decision<'a>>,
    }

    /// A join that waited too long.
    pub struct JoinTimedOut<'a> {
        /// The run.
        1 => run_id: RunId,
        /// The group.
        2 => group: GroupId,
        /// When it should have fired.
        3 => deadline_at: Timestamp,
        /// What was decided.
        4 => cascade: Vec<Decision<'a>>,
    }

    /// A token's moment: its node took too long, or its timer is due.
    pub struct TokenDue<'a> {
        /// The run.
        1 => run_id: RunId,
        /// The token.
        2 => token: TokenId,
        /// The moment.
        3 => at: Timestamp,
        /// What was decided.
        4 => cascade: Vec<Decision<'a>>,
    }

    /// Which run a task belongs to.
    pub struct RunLink<'a> {
        /// The run.
        1 => run_id: RunId,
        /// The token whose task it is.
        2 => token: TokenId,
        /// The token's node.
        3 => node: Text<'a>,
    }
}

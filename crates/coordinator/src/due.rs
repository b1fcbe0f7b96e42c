//! What retention lets go, for whoever archives it first: shown as it is, and forgotten only when
//! it is named again.

use tenure_core::Rejection;
use tenure_core::command::{Archived, Command, Rest, Swept};
use tenure_core::limits::LIST_ITEMS_MAX;
use tenure_log::{Log, Room};
use tenure_record::id::{Lsn, TokenId};
use tenure_record::time::{Now, Timestamp};

use crate::info::TaskInfo;
use crate::limits::{ARCHIVE_RUNS_MAX, ARCHIVE_TASKS_MAX};
use crate::refusal::Refusal;
use crate::request::ListRunTasks;
use crate::run_info::RunInfo;
use crate::step::Coordinator;

/// What is to be archived, as it is now.
#[derive(Clone, Debug)]
pub struct DueItems {
    /// Tasks of no run.
    pub tasks: Vec<TaskInfo>,
    /// Runs. Their tasks are asked for a page at a time.
    pub runs: Vec<RunInfo>,
    /// All that happened up to this record is in them.
    pub as_of: Lsn,
    /// Whether there is more.
    pub rest: Rest,
    /// Log time.
    pub now: Timestamp,
    /// The wall clock.
    pub wall: Timestamp,
    /// When the next is due after these, by log time, as far as is known now.
    pub next_at: Option<Timestamp>,
}

/// A page of a run's tasks.
#[derive(Clone, Debug)]
pub struct RunTasks {
    /// By their tokens. May be none while `next` is set.
    pub tasks: Vec<TaskInfo>,
    /// Where to go on: ask for those after this token.
    pub next: Option<TokenId>,
}

impl<L: Log> Coordinator<L> {
    /// What is due, a little of it. Nothing while the disk is nearly full: to forget it would need
    /// room in the log.
    pub(crate) fn due(&self, now: Now) -> DueItems {
        let mut retention = self.snapshots.upkeep.retention;
        retention.items_max = retention.items_max.min(ARCHIVE_TASKS_MAX);
        let mut due = match self.housekeeping.room() {
            Room::Plenty => self.state.due(&retention, now),
            Room::Low => {
                tenure_core::state::Due { tasks: Vec::new(), runs: Vec::new(), rest: Rest::Nothing }
            }
        };
        if due.runs.len() > ARCHIVE_RUNS_MAX {
            due.runs.truncate(ARCHIVE_RUNS_MAX);
            due.rest = Rest::More;
        }
        let offset = self.clock.offset();
        let tasks = due.tasks.iter().filter_map(|id| self.state.task(*id));
        let runs = due.runs.iter().filter_map(|id| self.state.run(*id));
        DueItems {
            tasks: tasks.map(|task| TaskInfo::of(&task, offset)).collect(),
            runs: runs.map(|run| RunInfo::of(&run, offset)).collect(),
            as_of: self.state.last_lsn(),
            rest: due.rest,
            now: now.log,
            wall: now.wall,
            next_at: self.state.next_purge(&retention),
        }
    }

    /// The tasks of a run, by their tokens.
    pub(crate) fn run_tasks(&self, request: ListRunTasks) -> Result<RunTasks, Refusal> {
        let ListRunTasks { run_id, after, limit } = request;
        let Some(run) = self.state.run(run_id) else {
            return Err(Rejection::RunNotFound { run_id }.into());
        };
        let limit = limit.clamp(1, LIST_ITEMS_MAX);
        let mut tokens = run.tokens(TokenId(after.0.saturating_add(1)));
        let page: Vec<_> = tokens.by_ref().take(limit).collect();
        let next = page.last().map(|token| token.id).filter(|_| tokens.next().is_some());
        let offset = self.clock.offset();
        let tasks = page.iter().filter_map(|token| self.state.task(token.task_id()?));
        let tasks = tasks.map(|task| TaskInfo::of(&task, offset)).collect();
        Ok(RunTasks { tasks, next })
    }

    /// Forgets what is in the archive.
    pub(crate) fn purge_archived(
        &mut self,
        archived: Archived,
        now: Now,
    ) -> Result<Swept, Refusal> {
        let swept: Swept = self.run_as(&Command::PurgeArchived(archived), now)?;
        self.decider.work.purged += swept.items as u64;
        Ok(swept)
    }
}

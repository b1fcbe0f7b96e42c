//! A record taken apart: what it says about each task and run, in the order in which it says so.

use tenure_record::event::{
    About, Created, DeadLetter, Decision, Event, ExpiryCause, Granted, LeaseExtended, Record,
    Report, RunBegun, RunStarted, RunState, Step, Stopped, TimerFired,
};
use tenure_record::id::{LeaseId, RunId, TaskId};
use tenure_record::state::TaskState;
use tenure_record::time::Timestamp;

/// What a record says about one task or run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'r> {
    Created(&'r Created<'r>),
    /// A task that just ended leaves a copy in a dead letter queue.
    Copied {
        of: &'r About<'r>,
        item: &'r DeadLetter<'r>,
    },
    Granted {
        worker: &'r str,
        item: &'r Granted<'r>,
    },
    Extended(&'r LeaseExtended<'r>),
    /// A worker leaves word for the next attempt.
    Checkpoint(TaskId, &'r [u8]),
    /// A lease is over, and its task goes on to that state.
    Ended {
        about: &'r About<'r>,
        lease_id: LeaseId,
        to: TaskState,
        by: End<'r>,
    },
    /// A report under a lease that was over; nothing changes.
    Stale {
        about: &'r About<'r>,
        lease_id: LeaseId,
        state: TaskState,
    },
    /// The worker is asked to stop, and its lease may end sooner.
    AskedToStop {
        about: &'r About<'r>,
        lease_id: LeaseId,
        expires_at: Timestamp,
    },
    /// A task that waited ends: a client cancels it, or its deadline passes.
    EndedWaiting {
        about: &'r About<'r>,
        to: TaskState,
    },
    Retried {
        about: &'r About<'r>,
    },
    /// A task ends because its token does.
    Stopped(Stopped),
    Purged(TaskId),
    /// A version of a workflow.
    Registered {
        workflow: &'r str,
        version: u32,
    },
    /// A run, or the child of one.
    Began(&'r RunBegun<'r>),
    /// Something is decided about a run: a step, or that a signal came.
    Decided(RunId, Option<&'r Step<'r>>),
    Finished(RunId, RunState),
    /// A run and all its tasks.
    PurgedRun(RunId),
    Configured,
}

impl Item<'_> {
    /// The task whose state it may change.
    pub(crate) fn task(&self) -> Option<TaskId> {
        match self {
            Item::Created(item) => Some(item.task_id),
            Item::Copied { item, .. } => Some(item.task_id),
            Item::Granted { item, .. } => Some(item.about.task_id),
            Item::Ended { about, .. }
            | Item::Stale { about, .. }
            | Item::AskedToStop { about, .. }
            | Item::EndedWaiting { about, .. }
            | Item::Retried { about } => Some(about.task_id),
            Item::Stopped(stopped) => Some(stopped.task_id),
            Item::Purged(id) => Some(*id),
            Item::Extended(_)
            | Item::Checkpoint(..)
            | Item::Registered { .. }
            | Item::Began(_)
            | Item::Decided(..)
            | Item::Finished(..)
            | Item::PurgedRun(_)
            | Item::Configured => None,
        }
    }
}

/// How a lease ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End<'r> {
    Expired(ExpiryCause),
    Released,
    Completed { output: &'r [u8] },
    Failed,
    Canceled,
    Deadline(Timestamp),
}

/// Takes a record apart.
pub(crate) fn items<'r>(record: &'r Record<'r>) -> Vec<Item<'r>> {
    let mut all = Vec::new();
    take(&record.event, &mut all);
    all
}

fn take<'r>(event: &'r Event<'r>, all: &mut Vec<Item<'r>>) {
    match event {
        Event::TaskCreated(event) => all.extend(event.tasks.iter().map(Item::Created)),
        Event::LeaseGranted(event) => {
            let worker = event.worker.as_str();
            all.extend(event.grants.iter().map(|item| Item::Granted { worker, item }));
        }
        Event::LeaseExpired(event) => {
            for x in &event.leases {
                all.push(ended(&x.about, x.lease_id, x.to, End::Expired(x.cause)));
                copied(&x.about, x.dead_letter.as_deref(), all);
                cascade(&x.cascade, all);
            }
        }
        Event::ReportsApplied(event) => event.reports.iter().for_each(|it| report(it, all)),
        Event::CancelRequested(x) => {
            let (about, lease_id) = (&x.about, x.lease_id);
            all.push(match (x.from, x.to) {
                (_, TaskState::Leased) => {
                    Item::AskedToStop { about, lease_id, expires_at: x.expires_at }
                }
                (TaskState::Leased, to) => ended(about, lease_id, to, End::Canceled),
                (_, to) => Item::EndedWaiting { about, to },
            });
            cascade(&x.cascade, all);
        }
        Event::TaskRetried(x) => all.push(Item::Retried { about: &x.about }),
        Event::TimerFired(event) => timer_fired(event, all),
        Event::QueueConfigured(_) => all.push(Item::Configured),
        Event::IdsSkipped(_) | Event::QueueDeleted(_) | Event::WorkflowDeleted(_) => {}
        Event::WorkflowRegistered(x) => {
            all.push(Item::Registered { workflow: x.name.as_str(), version: x.version });
        }
        Event::RunStarted(x) => started(x, all),
        Event::RunsStarted(x) => x.runs.iter().for_each(|run| started(run, all)),
        Event::RunStartedBySignal(x) => started(&x.start, all),
        Event::SignalReceived(x) => {
            all.push(Item::Decided(x.run_id, None));
            cascade(&x.cascade, all);
        }
        Event::RunCancelRequested(x) => cascade(&x.cascade, all),
        Event::DispatchContinued(x) => cascade(&x.cascade, all),
        Event::EndContinued(x) => cascade(&x.cascade, all),
        Event::RunParked(x) => all.push(Item::Decided(x.run_id, None)),
        Event::RunUnparked(x) => all.push(Item::Decided(x.run_id, None)),
        Event::TasksPurged(event) => {
            all.extend(event.tasks.iter().map(|id| Item::Purged(*id)));
            all.extend(event.runs.iter().map(|id| Item::PurgedRun(*id)));
        }
    }
}

fn timer_fired<'r>(event: &'r TimerFired<'r>, all: &mut Vec<Item<'r>>) {
    for x in &event.deadlines {
        all.push(match x.from == TaskState::Leased {
            true => {
                let by = End::Deadline(x.deadline_at);
                ended(&x.about, x.lease_id, x.to, by)
            }
            false => Item::EndedWaiting { about: &x.about, to: x.to },
        });
        copied(&x.about, x.dead_letter.as_deref(), all);
        cascade(&x.cascade, all);
    }
    event.runs.iter().for_each(|x| cascade(&x.cascade, all));
    event.joins.iter().for_each(|x| cascade(&x.cascade, all));
    event.nodes.iter().chain(&event.timers).for_each(|x| cascade(&x.cascade, all));
}

fn report<'r>(report: &'r Report<'r>, all: &mut Vec<Item<'r>>) {
    match report {
        Report::LeaseExtended(item) => {
            all.push(Item::Extended(item));
            checkpoint(item.task_id, item.checkpoint, all);
        }
        Report::TaskCompleted(x) => {
            let by = End::Completed { output: x.output };
            all.push(ended(&x.about, x.lease_id, TaskState::Completed, by));
            cascade(&x.cascade, all);
        }
        Report::TaskFailed(x) => {
            all.push(ended(&x.about, x.lease_id, x.to, End::Failed));
            checkpoint(x.about.task_id, x.checkpoint, all);
            copied(&x.about, x.dead_letter.as_deref(), all);
            cascade(&x.cascade, all);
        }
        Report::LeaseReleased(x) => {
            all.push(ended(&x.about, x.lease_id, x.to, End::Released));
            checkpoint(x.about.task_id, x.checkpoint, all);
            cascade(&x.cascade, all);
        }
        Report::StaleReportRejected(x) => {
            all.push(Item::Stale { about: &x.about, lease_id: x.lease_id, state: x.state });
        }
    }
}

fn copied<'r>(of: &'r About<'r>, item: Option<&'r DeadLetter<'r>>, all: &mut Vec<Item<'r>>) {
    all.extend(item.map(|item| Item::Copied { of, item }));
}

fn checkpoint<'r>(task_id: TaskId, bytes: &'r [u8], all: &mut Vec<Item<'r>>) {
    if !bytes.is_empty() {
        all.push(Item::Checkpoint(task_id, bytes));
    }
}

fn started<'r>(event: &'r RunStarted<'r>, all: &mut Vec<Item<'r>>) {
    all.push(Item::Began(&event.run));
    cascade(&event.cascade, all);
}

/// What decisions say about tasks and runs; tokens and groups are core's own.
fn cascade<'r>(decisions: &'r [Decision<'r>], all: &mut Vec<Item<'r>>) {
    for decision in decisions {
        all.push(Item::Decided(decision.run_id, Some(&decision.step)));
        match &decision.step {
            Step::MarkForDispatch(step) => {
                let tasks = step.tokens.iter().filter_map(|token| token.task.as_ref());
                all.extend(tasks.map(Item::Created));
            }
            Step::CancelTokens(step) => {
                let tasks = step.tasks.iter().flat_map(|tasks| tasks.tasks.iter());
                all.extend(tasks.map(Item::Stopped));
            }
            Step::StartChild(step) => all.push(Item::Began(&step.run)),
            Step::FinishRun(step) => all.push(Item::Finished(decision.run_id, step.state)),
            Step::CreateTokens(_)
            | Step::OpenGroup(_)
            | Step::CreateFanInToken(_)
            | Step::ActivateFanInToken(_)
            | Step::UpdateTokenStates(_)
            | Step::SettleBranch(_)
            | Step::ApplyNodeOutput(_)
            | Step::SetContext(_)
            | Step::MergeBranches(_)
            | Step::DropBranches(_)
            | Step::SetTimer(_)
            | Step::TakeSignal(_)
            | Step::StageArtifact(_)
            | Step::PromoteArtifacts(_)
            | Step::EndScope(_)
            | Step::CloseScope(_) => {}
        }
    }
}

fn ended<'r>(about: &'r About<'r>, lease_id: LeaseId, to: TaskState, by: End<'r>) -> Item<'r> {
    Item::Ended { about, lease_id, to, by }
}

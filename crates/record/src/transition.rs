//! What an observer is told: the transitions in a record, worked out from the record alone.

use tenure_code::Code;

use crate::event::{
    About, CancelRequested, Created, DeadLetter, DeadlinePassed, Decision, Event, Expired,
    ExpiryCause, Granted, LeaseReleased, Record, Report, RunBegun, RunStarted, RunState,
    SignalReceived, StaleReportRejected, Step, Stopped, StoppedTasks, TaskCompleted, TaskFailed,
    TaskRetried, TimerFired,
};
use crate::id::{GroupId, LeaseId, Lsn, RunId, TaskId};
use crate::name::Text;
use crate::state::TaskState;
use crate::terms::{ATTEMPT_TIMEOUT_CODE, ATTEMPT_TIMEOUT_MESSAGE, Priority};

/// One task's step, as it is streamed, logged and kept in its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition<'a> {
    /// Its place among the transitions of its record: with the LSN, its name.
    pub index: usize,
    /// What happened.
    pub event: &'static str,
    /// To which task.
    pub task_id: TaskId,
    /// In which queue.
    pub queue: &'a str,
    /// The state before; none for a new task.
    pub from: Option<TaskState>,
    /// The state after. The same as before for a stale report, and for a cancel that waits for
    /// the worker.
    pub to: TaskState,
    /// Whose doing it was, or whose lease it ended.
    pub worker: Option<&'a str>,
    /// The lease it is about.
    pub lease_id: Option<LeaseId>,
    /// The task's grants so far.
    pub attempt: u32,
    /// How urgent the task is.
    pub priority: Priority,
    /// Why, for programs.
    pub code: Option<&'a str>,
    /// Why, for people.
    pub reason: Option<&'a str>,
    /// The record before this one in the task's history.
    pub previous: Lsn,
    /// The run that the task belongs to.
    pub run_id: Option<RunId>,
    /// The task that a new task is the copy of, in a dead letter queue.
    pub dead_letter_of: Option<TaskId>,
}

/// One run's step, as it is streamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTransition<'a> {
    /// Its place among all that is told of its record: with the LSN, its name.
    pub index: usize,
    /// What happened: `RunStarted`, `SignalReceived`, `RunEnding`, `RunParked`, `RunUnparked` or
    /// `RunFinished`.
    pub event: &'static str,
    /// To which run.
    pub run_id: RunId,
    /// Its workflow, when it begins.
    pub workflow: Option<&'a str>,
    /// The run that it is a child of, when it begins.
    pub parent: Option<RunId>,
    /// The state after, if it changed.
    pub to: Option<RunState>,
    /// The signal's name.
    pub signal: Option<&'a str>,
    /// Why it could not go on, for programs.
    pub code: Option<&'a str>,
}

/// One step of a task or of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    /// Of a task.
    Task(Transition<'a>),
    /// Of a run.
    Run(RunTransition<'a>),
}

impl Told<'_> {
    /// Its place among all that is told of its record.
    #[must_use]
    pub fn index(&self) -> usize {
        match self {
            Told::Task(transition) => transition.index,
            Told::Run(transition) => transition.index,
        }
    }
}

/// The transitions of tasks in a record, in the order in which they happened.
#[must_use]
pub fn transitions<'a>(record: &'a Record<'_>) -> Vec<Transition<'a>> {
    let told = told(record).into_iter();
    told.filter_map(|told| match told {
        Told::Task(transition) => Some(transition),
        Told::Run(_) => None,
    })
    .collect()
}

/// All that a record tells of tasks and runs, in the order in which it happened.
#[must_use]
pub fn told<'a>(record: &'a Record<'_>) -> Vec<Told<'a>> {
    let mut teller = Teller { told: Vec::new() };
    teller.event(&record.event);
    for (at, told) in teller.told.iter_mut().enumerate() {
        match told {
            Told::Task(transition) => transition.index = at,
            Told::Run(transition) => transition.index = at,
        }
    }
    teller.told
}

struct Teller<'a> {
    told: Vec<Told<'a>>,
}

impl<'a> Teller<'a> {
    fn task(&mut self, transition: Transition<'a>) {
        self.told.push(Told::Task(transition));
    }

    fn copied(&mut self, item: Option<&'a DeadLetter<'_>>, of: &About<'_>) {
        if let Some(item) = item {
            self.task(copied(item, of));
        }
    }

    fn event(&mut self, event: &'a Event<'_>) {
        match event {
            Event::TaskCreated(event) => event.tasks.iter().for_each(|it| self.task(created(it))),
            Event::LeaseGranted(event) => {
                event.grants.iter().for_each(|item| self.task(granted(item, &event.worker)));
            }
            Event::LeaseExpired(event) => {
                for item in &event.leases {
                    self.task(expired(item));
                    self.copied(item.dead_letter.as_deref(), &item.about);
                    self.cascade(&item.cascade);
                }
            }
            Event::ReportsApplied(event) => event.reports.iter().for_each(|it| self.report(it)),
            Event::CancelRequested(item) => {
                self.task(cancel_requested(item));
                self.cascade(&item.cascade);
            }
            Event::TaskRetried(item) => self.task(retried(item)),
            Event::TimerFired(event) => self.timer_fired(event),
            Event::RunStarted(event) => self.started(event),
            Event::RunsStarted(event) => event.runs.iter().for_each(|run| self.started(run)),
            Event::SignalReceived(item) => self.signaled(item),
            Event::RunStartedBySignal(event) => {
                self.started(&event.start);
                self.signaled(&event.signal);
            }
            Event::RunCancelRequested(event) => self.cascade(&event.cascade),
            Event::DispatchContinued(event) => self.cascade(&event.cascade),
            Event::EndContinued(event) => self.cascade(&event.cascade),
            Event::RunParked(item) => {
                let step = run_step("RunParked", item.run_id);
                self.told.push(Told::Run(step));
            }
            Event::RunUnparked(item) => {
                self.told.push(Told::Run(run_step("RunUnparked", item.run_id)));
            }
            // A setting, a definition, a purge and a jump of the counters change no state of a task
            // or a run.
            Event::QueueConfigured(_)
            | Event::TasksPurged(_)
            | Event::WorkflowRegistered(_)
            | Event::IdsSkipped(_)
            | Event::QueueDeleted(_)
            | Event::WorkflowDeleted(_) => {}
        }
    }

    fn started(&mut self, event: &'a RunStarted<'_>) {
        self.run_started(&event.run);
        self.cascade(&event.cascade);
    }

    fn signaled(&mut self, item: &'a SignalReceived<'_>) {
        let step = run_step("SignalReceived", item.run_id);
        let signal = Some(item.name.as_str());
        self.told.push(Told::Run(RunTransition { signal, ..step }));
        self.cascade(&item.cascade);
    }

    fn report(&mut self, report: &'a Report<'_>) {
        match report {
            // A heartbeat changes no state.
            Report::LeaseExtended(_) => {}
            Report::TaskCompleted(item) => {
                self.task(completed(item));
                self.cascade(&item.cascade);
            }
            Report::TaskFailed(item) => {
                self.task(failed(item));
                self.copied(item.dead_letter.as_deref(), &item.about);
                self.cascade(&item.cascade);
            }
            Report::LeaseReleased(item) => {
                self.task(released(item));
                self.cascade(&item.cascade);
            }
            Report::StaleReportRejected(item) => self.task(reported_late(item)),
        }
    }

    fn timer_fired(&mut self, event: &'a TimerFired<'_>) {
        for item in &event.deadlines {
            self.task(deadline_passed(item));
            self.copied(item.dead_letter.as_deref(), &item.about);
            self.cascade(&item.cascade);
        }
        event.runs.iter().for_each(|item| self.cascade(&item.cascade));
        event.joins.iter().for_each(|item| self.cascade(&item.cascade));
        event.nodes.iter().chain(&event.timers).for_each(|item| self.cascade(&item.cascade));
    }

    fn run_started(&mut self, run: &'a RunBegun<'_>) {
        let step = run_step("RunStarted", run.run_id);
        self.told.push(Told::Run(RunTransition {
            workflow: Some(run.workflow.as_str()),
            parent: Some(run.parent).filter(|parent| parent.is_some()),
            to: Some(RunState::Running),
            ..step
        }));
    }

    fn cascade(&mut self, decisions: &'a [Decision<'_>]) {
        for decision in decisions {
            match &decision.step {
                Step::MarkForDispatch(step) => {
                    let tasks = step.tokens.iter().filter_map(|item| item.task.as_ref());
                    tasks.for_each(|item| self.task(created(item)));
                }
                Step::CancelTokens(step) => {
                    for tasks in &step.tasks {
                        let told = tasks.tasks.iter();
                        told.for_each(|it| self.task(stopped(tasks, &it, decision.run_id)));
                    }
                }
                Step::StartChild(step) => self.run_started(&step.run),
                Step::FinishRun(step) => {
                    let error = step.error.as_ref().and_then(|error| error.0.as_map());
                    let code = error.and_then(|error| error.get("code")?.as_text());
                    let finished = run_step("RunFinished", decision.run_id);
                    let to = Some(step.state);
                    self.told.push(Told::Run(RunTransition { to, code, ..finished }));
                }
                // A branch that ends is no step of a run.
                Step::EndScope(step) if step.group == GroupId::NONE => {
                    let error = step.error.as_ref().and_then(|error| error.0.as_map());
                    let code = error.and_then(|error| error.get("code")?.as_text());
                    let ending = run_step("RunEnding", decision.run_id);
                    self.told.push(Told::Run(RunTransition { code, ..ending }));
                }
                Step::EndScope(_)
                | Step::CreateTokens(_)
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
                | Step::CloseScope(_) => {}
            }
        }
    }
}

fn run_step(event: &'static str, run_id: RunId) -> RunTransition<'static> {
    RunTransition {
        index: 0,
        event,
        run_id,
        workflow: None,
        parent: None,
        to: None,
        signal: None,
        code: None,
    }
}

fn stopped<'a>(tasks: &'a StoppedTasks<'_>, item: &Stopped, run_id: RunId) -> Transition<'a> {
    let worker = Some(tasks.worker.as_str()).filter(|name| !name.is_empty());
    Transition {
        index: 0,
        event: "CancelRequested",
        task_id: item.task_id,
        queue: tasks.queue.as_str(),
        from: Some(item.from),
        to: TaskState::Canceled,
        worker,
        lease_id: Some(item.lease_id).filter(|lease| lease.is_some()),
        attempt: item.attempt,
        priority: tasks.priority,
        code: None,
        reason: None,
        previous: item.previous,
        run_id: Some(run_id),
        dead_letter_of: None,
    }
}

fn step<'a>(
    event: &'static str,
    about: &'a About<'_>,
    from: TaskState,
    to: TaskState,
) -> Transition<'a> {
    Transition {
        index: 0,
        event,
        task_id: about.task_id,
        queue: about.queue.as_str(),
        from: Some(from),
        to,
        worker: None,
        lease_id: None,
        attempt: about.attempt,
        priority: about.priority,
        code: None,
        reason: None,
        previous: about.previous,
        run_id: Some(about.run_id).filter(|run| run.is_some()),
        dead_letter_of: None,
    }
}

impl<'a> Transition<'a> {
    fn under(self, lease_id: LeaseId, worker: &'a Text<'_>) -> Self {
        let worker = Some(worker.as_str()).filter(|name| !name.is_empty());
        let lease_id = Some(lease_id).filter(|lease| lease.is_some());
        Self { worker, lease_id, ..self }
    }
}

fn created<'a>(item: &'a Created<'_>) -> Transition<'a> {
    let run_id = item.run.as_ref().map(|link| link.run_id);
    Transition { run_id, ..new_task(item.task_id, &item.queue, item.priority) }
}

/// The copy of a task that ended, in a dead letter queue.
fn copied<'a>(item: &'a DeadLetter<'_>, of: &About<'_>) -> Transition<'a> {
    let dead_letter_of = Some(of.task_id);
    Transition { dead_letter_of, ..new_task(item.task_id, &item.queue, of.priority) }
}

fn new_task<'a>(task_id: TaskId, queue: &'a Text<'_>, priority: Priority) -> Transition<'a> {
    Transition {
        index: 0,
        event: "TaskCreated",
        task_id,
        queue: queue.as_str(),
        from: None,
        to: TaskState::Waiting,
        worker: None,
        lease_id: None,
        attempt: 0,
        priority,
        code: None,
        reason: None,
        previous: Lsn::NONE,
        run_id: None,
        dead_letter_of: None,
    }
}

fn granted<'a>(item: &'a Granted<'_>, worker: &'a Text<'_>) -> Transition<'a> {
    step("LeaseGranted", &item.about, TaskState::Waiting, TaskState::Leased)
        .under(item.lease_id, worker)
}

fn expired<'a>(item: &'a Expired<'_>) -> Transition<'a> {
    // An attempt that took too long is told as the failure that it is.
    let (event, code, reason) = match item.cause {
        ExpiryCause::RanOut | ExpiryCause::Disconnected | ExpiryCause::Revoked => {
            ("LeaseExpired", item.cause.as_str(), None)
        }
        ExpiryCause::AttemptTimedOut => {
            ("TaskFailed", ATTEMPT_TIMEOUT_CODE, Some(ATTEMPT_TIMEOUT_MESSAGE))
        }
    };
    let step = step(event, &item.about, TaskState::Leased, item.to);
    Transition { code: Some(code), reason, ..step.under(item.lease_id, &item.worker) }
}

fn released<'a>(item: &'a LeaseReleased<'_>) -> Transition<'a> {
    let step = step("LeaseReleased", &item.about, TaskState::Leased, item.to);
    let priority = item.priority.unwrap_or(item.about.priority);
    Transition { priority, ..step.under(item.lease_id, &item.worker) }
}

fn completed<'a>(item: &'a TaskCompleted<'_>) -> Transition<'a> {
    step("TaskCompleted", &item.about, TaskState::Leased, TaskState::Completed)
        .under(item.lease_id, &item.worker)
}

fn failed<'a>(item: &'a TaskFailed<'_>) -> Transition<'a> {
    let step = step("TaskFailed", &item.about, TaskState::Leased, item.to);
    let (code, reason) = (Some(item.code.as_str()), Some(item.reason.as_str()));
    Transition { code, reason, ..step.under(item.lease_id, &item.worker) }
}

fn reported_late<'a>(item: &'a StaleReportRejected<'_>) -> Transition<'a> {
    let step = step("StaleReportRejected", &item.about, item.state, item.state);
    let code = Some(Code::LeaseLost.as_str());
    Transition { code, ..step.under(item.lease_id, &item.worker) }
}

fn cancel_requested<'a>(item: &'a CancelRequested<'_>) -> Transition<'a> {
    step("CancelRequested", &item.about, item.from, item.to).under(item.lease_id, &item.worker)
}

fn retried<'a>(item: &'a TaskRetried<'_>) -> Transition<'a> {
    step("TaskRetried", &item.about, item.from, TaskState::Waiting)
}

fn deadline_passed<'a>(item: &'a DeadlinePassed<'_>) -> Transition<'a> {
    let step = step("TimerFired", &item.about, item.from, item.to);
    let code = Some(crate::terms::TIMEOUT_CODE);
    Transition { code, ..step.under(item.lease_id, &item.worker) }
}

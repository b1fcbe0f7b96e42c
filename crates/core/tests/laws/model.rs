//! What tasks, leases and queues do, said a second time and as plainly as can be: maps and linear
//! scans, no indexes, no drafts. Written from the design, not from the rules it is held against.
//! Reports of workers are in `reports.rs`, what time and operators do in `sweeps.rs`.

use std::collections::BTreeMap;
use std::mem::take;

use tenure_core::Rejection;
use tenure_core::command::{
    Command, ConfigureQueue, IdJump, LeaseTasks, Leased, NewTask, PauseEnd, PauseQueue, Reply,
    Setting, Start, SubmitOutcome, Submitted,
};
use tenure_core::limits::{BATCH_ITEMS_MAX, LEASE_TASKS_MAX};
use tenure_record::event::{IdsSkipped, QueueSettings};
use tenure_record::id::{LeaseId, RunId, TaskId};
use tenure_record::name::{QueueName, TaskKey};
use tenure_record::progress::Checkpoint;
use tenure_record::state::TaskState;
use tenure_record::terms::{Backoff, BackoffKind, Budgets, Priority};
use tenure_record::time::{Clock, Now, Timestamp};
use tenure_value::Value;

use crate::reports::Verb;

/// All that the model knows.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// By number.
    pub tasks: BTreeMap<u64, Task>,
    /// The queues that somebody set something for. The others exist while they have tasks.
    pub configured: BTreeMap<String, QueueSettings>,
    pub next_task: u64,
    pub next_lease: u64,
    next_run: u64,
    /// The last record.
    pub lsn: u64,
    /// What the clocks said when the state was last told.
    pub clocks: Now,
    /// What the command at hand has done so far.
    steps: Vec<Step>,
    writes: bool,
    pub purged: Vec<u64>,
    /// Backoffs whose jitter only the real event knows.
    pub drawn: Vec<Drawn>,
}

/// A task, with everything that can be seen of it.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub terms: NewTask,
    pub state: TaskState,
    pub output: Vec<u8>,
    pub attempt: u32,
    pub failures: u16,
    pub expiries: u16,
    pub cancel_requested: bool,
    /// While it is LEASED.
    pub lease: Option<Lease>,
    pub last_lease: u64,
    /// How its last lease was ended by a report, until there is a newer one.
    pub ended_by: Option<Verb>,
    /// As submitted, or as a release set it.
    pub priority: Priority,
    /// While it is WAITING; 0 for at once.
    pub not_before: u64,
    /// The clock that `not_before` is meant on.
    pub clock: Clock,
    /// By the wall clock, as all that is only shown.
    pub created_at: u64,
    pub run_at: Option<u64>,
    pub started_at: Option<u64>,
    /// By log time, which retention counts from.
    pub finished_at: Option<u64>,
    pub finished_wall_at: Option<u64>,
    pub deadline_at: Option<u64>,
    pub revoke_at: Option<u64>,
    /// Code and message of the last three failures.
    pub errors: Vec<(String, String)>,
    /// Another task has taken its key.
    pub key_is_lost: bool,
    /// When another task may take its key, by log time.
    pub key_free_at: Option<u64>,
    /// The newest lease whose stale report is on record.
    pub stale_lease: u64,
    pub checkpoint: Option<Vec<u8>>,
    /// Its copy in a dead letter queue, from its last end.
    pub dead_letter: Option<u64>,
    /// The task that it is the copy of.
    pub dead_letter_of: Option<u64>,
    pub last_lsn: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub worker: String,
    pub lease_ms: u64,
    pub expires_at: u64,
    /// When the attempt is over, heartbeats or not.
    pub attempt_deadline: Option<u64>,
}

/// One task's step, as an observer should be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub event: &'static str,
    pub task: u64,
    pub queue: String,
    pub from: Option<TaskState>,
    pub to: TaskState,
    pub worker: Option<String>,
    pub lease: Option<u64>,
    pub attempt: u32,
    pub priority: i8,
    pub code: Option<String>,
    pub reason: Option<String>,
    pub previous: u64,
    /// Of a new task: the one that it is the copy of.
    pub dead_letter_of: Option<u64>,
}

/// A backoff with jitter: anything within the band is right.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub task: u64,
    pub from: u64,
    pub to: u64,
}

/// What should become of a command.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub answer: Result<Reply, Rejection>,
    /// Whether a record is written.
    pub writes: bool,
    pub steps: Vec<Step>,
    /// Tasks forgotten, in that order.
    pub purged: Vec<u64>,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self {
            tasks: BTreeMap::new(),
            configured: BTreeMap::new(),
            next_task: 1,
            next_lease: 1,
            next_run: 1,
            lsn: 0,
            clocks: Now::default(),
            steps: Vec::new(),
            writes: false,
            purged: Vec::new(),
            drawn: Vec::new(),
        }
    }

    /// Does what the command asks for, or nothing.
    pub(crate) fn command(&mut self, command: &Command, now: Now) -> Expected {
        let mut after = self.clone();
        after.lsn += 1;
        after.writes = false;
        let answer = after.obey(command, now);
        let (steps, purged) = (take(&mut after.steps), take(&mut after.purged));
        let writes = answer.is_ok() && after.writes;
        if writes {
            *self = after;
        }
        Expected { answer, writes, steps, purged }
    }

    fn obey(&mut self, command: &Command, now: Now) -> Result<Reply, Rejection> {
        match command {
            Command::SubmitTasks(command) => self.submit(&command.tasks, now),
            Command::LeaseTasks(command) => Ok(self.grant(command, now)),
            Command::Heartbeat(report) => self.heartbeat(report, now).map(Reply::Extended),
            Command::CompleteTask(report) => {
                self.alone(report.lease, Verb::Complete, |m| m.complete(report, now))
            }
            Command::FailTask(report) => {
                self.alone(report.lease, Verb::Fail, |m| m.fail(report, now))
            }
            Command::ReleaseTask(report) => {
                self.alone(report.lease, Verb::Release, |m| m.release(report, now))
            }
            Command::ReportTasks(reports) => self.reports(reports, now),
            Command::CancelTask(command) => self.cancel(*command, now),
            Command::RetryTask(id) => self.retry(*id, now),
            Command::DropLeases(leases) => self.drop_leases(leases, now),
            Command::FireTimers => Ok(self.fire_timers(now)),
            Command::PauseQueue(command) => Ok(self.pause(command, now)),
            Command::DeleteQueue(name) => self.delete_queue(name),
            Command::ResumeQueue(name) => Ok(self.resume(name.as_str())),
            Command::ConfigureQueue(command) => self.configure(command),
            Command::PurgeTasks(retention) => Ok(self.purge(*retention, now)),
            Command::PurgeArchived(archived) => Ok(self.purge_archived(archived)),
            Command::SkipIds(jump) => Ok(self.skip_ids(*jump)),
            Command::RegisterWorkflow(_)
            | Command::DeleteWorkflow(_)
            | Command::StartRuns(_)
            | Command::SignalByKey(_)
            | Command::StartRun(_)
            | Command::CancelRun(_)
            | Command::SignalRun(_)
            | Command::ContinueDispatch
            | Command::ContinueEnding { .. }
            | Command::ParkRun(_)
            | Command::UnparkRun(_) => unreachable!("this model knows plain tasks only"),
        }
    }

    fn submit(&mut self, tasks: &[NewTask], now: Now) -> Result<Reply, Rejection> {
        check_size(tasks.len())?;
        let mut answer = Vec::new();
        for (index, new) in tasks.iter().enumerate() {
            let holder = self.tasks.iter().find(|(_, task)| {
                new.key.is_some()
                    && task.terms.queue == new.queue
                    && task.terms.key == new.key
                    && !task.key_is_lost
            });
            // Its time with the key is over, whether it runs or has ended.
            let expired =
                holder.filter(|(_, task)| task.key_free_at.is_some_and(|at| at <= now.log.0));
            if let Some((id, _)) = expired {
                let id = *id;
                self.task(id).key_is_lost = true;
                let id = self.submit_one(tasks, index, now)?;
                answer.push(Submitted { task_id: TaskId(id), outcome: SubmitOutcome::Created });
                continue;
            }
            let (id, outcome) = match (holder, &new.key) {
                (Some((id, task)), Some(key)) => {
                    if !is_same_submit(&task.terms, new) {
                        return Err(conflict(tasks, &answer, index, key, TaskId(*id)));
                    }
                    (*id, SubmitOutcome::Existed)
                }
                _ => (self.submit_one(tasks, index, now)?, SubmitOutcome::Created),
            };
            answer.push(Submitted { task_id: TaskId(id), outcome });
        }
        Ok(Reply::Submitted(answer))
    }

    /// A new task, unless its queue has as many waiting tasks as it may.
    fn submit_one(&mut self, tasks: &[NewTask], index: usize, now: Now) -> Result<u64, Rejection> {
        let new = &tasks[index];
        let waits =
            |task: &&Task| task.terms.queue == new.queue && task.state == TaskState::Waiting;
        let waiting = self.tasks.values().filter(waits).count() as u64;
        match self.settings(new.queue.as_str()).max_waiting {
            Some(max_waiting) if waiting >= max_waiting => {
                let index = (tasks.len() > 1).then_some(index);
                Err(Rejection::QueueFull { index, name: new.queue.clone(), max_waiting })
            }
            _ => Ok(self.create_as(new, None, now)),
        }
    }

    /// A task that failed or died leaves a copy where its queue says so, unless it is a copy itself.
    pub(crate) fn leave_copy(&mut self, id: u64, now: Now) {
        let task = self.tasks[&id].clone();
        if !matches!(task.state, TaskState::Failed | TaskState::Dead) {
            return;
        }
        let to = self.settings(task.terms.queue.as_str()).dead_letter_queue;
        let copy = to.filter(|_| task.dead_letter_of.is_none()).map(|name| {
            let queue = QueueName::parse(&name).expect("it is the name of a queue");
            let new = NewTask {
                priority: task.priority,
                name: task.terms.name.clone(),
                tags: task.terms.tags.clone(),
                traceparent: task.terms.traceparent.clone(),
                ..NewTask::new(queue, task.terms.payload.clone())
            };
            let copy = self.create_as(&new, Some(id), now);
            self.task(copy).errors = task.errors.clone();
            copy
        });
        self.task(id).dead_letter = copy;
    }

    fn create_as(&mut self, new: &NewTask, dead_letter_of: Option<u64>, now: Now) -> u64 {
        let id = self.next_task;
        self.next_task += 1;
        let (clock, not_before) = match new.start {
            Start::AtOnce => (Clock::Log, None),
            // No delay is no appointment.
            Start::After(ms) if ms.get() == 0 => (Clock::Log, None),
            Start::After(ms) => (Clock::Log, Some(now.log.0 + ms.get())),
            Start::At(at) => (Clock::Wall, Some(at.0)),
        };
        let task = Task {
            state: TaskState::Waiting,
            output: Vec::new(),
            attempt: 0,
            failures: 0,
            expiries: 0,
            cancel_requested: false,
            lease: None,
            last_lease: 0,
            ended_by: None,
            not_before: not_before.unwrap_or(0),
            clock,
            created_at: now.wall.0,
            run_at: not_before.map(|at| match clock {
                Clock::Log => at - now.log.0 + now.wall.0,
                Clock::Wall => at,
            }),
            started_at: None,
            finished_at: None,
            finished_wall_at: None,
            deadline_at: new.total_timeout_ms.map(|ms| now.log.0 + ms.get()),
            revoke_at: None,
            errors: Vec::new(),
            key_is_lost: false,
            key_free_at: new.key_ttl_ms.map(|ms| now.log.0 + ms.get()),
            stale_lease: 0,
            checkpoint: None,
            dead_letter: None,
            dead_letter_of,
            last_lsn: 0,
            priority: new.priority,
            terms: new.clone(),
        };
        self.tasks.insert(id, task);
        self.tell(id, Step { from: None, dead_letter_of, ..self.step("TaskCreated", id) });
        id
    }

    fn grant(&mut self, command: &LeaseTasks, now: Now) -> Reply {
        let mut due: Vec<u64> = self
            .tasks
            .iter()
            .filter(|(_, task)| {
                command.queues.contains(&task.terms.queue)
                    && self.is_ready(task)
                    && !self.is_paused(task.terms.queue.as_str(), now.wall)
                    && task.deadline_at.is_none_or(|at| now.log.0 < at)
            })
            .map(|(id, _)| *id)
            .collect();
        due.sort_by_key(|id| (-i32::from(self.tasks[id].priority.get()), *id));
        due.truncate(command.tasks_max.get().min(LEASE_TASKS_MAX) as usize);
        let mut answer = Vec::new();
        for id in due {
            let lease = self.next_lease;
            self.next_lease += 1;
            let task = self.task(id);
            let lease_ms = u64::from(command.lease_ms.unwrap_or(task.terms.lease_ms).get());
            let attempt_deadline = task.terms.attempt_timeout_ms.map(|ms| now.log.0 + ms.get());
            let bounds = task.deadline_at.into_iter().chain(attempt_deadline);
            let expires_at = bounds.chain([now.log.0 + lease_ms]).min().expect("there is one");
            let worker = command.worker.as_str().to_owned();
            task.state = TaskState::Leased;
            task.attempt += 1;
            task.last_lease = lease;
            task.ended_by = None;
            task.not_before = 0;
            task.started_at = Some(now.wall.0);
            let worker_held = worker.clone();
            task.lease =
                Some(Lease { worker: worker_held, lease_ms, expires_at, attempt_deadline });
            let from = Some(TaskState::Waiting);
            let step = self.step("LeaseGranted", id);
            self.tell(id, Step { from, worker: Some(worker), lease: Some(lease), ..step });
            answer.push(Leased {
                task_id: TaskId(id),
                lease_id: LeaseId(lease),
                expires_at: Timestamp(expires_at),
            });
        }
        Reply::Leased(answer)
    }

    /// What a task waits for, in a queue that is not paused.
    pub(crate) fn phase(&self, task: &Task) -> Option<&'static str> {
        let waits = task.state == TaskState::Waiting;
        let is_late = task.not_before > self.clocks.on(task.clock).0;
        let has_failed = task.failures > 0 || task.expiries > 0;
        waits.then_some(match (is_late, has_failed) {
            (true, true) => "retrying",
            (true, false) => "delayed",
            (false, _) => "ready",
        })
    }

    /// Whether it waits for nothing but a worker.
    pub(crate) fn is_ready(&self, task: &Task) -> bool {
        task.state == TaskState::Waiting
            && task.not_before <= self.clocks.on(task.clock).0
            && !self.is_paused(task.terms.queue.as_str(), self.clocks.wall)
    }

    fn configure(&mut self, command: &ConfigureQueue) -> Result<Reply, Rejection> {
        if command.change.dead_letter_queue == Setting::Set(command.queue.clone()) {
            return Err(Rejection::OwnDeadLetterQueue { name: command.queue.clone() });
        }
        Ok(self.set_queue(command.queue.as_str(), |queue| {
            match command.change.retention_ms {
                Setting::Keep => {}
                Setting::Set(ms) => queue.retention_ms = Some(ms.get()),
                Setting::Clear => queue.retention_ms = None,
            }
            match command.change.paused_until {
                Setting::Keep => {}
                Setting::Set(at) => queue.paused_until = at,
                Setting::Clear => queue.paused_until = Timestamp::ZERO,
            }
            match &command.change.dead_letter_queue {
                Setting::Keep => {}
                Setting::Set(name) => queue.dead_letter_queue = Some(name.as_str().into()),
                Setting::Clear => queue.dead_letter_queue = None,
            }
            match command.change.max_waiting {
                Setting::Keep => {}
                Setting::Set(count) => queue.max_waiting = Some(count.get()),
                Setting::Clear => queue.max_waiting = None,
            }
        }))
    }

    /// A pause with an end is that end alone; one without holds until the queue is resumed.
    fn pause(&mut self, command: &PauseQueue, now: Now) -> Reply {
        let until = match command.end {
            PauseEnd::Resumed => None,
            PauseEnd::At(at) => Some(at),
            PauseEnd::After(ms) => Some(Timestamp(now.wall.0 + ms.get())),
        };
        self.set_queue(command.queue.as_str(), |queue| {
            queue.paused = until.is_none();
            queue.paused_until = until.unwrap_or(Timestamp::ZERO);
        })
    }

    pub(crate) fn is_paused(&self, queue: &str, wall: Timestamp) -> bool {
        let settings = self.settings(queue);
        settings.paused || settings.paused_until > wall
    }

    /// A queue goes with its settings, if it is there and has no task at all.
    fn delete_queue(&mut self, name: &QueueName) -> Result<Reply, Rejection> {
        let tasks: Vec<_> = self.tasks.values().filter(|task| task.terms.queue == *name).collect();
        if !tasks.is_empty() {
            let ended = tasks.iter().filter(|task| task.state.is_terminal()).count() as u64;
            let (name, tasks) = (name.clone(), tasks.len() as u64);
            return Err(Rejection::QueueInUse { name, tasks, ended });
        }
        let mut others = self.configured.iter();
        let needs = others.find(|(_, it)| it.dead_letter_queue.as_deref() == Some(name.as_str()));
        if let Some((of, _)) = needs {
            return Err(Rejection::QueueOfDeadLetters { name: name.clone(), of: (&**of).into() });
        }
        if self.configured.remove(name.as_str()).is_none() {
            return Err(Rejection::QueueNotFound { name: name.clone() });
        }
        self.writes = true;
        Ok(Reply::Deleted)
    }

    /// Far ahead, both counters alike; no task notices.
    fn skip_ids(&mut self, jump: IdJump) -> Reply {
        self.next_task += jump.ids();
        self.next_lease += jump.ids();
        self.writes = true;
        self.next_run += jump.ids();
        Reply::Skipped(IdsSkipped {
            next_task_id: TaskId(self.next_task),
            next_lease_id: LeaseId(self.next_lease),
            next_run_id: RunId(self.next_run),
        })
    }

    /// A queue that is not paused is left alone; a typing error makes none.
    fn resume(&mut self, name: &str) -> Reply {
        match self.settings(name) {
            settings if !settings.paused && settings.paused_until == Timestamp::ZERO => {
                Reply::Queue(settings)
            }
            _ => self.set_queue(name, |queue| {
                (queue.paused, queue.paused_until) = (false, Timestamp::ZERO);
            }),
        }
    }

    /// To say that a queue shall be as it is changes nothing, unless nobody has said so yet.
    fn set_queue(&mut self, name: &str, change: impl FnOnce(&mut QueueSettings)) -> Reply {
        let mut settings = self.settings(name);
        change(&mut settings);
        if self.configured.get(name) != Some(&settings) {
            self.configured.insert(name.to_owned(), settings.clone());
            // Its dead letter queue is there from now on.
            if let Some(dead_letters) = &settings.dead_letter_queue {
                self.configured.entry(dead_letters.to_string()).or_default();
            }
            self.writes = true;
        }
        Reply::Queue(settings)
    }

    pub(crate) fn settings(&self, queue: &str) -> QueueSettings {
        self.configured.get(queue).cloned().unwrap_or_default()
    }

    pub(crate) fn task(&mut self, id: u64) -> &mut Task {
        self.tasks.get_mut(&id).expect("the model found it before")
    }

    /// A step of this task as it is now; `from` and the lease are for the caller to say.
    pub(crate) fn step(&self, event: &'static str, id: u64) -> Step {
        let task = &self.tasks[&id];
        Step {
            event,
            task: id,
            queue: task.terms.queue.as_str().to_owned(),
            from: None,
            to: task.state,
            worker: None,
            lease: None,
            attempt: task.attempt,
            priority: task.priority.get(),
            code: None,
            reason: None,
            previous: task.last_lsn,
            dead_letter_of: None,
        }
    }

    /// Puts a step into the task's history.
    pub(crate) fn tell(&mut self, id: u64, step: Step) {
        self.steps.push(step);
        let lsn = self.lsn;
        self.task(id).last_lsn = lsn;
        self.writes = true;
    }

    /// Notes a change that is no part of any task's history.
    pub(crate) fn write_quietly(&mut self) {
        self.writes = true;
    }

    pub(crate) fn has_written(&self) -> bool {
        self.writes
    }
}

impl Task {
    /// The lease is over; the task is now in that state.
    pub(crate) fn end_lease(&mut self, to: TaskState, now: Now) {
        self.lease = None;
        self.revoke_at = None;
        self.state = to;
        (self.not_before, self.clock) = (0, Clock::Log);
        self.finished_at = to.is_terminal().then_some(now.log.0);
        self.finished_wall_at = to.is_terminal().then_some(now.wall.0);
    }

    /// A report without a checkpoint leaves the one that is there.
    pub(crate) fn keep_checkpoint(&mut self, checkpoint: Option<&Checkpoint>) {
        if let Some(checkpoint) = checkpoint {
            self.checkpoint = Some(checkpoint.as_bytes().to_vec());
        }
    }

    /// The last three are kept.
    pub(crate) fn keep_error(&mut self, code: &str, message: &str) {
        self.errors.push((code.to_owned(), message.to_owned()));
        if self.errors.len() > 3 {
            self.errors.remove(0);
        }
    }

    /// Whether one of its budgets is used up.
    pub(crate) fn is_spent(&self) -> bool {
        let Budgets { max_failures, max_expiries, max_attempts } = self.terms.budgets;
        max_failures.is_some_and(|most| self.failures == most.get())
            || max_expiries.is_some_and(|most| self.expiries == most.get())
            || max_attempts.is_some_and(|most| self.failures + self.expiries == most.get())
    }

    pub(crate) fn backoff(&self) -> Backoff {
        with_defaults(self.terms.backoff.clone())
    }
}

/// No request has more items than one record can deal with.
pub(crate) fn check_size(items: usize) -> Result<(), Rejection> {
    let items_max = BATCH_ITEMS_MAX;
    if items > items_max { Err(Rejection::BatchTooLarge { items, items_max }) } else { Ok(()) }
}

/// Who else has the key: an earlier one of the batch, which has no number if the batch is refused,
/// or a task. A submit that came alone is not told its place.
fn conflict(
    batch: &[NewTask],
    earlier: &[Submitted],
    index: usize,
    key: &TaskKey,
    task_id: TaskId,
) -> Rejection {
    let key = key.clone();
    let made = Submitted { task_id, outcome: SubmitOutcome::Created };
    if let Some(first) = earlier.iter().position(|submitted| *submitted == made) {
        return Rejection::KeyTwice { index, key, first };
    }
    let index = if batch.len() == 1 { None } else { Some(index) };
    Rejection::KeyConflict { index, key, task_id }
}

/// Two submits are the same if they ask for the same, whether they spell the defaults out or not.
fn is_same_submit(one: &NewTask, other: &NewTask) -> bool {
    let spelled_out = |new: &NewTask| {
        let mut new = new.clone();
        new.backoff = Some(with_defaults(new.backoff));
        // Each try of a request has its own.
        new.traceparent = None;
        new.seal = None;
        if new.start == Start::After(Default::default()) {
            new.start = Start::AtOnce;
        }
        new
    };
    let (mut one, mut other) = (spelled_out(one), spelled_out(other));
    let values = [&one, &other].map(|new| Value::from_json_exact(new.payload.as_bytes()).ok());
    if let [Some(one_value), Some(other_value)] = values
        && one_value == other_value
    {
        (one.payload, other.payload) = Default::default();
    }
    one == other
}

fn with_defaults(backoff: Option<Backoff>) -> Backoff {
    let backoff = backoff.unwrap_or(Backoff::STANDARD);
    Backoff { kind: Some(backoff.kind.unwrap_or(BackoffKind::Exponential)), ..backoff }
}

//! The truth tables: what becomes of each command in each situation that a task can be in.
//!
//! Task 1 is always in queue `q`, with key `k`, an hour to its deadline, leases of 30 s, a backoff
//! of 10 s and budgets of two. Where it was ever leased, lease 1 is over and lease 2 is its last.

mod cancel_task;
mod complete_task;
mod dead_letters;
mod drop_leases;
mod end_leases;
mod fail_task;
mod fire_timers;
mod heartbeat;
mod lease_tasks;
mod purge_archived;
mod purge_tasks;
mod queue_settings;
mod register_workflow;
mod release_task;
mod report_tasks;
mod retry_task;
mod skip_ids;
mod submit_tasks;

use std::fmt::Write as _;
use std::num::NonZeroU32;

use super::{Verdict, decide};
use crate::command::{
    CancelTask, Command, CompleteTask, FailTask, LeaseRef, LeaseTasks, NewTask, Reply, Reported,
    Retry, Start, SubmitOutcome, SubmitTasks, Swept,
};
use crate::rejection::Rejection;
use crate::state::{Draft, State};
use crate::{apply, invariant};

/// Every situation that makes a difference to some command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Situation {
    /// Waits and was never leased.
    Fresh,
    /// Waits for its moment, 10 s away, and was never leased.
    Delayed,
    /// Waits again, because lease 2 was released.
    Returned,
    /// Waits for 10 s, because it failed under lease 2.
    BackingOff,
    /// Lease 2 holds for another 30 s.
    Leased,
    /// The time of lease 2 is up, and no tick has noticed.
    Late,
    /// Lease 2 holds, and a client wants it to stop.
    AskedToStop,
    /// Done under lease 2.
    Completed,
    /// Failed for good under lease 2.
    Failed,
    /// Lease 2 was the second that expired.
    Dead,
    /// Asked to stop, and stopped by releasing lease 2.
    Canceled,
}

use Situation::{
    AskedToStop, BackingOff, Canceled, Completed, Dead, Delayed, Failed, Fresh, Late, Leased,
    Returned,
};
use tenure_record::codec;
use tenure_record::event::{Event, Record, Report};
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::limits::RECORD_BYTES_MAX;
use tenure_record::name::{QueueName, Reason, TaskKey, WorkerName};
use tenure_record::state::TaskState;
use tenure_record::terms::{Backoff, BackoffKind, Budgets, Payload, SpanMs};
use tenure_record::time::{Now, Timestamp};
use tenure_record::transition::transitions;

const SITUATIONS: [Situation; 11] = [
    Fresh,
    Delayed,
    Returned,
    BackingOff,
    Leased,
    Late,
    AskedToStop,
    Completed,
    Failed,
    Dead,
    Canceled,
];

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const TASK: TaskId = TaskId(1);
const OLDER: u64 = 1;
const ITS_OWN: u64 = 2;
const NEVER_GIVEN: u64 = 3;

/// One column of a table: after how long, and which command.
struct Column {
    title: &'static str,
    wait_ms: u64,
    command: fn(Situation) -> Command,
}

fn column(title: &'static str, command: fn(Situation) -> Command) -> Column {
    Column { title, wait_ms: 0, command }
}

fn later(title: &'static str, wait_ms: u64, command: fn(Situation) -> Command) -> Column {
    Column { title, wait_ms, command }
}

/// Plays every command in every situation and compares with the table, cell by cell. Spaces do
/// not count; a failure shows the table as it is.
#[track_caller]
fn assert_table(columns: &[Column], expected: &str) {
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(columns.iter().map(|column| column.title.to_owned()));
    for situation in SITUATIONS {
        let mut row = vec![format!("{situation:?}")];
        row.extend(columns.iter().map(|column| {
            let mut world = World::with(situation);
            world.wait(column.wait_ms);
            world.play(&(column.command)(situation))
        }));
        rows.push(row);
    }
    let expected: Vec<Vec<String>> = expected
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    assert!(rows == expected, "the table is now\n\n{}", drawn(&rows));
}

fn drawn(rows: &[Vec<String>]) -> String {
    let width = |at: usize| rows.iter().map(|row| row[at].len()).max().unwrap_or_default();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(at, cell)| format!("{cell:0$}", width(at)));
        let _ = writeln!(text, "        {}", cells.collect::<Vec<_>>().join(" | ").trim_end());
    }
    text
}

/// A state, and the time.
struct World {
    state: State,
    now: Timestamp,
}

impl World {
    fn new() -> Self {
        Self { state: State::new(0), now: Timestamp(1_700_000_000_000) }
    }

    /// Task 1 in that situation.
    fn with(situation: Situation) -> Self {
        let mut world = Self::new();
        world.play(&submit(body(situation)));
        if matches!(situation, Fresh | Delayed) {
            return world;
        }
        world.play(&lease());
        if situation == Dead {
            world.expire();
        } else {
            world.play(&release(OLDER));
        }
        world.play(&lease());
        match situation {
            Fresh | Delayed | Leased => {}
            Returned => drop(world.play(&release(ITS_OWN))),
            BackingOff => drop(world.play(&fail(ITS_OWN, Retry::WithBackoff))),
            Late => world.wait(30 * SECOND),
            AskedToStop => drop(world.play(&cancel(None))),
            Completed => drop(world.play(&complete(ITS_OWN))),
            Failed => drop(world.play(&fail(ITS_OWN, Retry::Never))),
            Dead => drop(world.expire()),
            Canceled => {
                world.play(&cancel(None));
                world.play(&release(ITS_OWN));
            }
        }
        world
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
    }

    fn expire(&mut self) -> String {
        self.wait(30 * SECOND);
        self.play(&Command::FireTimers)
    }

    /// Decides and applies a command; says in a few words what became of it.
    fn play(&mut self, command: &Command) -> String {
        self.state.advance(Now::both(self.now));
        let before = self.state.clone();
        let told = self.play_unchecked(command);
        if self.state.last_lsn() > before.last_lsn() {
            let mut draft = Draft::new(&before);
            decide(&mut draft, command, Now::both(self.now), 0).unwrap();
            draft.check_against(&self.state).unwrap();
            invariant::check(&self.state).unwrap();
        }
        told
    }

    /// The same without a look at the laws, for large states.
    fn play_unchecked(&mut self, command: &Command) -> String {
        let now = Now::both(self.now);
        self.state.advance(now);
        let (event, reply) = match decide(&mut Draft::new(&self.state), command, now, 0) {
            Ok(Verdict::Append(event, reply)) => (event, reply),
            Ok(Verdict::Answer(reply)) => return answered(&reply),
            Err(refusal) => return refusal.code().to_string(),
        };
        let record =
            Record { lsn: self.state.last_lsn().next(), at: now.log, wall: now.wall, event };
        apply(&mut self.state, &record);
        written(&record, &reply, self.now)
    }

    /// How a command is refused, in full.
    fn refusal(&self, command: &Command) -> Option<Rejection> {
        decide(&mut Draft::new(&self.state), command, Now::both(self.now), 0).err()
    }

    /// How far a sweep would get.
    fn swept(&self, command: &Command) -> Swept {
        let mut draft = Draft::new(&self.state);
        let verdict = decide(&mut draft, command, Now::both(self.now), 0).unwrap();
        let (Verdict::Append(_, reply) | Verdict::Answer(reply)) = verdict;
        let Reply::Swept(swept) = reply else { unreachable!("{reply:?}") };
        swept
    }

    /// The bytes of the record that a command would write; none if it is refused.
    fn bytes(&self, command: &Command) -> Option<usize> {
        let mut draft = Draft::new(&self.state);
        let verdict = decide(&mut draft, command, Now::both(self.now), 0).ok()?;
        let Verdict::Append(event, _) = verdict else { return Some(0) };
        let mut bytes = Vec::new();
        let lsn = self.state.last_lsn().next();
        codec::encode(&Record { lsn, at: self.now, wall: self.now, event }, &mut bytes);
        Some(bytes.len())
    }
}

/// A record in a few words: the event, the state it leads to, and the facts that matter most.
fn written(record: &Record<'_>, reply: &Reply, now: Timestamp) -> String {
    let mut text = record.event.name().to_owned();
    let steps = transitions(record);
    if let [step] = steps.as_slice()
        && step.from != Some(step.to)
    {
        let _ = write!(text, " -> {}", step.to);
    }
    let seconds = |at: Timestamp| (at.0 - now.0) / SECOND;
    match &record.event {
        Event::LeaseGranted(event) => {
            let _ = write!(text, ", {} s", seconds(event.grants[0].expires_at));
        }
        Event::CancelRequested(item) if item.to == TaskState::Leased => {
            let _ = write!(text, ", {} s left", seconds(item.expires_at));
        }
        Event::LeaseExpired(event) => {
            let _ = write!(text, ", {}", event.leases[0].cause.as_str());
        }
        Event::ReportsApplied(event) => {
            let names: Vec<_> = event.reports.iter().map(Report::name).collect();
            text = match event.reports.as_slice() {
                [report] => text.replace(record.event.name(), report.name()),
                _ => names.join("+"),
            };
            let moment = match event.reports.as_slice() {
                [Report::LeaseExtended(item)] => Some(item.expires_at),
                [Report::TaskFailed(item)] if item.to == TaskState::Waiting => {
                    Some(item.not_before)
                }
                _ => None,
            };
            if let Some(at) = moment {
                let _ = write!(text, ", {} s", seconds(at));
            }
        }
        Event::TaskCreated(_)
        | Event::CancelRequested(_)
        | Event::TaskRetried(_)
        | Event::TimerFired(_)
        | Event::QueueConfigured(_)
        | Event::TasksPurged(_)
        | Event::IdsSkipped(_)
        | Event::WorkflowRegistered(_)
        | Event::RunStarted(_)
        | Event::SignalReceived(_)
        | Event::EndContinued(_)
        | Event::RunParked(_)
        | Event::RunUnparked(_)
        | Event::RunCancelRequested(_)
        | Event::QueueDeleted(_)
        | Event::WorkflowDeleted(_)
        | Event::RunsStarted(_)
        | Event::RunStartedBySignal(_)
        | Event::DispatchContinued(_) => {}
    }
    match reply {
        Reply::LeaseLost(_) | Reply::Reported { .. } => format!("{text}, {}", answered(reply)),
        Reply::Extended(extended) if extended.cancel_requested => text + ", cancel requested",
        Reply::Submitted(_)
        | Reply::Leased(_)
        | Reply::Extended(_)
        | Reply::Task(..)
        | Reply::Swept(_)
        | Reply::Queue(_)
        | Reply::Skipped(_)
        | Reply::Registered(_)
        | Reply::Started(_)
        | Reply::StartedMany(_)
        | Reply::Deleted
        | Reply::SignaledByKey { .. }
        | Reply::Run(..)
        | Reply::Signaled(_) => text,
    }
}

/// An answer in a few words.
fn answered(reply: &Reply) -> String {
    let result = |report: &Reported| match &report.result {
        Ok(accepted) => accepted.state.as_str(),
        Err(refusal) => refusal.code().as_str(),
    };
    match reply {
        Reply::Submitted(tasks) => {
            let known = tasks.iter().all(|task| task.outcome == SubmitOutcome::Existed);
            if known { "= existed".to_owned() } else { "= created".to_owned() }
        }
        Reply::Leased(leases) => format!("= {} leases", leases.len()),
        Reply::Extended(_) => "= extended".to_owned(),
        Reply::Task(_, state) => format!("= {state}"),
        Reply::LeaseLost(refusal) => refusal.code().to_string(),
        Reply::Reported { reports, .. } => reports.iter().map(result).collect::<Vec<_>>().join("+"),
        Reply::Swept(swept) => format!("= {} done", swept.items),
        Reply::Skipped(next) => format!("= task {} is next", next.next_task_id),
        Reply::Registered(registered) => format!("= version {}", registered.version),
        Reply::Started(started) => format!("= run {}", started.run_id),
        Reply::Run(_, state) => format!("= {state}"),
        Reply::Signaled(signaled) | Reply::SignaledByKey { signaled, .. } => {
            format!("= {signaled:?}")
        }
        Reply::StartedMany(runs) => format!("= {} runs", runs.len()),
        Reply::Deleted => "= deleted".to_owned(),
        Reply::Queue(settings) => {
            if settings.paused {
                "= paused".to_owned()
            } else if settings.paused_until > Timestamp::ZERO {
                format!("= paused until {}", settings.paused_until.0)
            } else {
                "= open".to_owned()
            }
        }
    }
}

fn queue(name: &str) -> QueueName {
    QueueName::parse(name).unwrap()
}

fn span(ms: u64) -> SpanMs {
    SpanMs::parse("span", ms as i64).unwrap()
}

/// How task 1 was submitted.
fn body(situation: Situation) -> NewTask {
    let payload = Payload::parse("payload", b"null".to_vec()).unwrap();
    let kind = Some(BackoffKind::Fixed);
    let wait = 10 * SECOND;
    NewTask {
        start: if situation == Delayed { Start::After(span(wait)) } else { Start::AtOnce },
        budgets: Budgets::parse(Some(2), Some(2), None).unwrap(),
        backoff: Some(Backoff { kind, initial_ms: wait, max_ms: wait, jitter_permille: 0 }),
        total_timeout_ms: Some(span(HOUR)),
        key: Some(TaskKey::parse("k").unwrap()),
        ..NewTask::new(queue("q"), payload)
    }
}

fn submit(task: NewTask) -> Command {
    Command::SubmitTasks(SubmitTasks { tasks: vec![task] })
}

fn lease() -> Command {
    lease_of(&["q"], 1)
}

fn lease_of(queues: &[&str], tasks_max: u32) -> Command {
    Command::LeaseTasks(LeaseTasks {
        worker: WorkerName::parse("w").unwrap(),
        queues: queues.iter().map(|name| queue(name)).collect(),
        tasks_max: NonZeroU32::new(tasks_max).unwrap(),
        lease_ms: None,
    })
}

fn of(lease: u64) -> LeaseRef {
    LeaseRef { task_id: TASK, lease_id: LeaseId(lease) }
}

fn completion(lease: u64) -> CompleteTask {
    CompleteTask {
        lease: of(lease),
        output: Payload::default(),
        artifacts: Vec::new(),
        worker: None,
    }
}

fn failure(lease: u64, retry: Retry) -> FailTask {
    FailTask {
        lease: of(lease),
        reason: Reason::default(),
        code: None,
        retry,
        checkpoint: None,
        worker: None,
    }
}

fn complete(lease: u64) -> Command {
    Command::CompleteTask(completion(lease))
}

fn fail(lease: u64, retry: Retry) -> Command {
    Command::FailTask(failure(lease, retry))
}

fn release(lease: u64) -> Command {
    Command::ReleaseTask(of(lease).into())
}

fn cancel(grace_ms: Option<u64>) -> Command {
    Command::CancelTask(CancelTask { task_id: TASK, grace_ms: grace_ms.map(span) })
}

/// The command with the most items that is not too large, looked for from `count` down.
fn largest_that_is_taken(
    world: &World,
    mut count: usize,
    command: impl Fn(usize) -> Command,
) -> Command {
    loop {
        let tried = command(count);
        match world.refusal(&tried) {
            Some(Rejection::RecordTooLarge { bytes }) => {
                count = (count * RECORD_BYTES_MAX / bytes).min(count - 1);
            }
            Some(other) => unreachable!("{other}"),
            None => return tried,
        }
    }
}

/// A task that does not exist, for the commands that name one.
#[test]
fn a_task_that_does_not_exist_is_not_found() {
    let mut world = World::new();
    let commands = [
        Command::Heartbeat(of(1).into()),
        complete(1),
        fail(1, Retry::WithBackoff),
        release(1),
        cancel(None),
        Command::RetryTask(TASK),
    ];
    for command in commands {
        assert_eq!(world.play(&command), "not_found", "{command:?}");
    }
}

//! Where trouble comes from: plans of random moves in a small world. Few queues, workers and keys,
//! short leases and small budgets, so that everything meets everything.
//!
//! A plan names no ids. It says "the third of the leases that hold" or "one that was never given",
//! and only the run, which knows what there is, turns that into a command. So a plan can be cut
//! anywhere by the shrinker and still makes sense.

use std::num::NonZeroU32;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tenure_core::command::{
    Archived, CancelTask, Command, CompleteTask, ConfigureQueue, FailTask, Heartbeat, IdJump,
    LeaseRef, LeaseTasks, NewTask, PauseEnd, PauseQueue, ReleaseTask, ReportTasks, Retention,
    Retry, Setting, SettingsChange, Start, SubmitTasks,
};
use tenure_record::id::{LeaseId, Lsn, TaskId};
use tenure_record::name::{
    FailureCode, QueueName, Reason, TagKey, TagValue, TaskKey, TaskName, WorkerName,
};
use tenure_record::progress::Checkpoint;
use tenure_record::state::TaskState;
use tenure_record::terms::{
    Backoff, BackoffKind, Budget, Budgets, Count, LeaseMs, Payload, Priority, SpanMs, Tags,
};
use tenure_record::time::{Now, Timestamp};
use tenure_record::trace::TraceParent;

use crate::model::{Model, Task};

pub(crate) const QUEUES: [&str; 3] = ["mail", "scan", "bulk"];
pub(crate) const WORKERS: [&str; 3] = ["anna", "ben", "cleo"];
/// Where both clocks begin.
pub(crate) const START_MS: u64 = 10_000;

/// A whole run.
#[derive(Clone)]
pub(crate) struct Plan {
    pub moves: Vec<Move>,
    /// Bytes to spoil in the log at the end: which record, which byte, how.
    pub faults: Vec<(u16, u16, u8)>,
}

/// The script of a failed run says more than the plan would.
impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a plan of {} moves", self.moves.len())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub pace: Pace,
    pub drift: Drift,
    pub wish: Wish,
    pub seed: u64,
    pub look: Look,
}

/// How log time moves on before the wish.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    By(u64),
    /// To one of the moments at which something is due: just before, at, or just after it.
    Near(u16, i8),
}

/// What the wall clock does meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drift {
    Along,
    Still,
    Ahead(u64),
    Back(u64),
    /// To an appointment: just before, at, or just after it.
    Near(u16, i8),
}

/// Kinds of work.
const NAMES: [&str; 2] = ["send", "scan"];

/// What to list afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub queue: Option<&'static str>,
    pub state: Option<TaskState>,
    pub name: Option<&'static str>,
    pub tag: Option<(&'static str, &'static str)>,
    pub worker: Option<&'static str>,
    pub code: Option<&'static str>,
    pub retrying: Option<bool>,
    pub limit: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Wish {
    Act(Act),
    /// Start anew from the log, with the wall clock as it is.
    Restart,
    /// Keep a view; it must stay as it is.
    View,
}

/// What will be a command.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// It needs no ids.
    Plain(Command),
    Report(Report, Which),
    Reports(Vec<(Report, Which)>),
    /// The last report once more: its answer got lost.
    Again,
    Cancel(Pick, Option<SpanMs>),
    Retry(Pick),
    Drop(Vec<Which>),
}

#[derive(Clone, Debug)]
pub(crate) enum Report {
    Heartbeat(Option<LeaseMs>, Option<Checkpoint>),
    Complete(Payload),
    Fail(Reason, Option<FailureCode>, Retry, Option<Checkpoint>),
    Release(SpanMs, Option<Priority>, Option<Checkpoint>),
}

/// Which task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pick {
    Live(u16),
    Ended(u16),
    /// Any number from 0 to one too many, also of purged tasks and of gaps.
    Any(u16),
}

/// Which lease of which task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// A lease that holds.
    Held(u16),
    /// A lease that holds while somebody wants the task to stop.
    Asked(u16),
    /// The last lease of a task, but its time is up or it has ended.
    Ended(u16),
    /// Some lease under some task's name.
    Mixed(Pick, u16),
}

/// A plan of so many moves.
pub(crate) fn plan(moves: std::ops::Range<usize>) -> impl Strategy<Value = Plan> {
    (vec(a_move(), moves), vec(any::<(u16, u16, u8)>(), 0..8))
        .prop_map(|(moves, faults)| Plan { moves, faults })
}

fn a_move() -> impl Strategy<Value = Move> {
    (pace(), drift(), wish(), any::<u64>(), look())
        .prop_map(|(pace, drift, wish, seed, look)| Move { pace, drift, wish, seed, look })
}

fn pace() -> impl Strategy<Value = Pace> {
    prop_oneof![
        12 => (0..2_u64).prop_map(Pace::By),
        6 => (0..20_u64).prop_map(Pace::By),
        1 => (100..3_000_u64).prop_map(Pace::By),
        3 => (0..4_u16, -1..=1_i8).prop_map(|(pick, off)| Pace::Near(pick, off)),
    ]
}

fn drift() -> impl Strategy<Value = Drift> {
    prop_oneof![
        12 => Just(Drift::Along),
        1 => Just(Drift::Still),
        1 => (1..200_u64).prop_map(Drift::Ahead),
        1 => (1..100_u64).prop_map(Drift::Back),
        2 => (0..4_u16, -1..=1_i8).prop_map(|(pick, off)| Drift::Near(pick, off)),
    ]
}

fn look() -> impl Strategy<Value = Look> {
    let tag = select(&[("team", "red"), ("team", "blue"), ("team", "none"), ("size", "")][..]);
    (
        option::of(select(&QUEUES[..])),
        option::of(select(&TaskState::ALL[..])),
        option::weighted(0.3, tag),
        option::weighted(0.3, select(&WORKERS[..])),
        (
            option::weighted(0.2, select(&["E_DISK", "TASK_FAILED"][..])),
            option::weighted(0.2, any::<bool>()),
            option::weighted(0.2, select(&NAMES[..])),
        ),
        1..5_usize,
    )
        .prop_map(|(queue, state, tag, worker, (code, retrying, name), limit)| Look {
            queue,
            state,
            name,
            tag,
            worker,
            code,
            retrying,
            limit,
        })
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        40 => act().prop_map(Wish::Act),
        1 => Just(Wish::Restart),
        1 => Just(Wish::View),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let submit = vec(new_task(), 0..5);
    let submit = submit.prop_map(|tasks| Command::SubmitTasks(SubmitTasks { tasks }));
    let retention = (select(&[0, 1, 50, 500, u64::MAX][..]), select(&[0, 1, 3, u64::MAX][..]));
    let purge = retention.prop_map(|(age_ms, tasks_max)| {
        Command::PurgeTasks(Retention { age_ms, tasks_max, ..Retention::default() })
    });
    // Any tasks, also such as nobody would archive; by their last record, or by all records.
    let archived = (vec(0..40_u64, 0..6), prop_oneof![Just(u64::MAX), 0..100_u64]);
    let purge_archived = archived.prop_map(|(ids, lsn)| {
        let tasks = ids.into_iter().map(TaskId).collect();
        Command::PurgeArchived(Archived { tasks, runs: Vec::new(), as_of: Lsn(lsn) })
    });
    let grace_ms = option::of(span(&[0, 0, 1, 30, 80, 1_000]));
    prop_oneof![
        6 => submit.prop_map(Act::Plain),
        8 => lease_tasks().prop_map(Act::Plain),
        9 => (report(), which()).prop_map(|(report, which)| Act::Report(report, which)),
        3 => vec((report(), which()), 0..6).prop_map(Act::Reports),
        2 => Just(Act::Again),
        3 => (pick(), grace_ms).prop_map(|(pick, grace_ms)| Act::Cancel(pick, grace_ms)),
        2 => pick().prop_map(Act::Retry),
        3 => Just(Act::Plain(Command::FireTimers)),
        1 => vec(which(), 0..4).prop_map(Act::Drop),
        1 => queue_command().prop_map(Act::Plain),
        1 => purge.prop_map(Act::Plain),
        1 => purge_archived.prop_map(Act::Plain),
        1 => Just(Act::Plain(Command::SkipIds(IdJump::UncleanStart))),
    ]
}

fn new_task() -> impl Strategy<Value = NewTask> {
    prop_oneof![3 => free_task(), 1 => keyed_task()]
}

fn free_task() -> impl Strategy<Value = NewTask> {
    let start = prop_oneof![
        5 => Just(Start::AtOnce),
        2 => span(&[0, 1, 20, 100]).prop_map(Start::After),
        2 => near_moment().prop_map(Start::At),
    ];
    (
        (queue(), payload(), select(&[-100, -1, 0, 0, 0, 7, 100][..]), start),
        (budgets(), option::of(backoff()), 50..120_i64),
        (
            option::weighted(0.3, span(&[0, 1, 40, 90, 300, 300])),
            option::weighted(0.3, span(&[1, 30, 60, 90, 200])),
            tags(),
            option::weighted(0.5, select(&NAMES[..])),
        ),
    )
        .prop_map(
            |(
                (queue, payload, priority, start),
                terms,
                (total_timeout_ms, attempt_timeout_ms, tags, name),
            )| {
                let (budgets, backoff, lease_ms) = terms;
                NewTask {
                    priority: Priority::parse(priority).expect("it is in range"),
                    start,
                    budgets,
                    backoff,
                    lease_ms: LeaseMs::parse(lease_ms).expect("it is in range"),
                    total_timeout_ms,
                    attempt_timeout_ms,
                    tags,
                    name: name.map(|name| TaskName::parse(name).expect("it is a name")),
                    ..NewTask::new(queue, payload)
                }
            },
        )
}

fn budgets() -> impl Strategy<Value = Budgets> {
    let some = || (1..=3_u16).prop_map(|number| Some(Budget::of(number)));
    prop_oneof![
        3 => (some(), some()).prop_map(|(f, e)| Budgets::with_defaults(f, e, None)),
        1 => some().prop_map(|a| Budgets::with_defaults(None, None, a)),
        1 => (some(), some()).prop_map(|(f, a)| Budgets::with_defaults(f, None, a)),
    ]
}

/// A submit under a key: mostly the same body, sometimes with one thing different.
fn keyed_task() -> impl Strategy<Value = NewTask> {
    (queue(), select(&["k1", "k2"][..]), 0..30_u8).prop_map(|(queue, key, twist)| {
        let mut new = NewTask::new(queue, text_payload("{}"));
        new.key = Some(TaskKey::parse(key).expect("it is a key"));
        new.budgets.max_failures = Some(Budget::of(2));
        let some = SpanMs::parse("span", 20).expect("it is in range");
        match twist {
            0 => new.payload = text_payload("[]"),
            1 => new.priority = Priority::parse(1).expect("it is in range"),
            2 => new.start = Start::After(some),
            3 => new.budgets.max_failures = Some(Budget::of(3)),
            4 => new.budgets.max_expiries = Some(Budget::of(2)),
            15 => new.key_ttl_ms = Some(some),
            16 => new.attempt_timeout_ms = Some(some),
            19 => new.name = Some(TaskName::parse(NAMES[0]).expect("it is a name")),
            // The same payload, and the same submit, in other words.
            17 => new.payload = text_payload(" {\n} "),
            18 => {
                let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
                new.traceparent = Some(TraceParent::parse(parent).expect("it is one"));
            }
            14 => new.budgets.max_attempts = Some(Budget::of(2)),
            5 => new.backoff = Some(Backoff { max_ms: 7, ..Backoff::STANDARD }),
            6 => new.lease_ms = LeaseMs::parse(60).expect("it is in range"),
            7 => new.total_timeout_ms = Some(some),
            8 => new.tags = Tags::parse(vec![tag("team", "red")]).expect("one tag"),
            9 => new.start = Start::At(Timestamp(START_MS + 40)),
            // These only spell out what is so anyway.
            10 | 11 => new.backoff = Some(Backoff::STANDARD),
            12 => new.backoff = Some(Backoff { kind: None, ..Backoff::STANDARD }),
            13 => new.start = Start::After(SpanMs::default()),
            _ => {}
        }
        // A submit that is not sealed is hashed where it is decided.
        if twist % 2 == 0 { new.sealed() } else { new }
    })
}

fn lease_tasks() -> impl Strategy<Value = Command> {
    let queues = prop_oneof![
        2 => Just(QUEUES.map(named).to_vec()),
        1 => vec(queue(), 0..4),
    ];
    let lease_ms = option::weighted(0.3, select(&[50, 70, 200][..]));
    (select(&WORKERS[..]), queues, 1..5_u32, lease_ms).prop_map(
        |(worker, queues, tasks_max, lease_ms)| {
            Command::LeaseTasks(LeaseTasks {
                worker: WorkerName::parse(worker).expect("it is a name"),
                queues,
                tasks_max: NonZeroU32::new(tasks_max).expect("it begins at one"),
                lease_ms: lease_ms.map(|ms| LeaseMs::parse(ms).expect("it is in range")),
            })
        },
    )
}

fn queue_command() -> impl Strategy<Value = Command> {
    let retention_ms = prop_oneof![
        Just(Setting::Keep),
        Just(Setting::Clear),
        span(&[0, 30, 400]).prop_map(Setting::Set),
    ];
    let paused_until = prop_oneof![
        2 => Just(Setting::Keep),
        1 => Just(Setting::Clear),
        1 => near_moment().prop_map(Setting::Set),
    ];
    let dead_letter_queue = prop_oneof![
        1 => Just(Setting::Keep),
        1 => Just(Setting::Clear),
        3 => queue().prop_map(Setting::Set),
    ];
    let max_waiting = prop_oneof![
        2 => Just(Setting::Keep),
        1 => Just(Setting::Clear),
        1 => (1..4_i64).prop_map(|count| Setting::Set(Count::parse("max_waiting", count).expect("in range"))),
    ];
    let change = (retention_ms, paused_until, dead_letter_queue, max_waiting);
    let change = change.prop_map(|(retention_ms, paused_until, dead_letter_queue, max_waiting)| {
        SettingsChange { retention_ms, paused_until, dead_letter_queue, max_waiting }
    });
    let configure = (queue(), change)
        .prop_map(|(queue, change)| Command::ConfigureQueue(ConfigureQueue { queue, change }));
    prop_oneof![
        1 => (queue(), pause_end()).prop_map(|(queue, end)| {
            Command::PauseQueue(PauseQueue { queue, end })
        }),
        1 => queue().prop_map(Command::DeleteQueue),
        3 => queue().prop_map(Command::ResumeQueue),
        2 => configure,
    ]
}

fn near_moment() -> impl Strategy<Value = Timestamp> {
    (START_MS..START_MS + 1_000).prop_map(Timestamp)
}

fn pause_end() -> impl Strategy<Value = PauseEnd> {
    prop_oneof![
        1 => Just(PauseEnd::Resumed),
        1 => near_moment().prop_map(PauseEnd::At),
        2 => span(&[0, 20, 200]).prop_map(PauseEnd::After),
    ]
}

fn report() -> impl Strategy<Value = Report> {
    let retry = prop_oneof![
        3 => Just(Retry::WithBackoff),
        1 => span(&[0, 1, 50]).prop_map(Retry::After),
        1 => Just(Retry::Never),
    ];
    let code = option::of(Just(FailureCode::parse("E_DISK").expect("it is a code")));
    let reason = select(&["", "no space", "größer"][..]).prop_map(Reason::keep_end);
    prop_oneof![
        3 => (option::weighted(0.3, select(&[50, 70, 200][..])), checkpoint()).prop_map(
            |(lease_ms, checkpoint)| {
                let lease_ms = lease_ms.map(|ms| LeaseMs::parse(ms).expect("it is in range"));
                Report::Heartbeat(lease_ms, checkpoint)
            }
        ),
        3 => payload().prop_map(Report::Complete),
        4 => (reason, code, retry, checkpoint()).prop_map(|(reason, code, retry, checkpoint)| {
            Report::Fail(reason, code, retry, checkpoint)
        }),
        2 => (span(&[0, 0, 1, 60]), option::weighted(0.3, -100..=100_i64), checkpoint()).prop_map(
            |(delay_ms, priority, checkpoint)| {
                let priority = priority.map(|p| Priority::parse(p).expect("it is in range"));
                Report::Release(delay_ms, priority, checkpoint)
            }
        ),
    ]
}

/// Most reports hand in no checkpoint.
fn checkpoint() -> impl Strategy<Value = Option<Checkpoint>> {
    select(&["", "", "", "7", r#"{"row":12}"#][..])
        .prop_map(|text| Checkpoint::parse(text.as_bytes()).expect("it is short"))
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        8 => any::<u16>().prop_map(Which::Held),
        1 => any::<u16>().prop_map(Which::Asked),
        2 => any::<u16>().prop_map(Which::Ended),
        1 => (pick(), any::<u16>()).prop_map(|(pick, lease)| Which::Mixed(pick, lease)),
    ]
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        3 => any::<u16>().prop_map(Pick::Live),
        3 => any::<u16>().prop_map(Pick::Ended),
        1 => any::<u16>().prop_map(Pick::Any),
    ]
}

fn queue() -> impl Strategy<Value = QueueName> {
    select(&QUEUES[..]).prop_map(named)
}

pub(crate) fn named(name: &str) -> QueueName {
    QueueName::parse(name).expect("it is a name")
}

fn payload() -> impl Strategy<Value = Payload> {
    select(&["", "null", r#"{"n":1}"#, "[0,1,2,3,4,5,6,7,8,9,10,11,12]"][..]).prop_map(text_payload)
}

pub(crate) fn text_payload(text: &str) -> Payload {
    Payload::parse("payload", text.as_bytes().to_vec()).expect("it is short")
}

fn tags() -> impl Strategy<Value = Tags> {
    let sets = [
        vec![],
        vec![],
        vec![tag("team", "red")],
        vec![tag("team", "blue"), tag("size", "")],
        vec![tag("size", "")],
    ];
    select(sets.to_vec()).prop_map(|tags| Tags::parse(tags).expect("each key comes once"))
}

fn tag(key: &str, value: &str) -> (TagKey, TagValue) {
    let key = TagKey::parse(key).expect("it is a tag's key");
    (key, TagValue::parse(value).expect("it is a tag's value"))
}

fn backoff() -> impl Strategy<Value = Backoff> {
    let kinds =
        [None, Some(BackoffKind::Fixed), Some(BackoffKind::Linear), Some(BackoffKind::Exponential)];
    let jitter = select(&[0_u16, 200, 1_000][..]);
    (select(kinds.to_vec()), select(&[0_u64, 1, 30][..]), select(&[0_u64, 50, 100][..]), jitter)
        .prop_map(|(kind, initial_ms, max_ms, jitter_permille)| Backoff {
            kind,
            initial_ms,
            max_ms,
            jitter_permille,
        })
}

fn span(ms: &'static [i64]) -> impl Strategy<Value = SpanMs> {
    select(ms).prop_map(|ms| SpanMs::parse("span", ms).expect("it is in range"))
}

impl Act {
    /// The command, about what there is in the model now. `last` is the last report.
    pub(crate) fn command(&self, model: &Model, now: Now, last: Option<&Command>) -> Command {
        match self {
            Act::Plain(command) => command.clone(),
            Act::Report(report, which) => report.alone(which.lease(model, now)),
            Act::Reports(reports) => {
                let mut many = ReportTasks::default();
                for (report, which) in reports {
                    report.join(which.lease(model, now), &mut many);
                }
                Command::ReportTasks(many)
            }
            Act::Again => last.cloned().unwrap_or(Command::FireTimers),
            Act::Cancel(pick, grace_ms) => {
                let task_id = TaskId(pick.task(model));
                Command::CancelTask(CancelTask { task_id, grace_ms: *grace_ms })
            }
            Act::Retry(pick) => Command::RetryTask(TaskId(pick.task(model))),
            Act::Drop(leases) => {
                Command::DropLeases(leases.iter().map(|which| which.lease(model, now)).collect())
            }
        }
    }
}

impl Report {
    fn alone(&self, lease: LeaseRef) -> Command {
        match self {
            Report::Heartbeat(..) => Command::Heartbeat(self.heartbeat(lease)),
            Report::Complete(output) => Command::CompleteTask(CompleteTask {
                lease,
                output: output.clone(),
                artifacts: Vec::new(),
                worker: reporter(lease),
            }),
            Report::Fail(..) => Command::FailTask(self.failure(lease)),
            Report::Release(..) => Command::ReleaseTask(self.release(lease)),
        }
    }

    fn join(&self, lease: LeaseRef, many: &mut ReportTasks) {
        match self {
            Report::Heartbeat(..) => many.heartbeats.push(self.heartbeat(lease)),
            Report::Complete(output) => {
                many.completes.push(CompleteTask {
                    lease,
                    output: output.clone(),
                    artifacts: Vec::new(),
                    worker: reporter(lease),
                });
            }
            Report::Fail(..) => many.fails.push(self.failure(lease)),
            Report::Release(..) => many.releases.push(self.release(lease)),
        }
    }

    fn failure(&self, lease: LeaseRef) -> FailTask {
        let Report::Fail(reason, code, retry, checkpoint) = self else {
            unreachable!("it is a failure")
        };
        let (reason, code, checkpoint) = (reason.clone(), code.clone(), checkpoint.clone());
        FailTask { lease, reason, code, retry: *retry, checkpoint, worker: reporter(lease) }
    }

    fn heartbeat(&self, lease: LeaseRef) -> Heartbeat {
        let Report::Heartbeat(lease_ms, checkpoint) = self else {
            unreachable!("it is a heartbeat")
        };
        Heartbeat { lease, lease_ms: *lease_ms, checkpoint: checkpoint.clone(), progress: None }
    }

    fn release(&self, lease: LeaseRef) -> ReleaseTask {
        let Report::Release(delay_ms, priority, checkpoint) = self else {
            unreachable!("it is a release")
        };
        let checkpoint = checkpoint.clone();
        ReleaseTask { lease, delay_ms: *delay_ms, priority: *priority, checkpoint }
    }
}

/// Some reports name a worker; it need not be the one that held the lease.
fn reporter(lease: LeaseRef) -> Option<WorkerName> {
    let name = lease.lease_id.0.is_multiple_of(3).then(|| WorkerName::parse("zombie"));
    name.map(|name| name.expect("it is a name"))
}

impl Pick {
    fn task(self, model: &Model) -> u64 {
        let among = |at: u16, ended: bool| {
            let fits = |id: &u64| model.tasks[id].state.is_terminal() == ended;
            nth(model, at, fits).unwrap_or(model.next_task)
        };
        match self {
            Pick::Live(at) => among(at, false),
            Pick::Ended(at) => among(at, true),
            Pick::Any(at) => any_up_to(model.next_task, at),
        }
    }
}

impl Which {
    fn lease(self, model: &Model, now: Now) -> LeaseRef {
        let holds =
            |task: &Task| task.lease.as_ref().is_some_and(|lease| lease.expires_at > now.log.0);
        let last = |at: u16, fits: &dyn Fn(&Task) -> bool| {
            let found = nth(model, at, |id| fits(&model.tasks[id]));
            let found = found.map(|id| (id, model.tasks[&id].last_lease));
            found.unwrap_or((model.next_task, model.next_lease))
        };
        let (task, lease) = match self {
            Which::Held(at) => last(at, &holds),
            Which::Asked(at) => last(at, &|task| holds(task) && task.cancel_requested),
            Which::Ended(at) => last(at, &|task| !holds(task)),
            Which::Mixed(pick, at) => (pick.task(model), any_up_to(model.next_lease, at)),
        };
        LeaseRef { task_id: TaskId(task), lease_id: LeaseId(lease) }
    }
}

/// A number from 0 to `last`, counted from either end: between them may be a gap.
fn any_up_to(last: u64, at: u16) -> u64 {
    let from_the_end = u64::from(at) % (last + 1).min(1_000);
    if at.is_multiple_of(2) { from_the_end } else { last - from_the_end }
}

/// One of the tasks that fit; if none does, any.
fn nth(model: &Model, at: u16, fits: impl Fn(&u64) -> bool) -> Option<u64> {
    let mut ids: Vec<u64> = model.tasks.keys().copied().filter(fits).collect();
    if ids.is_empty() {
        ids = model.tasks.keys().copied().collect();
    }
    ids.get(usize::from(at) % ids.len().max(1)).copied()
}

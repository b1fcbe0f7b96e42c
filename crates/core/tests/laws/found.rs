//! Single stories, played against the model like the random ones: bounds too far away for them,
//! and the shortest way to each fault that they found.

use std::num::NonZeroU32;

use tenure_core::command::{
    CancelTask, Command, LeaseRef, LeaseTasks, NewTask, ReportTasks, Rest, Retention, Start,
    SubmitTasks,
};
use tenure_core::limits::{ADVANCE_TASKS_MAX, BATCH_ITEMS_MAX, DUE_ITEMS_MAX, LEASE_TASKS_MAX};
use tenure_core::{Draft, State, Verdict, apply, decide, invariant};
use tenure_record::event::Record;
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::name::WorkerName;
use tenure_record::state::TaskState;
use tenure_record::terms::{LeaseMs, SpanMs};
use tenure_record::time::{Clock, Now, Timestamp};

use crate::compare;
use crate::run::Run;
use crate::world::{named, text_payload};

#[test]
fn a_lease_that_ran_out_before_its_revocation_counts_however_late_the_sweep() {
    for late_ms in [0, 10, 1_000] {
        let mut story = Story::new();
        story.submit(1, |task| task);
        story.lease(1);
        story.pass_ms(20);
        let grace_ms = Some(span(50));
        story.play(&Command::CancelTask(CancelTask { task_id: TaskId(1), grace_ms }));
        story.pass_ms(30 + late_ms);
        story.play(&Command::FireTimers);
        let task = story.run.state.task(TaskId(1)).unwrap();
        assert_eq!((task.state(), task.expiries()), (TaskState::Canceled, 1), "{late_ms} ms late");
    }
}

#[test]
fn without_a_limit_of_age_the_oldest_of_all_queues_are_forgotten_first() {
    let mut story = Story::new();
    story.submit(2, |task| task);
    story.submit(1, |task| NewTask { queue: named("scan"), ..task });
    for id in [1, 3, 2] {
        story.play(&Command::CancelTask(CancelTask { task_id: TaskId(id), grace_ms: None }));
        story.pass_ms(1);
    }
    story.play(&Command::PurgeTasks(Retention {
        age_ms: u64::MAX,
        tasks_max: 1,
        ..Retention::default()
    }));
    let left: Vec<_> = story.run.state.facts().tasks().map(|task| task.id).collect();
    assert_eq!(left, [TaskId(2)], "it ended last");
}

#[test]
fn a_sweep_deals_with_ten_thousand_and_says_that_there_is_more() {
    let more = 500;
    let mut story = Story::new();
    let with_deadline = |task| NewTask { total_timeout_ms: Some(span(5_000)), ..task };
    story.submit(DUE_ITEMS_MAX, with_deadline);
    story.submit(more, with_deadline);
    for _ in 0..11 {
        story.lease(LEASE_TASKS_MAX);
    }
    assert_eq!(story.count(TaskState::Leased), 10_500);
    story.pass_ms(50);
    story.play(&Command::FireTimers);
    assert_eq!(story.count(TaskState::Leased), 500);
    story.play(&Command::FireTimers);
    assert_eq!(story.count(TaskState::Waiting), 10_500);
    story.pass_ms(5_000);
    story.play(&Command::FireTimers);
    assert_eq!(story.count(TaskState::Waiting), 500);
    story.play(&Command::FireTimers);
    assert_eq!(story.count(TaskState::Failed), 10_500);
    let purge =
        Command::PurgeTasks(Retention { age_ms: 0, tasks_max: u64::MAX, ..Retention::default() });
    story.play(&purge);
    assert_eq!(story.count(TaskState::Failed), 500);
    story.play(&purge);
    assert!(story.run.state.queues().is_empty());
}

#[test]
fn a_flood_of_delayed_tasks_becomes_ready_step_by_step() {
    let mut state = State::new(1);
    let delayed = NewTask {
        start: Start::After(span(1_000)),
        ..NewTask::new(named("mail"), text_payload(""))
    };
    let now = Now::both(Timestamp(5_000));
    for tasks in [vec![delayed.clone(); ADVANCE_TASKS_MAX], vec![delayed; 3]] {
        let command = Command::SubmitTasks(SubmitTasks { tasks });
        let verdict = decide(&mut Draft::new(&state), &command, now, 0);
        let Ok(Verdict::Append(event, _)) = verdict else { unreachable!("nothing is wrong here") };
        let record = Record { lsn: state.last_lsn().next(), at: now.log, wall: now.wall, event };
        apply(&mut state, &record);
    }
    let due = Now::both(Timestamp(6_000));
    let mut steps = Vec::new();
    // All have the same moment, so the first step ends in the middle of it.
    for _ in 0..2 {
        steps.push(state.advance(due));
        invariant::check(&state).expect("the indexes follow the facts, half-way too");
        steps.extend(state.next_wakeup(Clock::Log).map(|_| Rest::More));
    }
    assert_eq!(steps, [Rest::More, Rest::More, Rest::Nothing]);
}

#[test]
fn a_request_with_too_many_items_is_refused_whole() {
    let mut story = Story::new();
    let lease = LeaseRef { task_id: TaskId(1), lease_id: LeaseId(1) };
    let leases = vec![lease; BATCH_ITEMS_MAX + 1];
    story.submit(BATCH_ITEMS_MAX + 1, |task| task);
    let heartbeats = leases[1..].iter().map(|lease| (*lease).into()).collect();
    let releases = vec![lease.into()];
    let reports = ReportTasks { heartbeats, releases, ..ReportTasks::default() };
    story.play(&Command::ReportTasks(reports));
    story.play(&Command::DropLeases(leases));
    assert_eq!(story.run.state.last_lsn().0, 0);
}

struct Story {
    run: Run,
}

impl Story {
    fn new() -> Self {
        Self { run: Run::new() }
    }

    /// Where both agree, the state says what happened.
    fn play(&mut self, command: &Command) {
        // An odd seed also checks the draft.
        let agreed = self.run.obey(command, 1);
        let agreed = agreed.and_then(|()| compare::everything(&self.run.state, &self.run.model));
        agreed.expect("the rules and the model agree");
    }

    fn pass_ms(&mut self, ms: u64) {
        let Now { log, wall } = self.run.now;
        self.run.go_to(Now { log: log.plus_ms(ms), wall: wall.plus_ms(ms) });
    }

    fn submit(&mut self, count: usize, with: impl Fn(NewTask) -> NewTask) {
        let task = with(NewTask::new(named("mail"), text_payload("")));
        self.play(&Command::SubmitTasks(SubmitTasks { tasks: vec![task; count] }));
    }

    /// For 50 ms.
    fn lease(&mut self, tasks_max: u32) {
        self.play(&Command::LeaseTasks(LeaseTasks {
            worker: WorkerName::parse("anna").expect("it is a name"),
            queues: vec![named("mail")],
            tasks_max: NonZeroU32::new(tasks_max).expect("it is not zero"),
            lease_ms: Some(LeaseMs::parse(50).expect("it is in range")),
        }));
    }

    fn count(&self, state: TaskState) -> u64 {
        self.run.state.counts().of(state)
    }
}

fn span(ms: i64) -> SpanMs {
    SpanMs::parse("span", ms).expect("it is in range")
}

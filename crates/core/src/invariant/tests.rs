//! Each law, broken on purpose: a check that cannot fail proves nothing.

use std::num::NonZeroU32;
use std::sync::Arc;

use tenure_record::event::{QueueSettings, Record};
use tenure_record::name::{QueueName, TaskKey, Text, WorkerName};
use tenure_record::snapshot::LeaseEnd;
use tenure_record::terms::{Budget, Payload, SpanMs};
use tenure_record::time::{Clock, Now, WallOffset};

use super::*;
use crate::command::{Command, CompleteTask, LeaseRef, LeaseTasks, NewTask, SubmitTasks};
use crate::state::{Cold, ColdRef, Ledger, WorkerRef};
use crate::{Verdict, apply, decide};

const WAITING: TaskId = TaskId(4);
const LEASED: TaskId = TaskId(1);
const ALSO_LEASED: TaskId = TaskId(2);
const COMPLETED: TaskId = TaskId(3);

/// Two leased tasks, one completed and one waiting, with keys and deadlines.
fn state() -> State {
    let mut state = State::new(1);
    let queue = QueueName::parse("mail").unwrap();
    let task = |key: &str| NewTask {
        key: Some(TaskKey::parse(key).unwrap()),
        total_timeout_ms: Some(SpanMs::parse("total_timeout_ms", 60_000).unwrap()),
        ..NewTask::new(queue.clone(), Payload::parse("payload", b"1".to_vec()).unwrap())
    };
    let tasks = ["a", "b", "c", "d"].map(task).to_vec();
    let worker = WorkerName::parse("anna").unwrap();
    let tasks_max = NonZeroU32::new(3).unwrap();
    let lease = LeaseTasks { worker, queues: vec![queue.clone()], tasks_max, lease_ms: None };
    let done = LeaseRef { task_id: COMPLETED, lease_id: LeaseId(3) };
    let done = CompleteTask {
        lease: done,
        output: Payload::default(),
        artifacts: Vec::new(),
        worker: None,
    };
    play(&mut state, &Command::SubmitTasks(SubmitTasks { tasks }));
    play(&mut state, &Command::LeaseTasks(lease));
    play(&mut state, &Command::CompleteTask(done));
    check(&state).unwrap();
    state
}

fn play(state: &mut State, command: &Command) {
    let now = Now::both(Timestamp(1_000));
    let verdict = decide(&mut Draft::new(state), command, now, 0).unwrap();
    let Verdict::Append(event, _) = verdict else { unreachable!("every step here writes") };
    let record = Record { lsn: state.last_lsn().next(), at: now.log, wall: now.wall, event };
    apply(state, &record);
}

fn task(state: &mut State, id: TaskId) -> &mut Task {
    state.facts_mut().tasks.get_mut(id.0).unwrap()
}

fn cold(state: &mut State, id: TaskId) -> &mut Cold {
    let at = task(state, id).cold;
    state.facts_mut().cold.get_mut(at).unwrap()
}

type Case = (Law, &'static str, fn(&mut State));

#[test]
fn every_law_of_tasks_can_be_seen_broken() {
    see_broken(&[
        (Law::OneLeasePerTask, "two tasks with one lease", |state| {
            task(state, ALSO_LEASED).lease_id = LeaseId(1);
        }),
        (Law::LeasedHasALease, "leased without a lease", |state| {
            task(state, LEASED).lease_end = LeaseEnd::Taken;
        }),
        (Law::LeasedHasALease, "waiting under a lease that is open", |state| {
            task(state, WAITING).lease_id = LeaseId(2);
        }),
        (Law::LeasedHasALease, "completed and never leased", |state| {
            task(state, COMPLETED).lease_id = LeaseId::NONE;
        }),
        (Law::IdsComeFromCounters, "a task that was never given", |state| {
            state.facts_mut().next_task_id = TaskId(3);
        }),
        (Law::LeaseIdsGrow, "a lease that was never given", |state| {
            state.facts_mut().next_lease_id = LeaseId(1);
        }),
        (Law::EndsNeverExceedGrants, "more failures than grants", |state| {
            task(state, LEASED).failures = 2;
        }),
        (Law::LiveHasBudget, "waiting with nothing left", |state| {
            let task = task(state, WAITING);
            (task.attempt, task.expiries, task.max_expiries) = (1, 1, Some(Budget::of(1)));
        }),
        (Law::LiveHasBudget, "waiting after as many attempts as it may have", |state| {
            let waiting = task(state, WAITING);
            (waiting.attempt, waiting.failures, waiting.expiries) = (2, 1, 1);
            cold(state, WAITING).max_attempts = Some(Budget::of(2));
        }),
        (Law::WaitingIsNotAskedToStop, "waiting and asked to stop", |state| {
            task(state, WAITING).cancel_requested = true;
        }),
        (Law::LeaseEndsInTime, "a lease past the deadline", |state| {
            cold(state, LEASED).deadline_at = Timestamp(2_000);
        }),
        (Law::LeaseEndsInTime, "a lease past its revocation", |state| {
            cold(state, LEASED).revoke_at = Timestamp(2_000);
        }),
        (Law::LeaseEndsInTime, "a lease past the deadline of its attempt", |state| {
            cold(state, LEASED).attempt_deadline_at = Timestamp(2_000);
        }),
        (Law::AttemptNeedsALease, "an attempt without a lease", |state| {
            cold(state, WAITING).attempt_deadline_at = Timestamp(2_000);
        }),
        (Law::RevocationNeedsALease, "a revocation of nothing", |state| {
            cold(state, WAITING).revoke_at = Timestamp(2_000);
        }),
        (Law::StaleLeaseWasGiven, "a stale report from the future", |state| {
            cold(state, WAITING).stale_lease = LeaseId(1);
        }),
        (Law::KeysAreUnique, "a key held twice", |state| {
            cold(state, WAITING).key = cold(state, LEASED).key.clone();
        }),
        (Law::NothingUnused, "a queue that nobody needs", |state| {
            state.queue_named("empty");
        }),
        (Law::NothingUnused, "a worker that holds nothing", |state| {
            state.worker_named(&Text::Borrowed("ben"));
        }),
        (Law::NothingUnused, "a queue that counts wrong", |state| {
            let at = task(state, WAITING).queue;
            state.facts_mut().queues.get_mut(at).unwrap().tasks += 1;
        }),
        (Law::NothingUnused, "a worker that counts wrong", |state| {
            state.facts_mut().workers.get_mut(WorkerRef(0)).unwrap().leases += 1;
        }),
    ]);
}

#[test]
fn every_law_of_parts_and_indexes_can_be_seen_broken() {
    see_broken(&[
        (Law::PartsHaveOneOwner, "a payload of another task", |state| {
            task(state, WAITING).payload = task(state, LEASED).payload;
        }),
        (Law::PartsHaveOneOwner, "a cold part for two", |state| {
            task(state, COMPLETED).cold = task(state, ALSO_LEASED).cold;
        }),
        (Law::PartsHaveOneOwner, "a cold part that is not there", |state| {
            task(state, WAITING).cold = ColdRef(99);
        }),
        (Law::PartsHaveOneOwner, "a cold part for nobody", |state| {
            state.facts_mut().cold.insert(Cold::default());
        }),
        (Law::PartsHaveOneOwner, "a queue that is not there", |state| {
            task(state, WAITING).queue = QueueRef(99);
        }),
        (Law::IndexesFollowFacts, "a delay that no index knows", |state| {
            let not_before = Timestamp(9_000);
            task(state, WAITING).state = TaskPhase::Waiting { not_before, clock: Clock::Wall };
        }),
        (Law::IndexesFollowFacts, "a key that no table knows", |state| {
            cold(state, WAITING).key.as_mut().unwrap().text = Arc::from("e");
        }),
        (Law::IndexesFollowFacts, "a deadline that no index knows", |state| {
            cold(state, WAITING).deadline_at = Timestamp(9_000);
        }),
        (Law::IndexesFollowFacts, "an end that no index knows", |state| {
            task(state, COMPLETED).state =
                TaskPhase::ended(TaskState::Completed, Timestamp(7), WallOffset::ZERO);
        }),
        (Law::DeadLettersAreLinked, "a copy that is older", |state| {
            cold(state, WAITING).dead_letter = LEASED;
        }),
        (Law::DeadLettersAreLinked, "a copy of a younger task", |state| {
            cold(state, LEASED).dead_letter_of = WAITING;
        }),
        (Law::DeadLettersAreLinked, "a copy of a copy", |state| {
            (cold(state, COMPLETED).dead_letter, cold(state, COMPLETED).dead_letter_of) =
                (WAITING, LEASED);
        }),
        (Law::DeadLettersAreLinked, "a dead letter queue that is not there", |state| {
            let dead_letter_queue = Some("lost".into());
            let settings = QueueSettings { dead_letter_queue, ..QueueSettings::default() };
            let at = task(state, WAITING).queue;
            state.facts_mut().queues.get_mut(at).unwrap().settings = settings;
        }),
        (Law::IndexesFollowFacts, "a retention that no index knows", |state| {
            let settings = QueueSettings { retention_ms: Some(1), ..QueueSettings::default() };
            let at = task(state, WAITING).queue;
            state.facts_mut().queues.get_mut(at).unwrap().settings = settings;
        }),
    ]);
}

fn see_broken(cases: &[Case]) {
    for (law, what, break_it) in cases {
        let mut state = state();
        break_it(&mut state);
        assert_eq!(check(&state).map_err(|broken| broken.law), Err(*law), "{what}");
    }
}

#[test]
fn a_step_that_is_not_allowed_is_seen_before_it_is_written() {
    type Step = fn(&mut Draft<'_>);
    let steps: &[(&str, Step)] = &[
        ("COMPLETED becomes WAITING", |draft| {
            draft.change(COMPLETED, |task| {
                task.state = TaskPhase::Waiting { not_before: Timestamp::ZERO, clock: Clock::Log };
            });
        }),
        ("COMPLETED changes", |draft| draft.change(COMPLETED, |task| task.attempt += 1)),
        ("WAITING is completed", |draft| {
            draft.change(WAITING, |task| {
                task.state = TaskPhase::ended(TaskState::Completed, Timestamp(1), WallOffset::ZERO);
            });
        }),
        ("a lease id goes back", |draft| {
            draft.change(ALSO_LEASED, |task| task.lease_id = LeaseId(1));
        }),
        ("a live task is purged", |draft| draft.purge(WAITING)),
    ];
    for (what, step) in steps {
        let state = state();
        let mut draft = Draft::new(&state);
        step(&mut draft);
        let caught =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| assert_draft(&draft)));
        assert!(caught.is_err(), "{what}");
    }
    let state = state();
    let mut draft = Draft::new(&state);
    draft.purge(COMPLETED);
    draft.change(WAITING, |task| {
        task.state = TaskPhase::ended(TaskState::Canceled, Timestamp(1), WallOffset::ZERO);
    });
    assert_draft(&draft);
}

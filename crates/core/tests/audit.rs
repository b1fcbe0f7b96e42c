//! Each law, broken by hand in a story that is otherwise sound.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use tenure_audit::{Audit, Law, Seed, Violation};
use tenure_core::command::{
    CancelTask, Command, CompleteTask, FailTask, IdJump, LeaseRef, LeaseTasks, NewTask, PauseQueue,
    Retention, Retry, Start, SubmitTasks,
};
use tenure_core::state::snapshot::each_item;
use tenure_core::{Draft, State, Verdict, apply, decide};
use tenure_record::codec;
use tenure_record::event::{DeadLetter, Event, ExpiryCause, QueueDeleted, Record, Report};
use tenure_record::id::{ID_MAX, LeaseId, Lsn, TaskId};
use tenure_record::name::{QueueName, Reason, TaskKey, Text, WorkerName};
use tenure_record::snapshot::{Item, TaskItem};
use tenure_record::state::TaskState;
use tenure_record::terms::{Budget, Budgets, Payload, Priority, SpanMs};
use tenure_record::time::{Now, Timestamp};

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;

/// A log in the making.
struct Story {
    state: State,
    now: Timestamp,
    log: Vec<Vec<u8>>,
}

impl Story {
    fn play(&mut self, wait_ms: u64, command: &Command) {
        self.now = self.now.plus_ms(wait_ms);
        let now = Now::both(self.now);
        self.state.advance(now);
        let verdict = decide(&mut Draft::new(&self.state), command, now, 0);
        let Ok(Verdict::Append(event, _)) = verdict else {
            unreachable!("{command:?}: {verdict:?}")
        };
        let record =
            Record { lsn: self.state.last_lsn().next(), at: self.now, wall: self.now, event };
        let mut bytes = Vec::new();
        codec::encode(&record, &mut bytes);
        apply(&mut self.state, &record);
        self.log.push(bytes);
    }
}

fn queue() -> QueueName {
    QueueName::parse("q").unwrap()
}

fn task() -> NewTask {
    NewTask::new(queue(), Payload::default())
}

fn span(ms: u64) -> SpanMs {
    SpanMs::parse("span", ms as i64).unwrap()
}

fn keyed() -> NewTask {
    let key = Some(TaskKey::parse("k").unwrap());
    NewTask {
        key,
        total_timeout_ms: Some(span(HOUR)),
        budgets: Budgets::parse(Some(2), None, None).unwrap(),
        ..task()
    }
}

fn submit(tasks: Vec<NewTask>) -> Command {
    Command::SubmitTasks(SubmitTasks { tasks })
}

fn lease(tasks_max: u32) -> Command {
    Command::LeaseTasks(LeaseTasks {
        worker: WorkerName::parse("w").unwrap(),
        queues: vec![queue()],
        tasks_max: NonZeroU32::new(tasks_max).unwrap(),
        lease_ms: None,
    })
}

fn of(task: u64, lease: u64) -> LeaseRef {
    LeaseRef { task_id: TaskId(task), lease_id: LeaseId(lease) }
}

fn complete(task: u64, lease: u64) -> Command {
    Command::CompleteTask(CompleteTask {
        lease: of(task, lease),
        output: Payload::default(),
        artifacts: Vec::new(),
        worker: None,
    })
}

fn fail(task: u64, lease: u64) -> Command {
    let retry = Retry::WithBackoff;
    Command::FailTask(FailTask {
        lease: of(task, lease),
        reason: Reason::default(),
        code: None,
        retry,
        checkpoint: None,
        worker: None,
    })
}

fn cancel(task: u64, grace_ms: Option<u64>) -> Command {
    Command::CancelTask(CancelTask { task_id: TaskId(task), grace_ms: grace_ms.map(span) })
}

/// Twenty-four records in which everything happens once.
fn story() -> Story {
    let mut story =
        Story { state: State::new(0), now: Timestamp(1_700_000_000_000), log: Vec::new() };
    let later = NewTask { start: Start::After(span(10 * SECOND)), ..task() };
    // 1: task 1 has a key and a deadline, task 2 is plain, task 3 has to wait.
    story.play(0, &submit(vec![keyed(), task(), later]));
    story.play(0, &lease(2)); // 2: leases 1 and 2
    story.play(SECOND, &Command::Heartbeat(of(1, 1).into())); // 3
    story.play(0, &fail(2, 2)); // 4
    story.play(0, &cancel(1, Some(5 * SECOND))); // 5
    story.play(0, &cancel(1, Some(3 * SECOND))); // 6
    story.play(0, &Command::ReleaseTask(of(1, 1).into())); // 7: CANCELED
    story.play(0, &Command::RetryTask(TaskId(1))); // 8
    story.play(0, &Command::PauseQueue(PauseQueue::open_ended(queue()))); // 9
    story.play(0, &Command::ResumeQueue(queue())); // 10
    story.play(0, &lease(1)); // 11: lease 3, of task 1
    story.play(30 * SECOND, &Command::FireTimers); // 12
    story.play(0, &complete(1, 3)); // 13: too late
    story.play(0, &lease(1)); // 14: lease 4, of task 1
    story.play(0, &complete(1, 4)); // 15
    story.play(0, &lease(2)); // 16: leases 5 and 6, of tasks 2 and 3
    story.play(SECOND, &Command::DropLeases(vec![of(2, 5)])); // 17
    story.play(0, &cancel(3, Some(0))); // 18
    story.play(0, &submit(vec![NewTask { key: None, ..keyed() }])); // 19: task 4
    story.play(HOUR, &Command::FireTimers); // 20
    story.play(0, &cancel(2, None)); // 21
    story.play(
        0,
        &Command::PurgeTasks(Retention { age_ms: 2 * HOUR, tasks_max: 3, ..Retention::default() }),
    ); // 22: task 1
    story.play(0, &Command::SkipIds(IdJump::Restore)); // 23
    story.play(0, &submit(vec![keyed()])); // 24: the key is free again
    story
}

/// Reads the story after a change. Gives the record that was refused, by LSN, and why.
fn read(change: impl FnOnce(&mut Vec<Record<'_>>)) -> Option<(u64, Violation)> {
    let story = story();
    let mut records: Vec<_> = story.log.iter().map(|bytes| codec::decode(bytes).unwrap()).collect();
    change(&mut records);
    let mut audit = Audit::new();
    for (record, nth) in records.iter().zip(1..) {
        if let Err(violation) = audit.record(record) {
            return Some((nth, violation));
        }
    }
    audit.finish().unwrap();
    None
}

/// The item of the record with that LSN.
macro_rules! item {
    ($log:ident, $lsn:literal, $event:ident) => {{
        let Event::$event(item) = &mut $log[$lsn - 1].event else {
            unreachable!("{:?}", $log[$lsn - 1])
        };
        item
    }};
}

/// A report that is alone in its record.
macro_rules! report {
    ($log:expr, $lsn:literal, $report:ident) => {{
        let Event::ReportsApplied(event) = &mut $log[$lsn - 1].event else {
            unreachable!("LSN {} has other things to say", $lsn)
        };
        let [Report::$report(item)] = event.reports.as_mut_slice() else {
            unreachable!("LSN {} has other reports", $lsn)
        };
        item
    }};
}

type Change = fn(&mut Vec<Record<'_>>);

/// Every law that one record can break: where it is found, and by which change.
fn changes() -> Vec<(Law, u64, Change)> {
    let mut changes: Vec<(Law, u64, Change)> = of_leases();
    changes.extend(of_tasks());
    changes.extend(of_records());
    changes
}

fn of_records() -> Vec<(Law, u64, Change)> {
    vec![
        (Law::NoGapInLsns, 1, |log| drop(log.remove(0))),
        (Law::NoGapInLsns, 3, |log| drop(log.remove(2))),
        (Law::NoGapInLsns, 4, |log| log.insert(3, log[2].clone())),
        (Law::NoGapInLsns, 5, |log| log.swap(4, 5)),
        (Law::TimeNeverGoesBack, 4, |log| log[3].at.0 -= 1),
        (Law::RecordsSaySomething, 1, |log| item!(log, 1, TaskCreated).tasks.clear()),
        (Law::RecordsSaySomething, 2, |log| item!(log, 2, LeaseGranted).grants.clear()),
        (Law::RecordsSaySomething, 12, |log| item!(log, 12, LeaseExpired).leases.clear()),
        (Law::RecordsSaySomething, 20, |log| item!(log, 20, TimerFired).deadlines.clear()),
        (Law::RecordsSaySomething, 22, |log| item!(log, 22, TasksPurged).tasks.clear()),
        (Law::IdsOnlyGrow, 1, |log| item!(log, 1, TaskCreated).tasks[1].task_id = TaskId(1)),
        (Law::IdsOnlyGrow, 1, |log| item!(log, 1, TaskCreated).tasks[0].task_id = TaskId(2)),
        (Law::IdsOnlyGrow, 2, |log| item!(log, 2, LeaseGranted).grants[1].lease_id = LeaseId(1)),
        (Law::IdsOnlyGrow, 2, |log| item!(log, 2, LeaseGranted).grants[1].lease_id = LeaseId(3)),
        (Law::IdsOnlyGrow, 23, |log| item!(log, 23, IdsSkipped).next_task_id = TaskId(5)),
        (Law::IdsOnlyGrow, 23, |log| item!(log, 23, IdsSkipped).next_lease_id = LeaseId(1)),
        (Law::IdsOnlyGrow, 23, |log| item!(log, 23, IdsSkipped).next_task_id.0 = ID_MAX + 1),
        (Law::TasksExist, 4, |log| report!(log, 4, TaskFailed).about.task_id = TaskId(4)),
        (Law::TasksExist, 22, |log| item!(log, 22, TasksPurged).tasks.push(TaskId(1))),
        (Law::ItemsKnowTheirTask, 4, |log| {
            report!(log, 4, TaskFailed).about.queue = Text::Borrowed("r");
        }),
        (Law::ItemsKnowTheirTask, 4, |log| {
            report!(log, 4, TaskFailed).about.priority = Priority::parse(1).unwrap();
        }),
        (Law::ItemsKnowTheirTask, 4, |log| {
            report!(log, 4, TaskFailed).worker = Text::Borrowed("v");
        }),
        (Law::ItemsKnowTheirTask, 2, |log| item!(log, 2, LeaseGranted).worker = Text::default()),
        (Law::HistoryIsAChain, 15, |log| report!(log, 15, TaskCompleted).about.previous = Lsn(12)),
    ]
}

fn of_leases() -> Vec<(Law, u64, Change)> {
    vec![
        (Law::LeasesNeverOverlap, 2, |log| {
            let grants = &mut item!(log, 2, LeaseGranted).grants;
            grants[1] = grants[0].clone();
            (grants[1].about.previous, grants[1].about.attempt) = (Lsn(2), 2);
            grants[1].lease_id = LeaseId(2);
        }),
        // The lease that expired was never ended: the next grant overlaps it.
        (Law::LeasesNeverOverlap, 12, |log| {
            log[11] = log[13].clone();
            log[11].lsn = Lsn(12);
            let grant = &mut item!(log, 12, LeaseGranted).grants[0];
            grant.about.previous = Lsn(11);
        }),
        (Law::OnlyReadyTasksAreLeased, 2, |log| {
            item!(log, 1, TaskCreated).tasks[1].not_before = Timestamp(1_700_000_000_001);
        }),
        (Law::OnlyReadyTasksAreLeased, 11, |log| {
            item!(log, 10, QueueConfigured).settings.paused = true;
        }),
        (Law::OnlyReadyTasksAreLeased, 11, |log| {
            let next = Timestamp(log[10].wall.0 + 1);
            item!(log, 10, QueueConfigured).settings.paused_until = next;
        }),
        (Law::LeasesLastAsGiven, 2, |log| item!(log, 2, LeaseGranted).grants[0].expires_at.0 += 1),
        (Law::LeasesLastAsGiven, 2, |log| item!(log, 2, LeaseGranted).grants[0].lease_ms += 1),
        (Law::LeasesLastAsGiven, 3, |log| report!(log, 3, LeaseExtended).expires_at.0 += 1),
        (Law::LeasesLastAsGiven, 3, |log| report!(log, 3, LeaseExtended).lease_ms = 7),
        (Law::OnlyTheOpenLeaseCounts, 3, |log| {
            report!(log, 3, LeaseExtended).lease_id = LeaseId(2);
        }),
        (Law::OnlyTheOpenLeaseCounts, 4, |log| report!(log, 4, TaskFailed).lease_id = LeaseId(1)),
        (Law::OnlyTheOpenLeaseCounts, 7, |log| {
            report!(log, 7, LeaseReleased).lease_id = LeaseId(2);
        }),
        (Law::OnlyTheOpenLeaseCounts, 12, |log| {
            item!(log, 12, LeaseExpired).leases[0].lease_id = LeaseId(2);
        }),
        (Law::OnlyTheOpenLeaseCounts, 15, |log| {
            report!(log, 15, TaskCompleted).lease_id = LeaseId(3);
        }),
        // A completion twice: the second one finds no open lease.
        (Law::OnlyTheOpenLeaseCounts, 16, |log| {
            log[15] = log[14].clone();
            log[15].lsn = Lsn(16);
            report!(log, 16, TaskCompleted).about.previous = Lsn(15);
        }),
        (Law::OnlyTheOpenLeaseCounts, 21, |log| {
            item!(log, 21, CancelRequested).lease_id = LeaseId(5);
        }),
        // The stale report, had it been accepted after all.
        (Law::LateIsLost, 12, |log| {
            log[11].event = log[14].event.clone();
            let item = report!(log, 12, TaskCompleted);
            item.lease_id = LeaseId(3);
            (item.about.attempt, item.about.previous) = (2, Lsn(11));
        }),
        (Law::LateIsLost, 3, |log| log[2].at.0 += 29 * SECOND),
        (Law::LeasesRunOutInTime, 12, |log| log[11].at.0 -= 1),
        (Law::LeasesRunOutInTime, 12, |log| {
            item!(log, 12, LeaseExpired).leases[0].cause = ExpiryCause::Revoked;
        }),
        (Law::LeasesRunOutInTime, 17, |log| {
            item!(log, 17, LeaseExpired).leases[0].cause = ExpiryCause::RanOut;
        }),
        (Law::CountersFollowFacts, 2, |log| {
            item!(log, 2, LeaseGranted).grants[0].about.attempt = 2;
        }),
        (Law::CountersFollowFacts, 4, |log| report!(log, 4, TaskFailed).failures = 2),
        (Law::CountersFollowFacts, 12, |log| item!(log, 12, LeaseExpired).leases[0].expiries = 0),
        (Law::StaleReportsComeOnce, 13, |log| {
            report!(log, 13, StaleReportRejected).lease_id = LeaseId(4);
        }),
        (Law::StaleReportsComeOnce, 14, |log| {
            log[13] = log[12].clone();
            log[13].lsn = Lsn(14);
            report!(log, 14, StaleReportRejected).about.previous = Lsn(13);
        }),
        (Law::StaleReportsComeOnce, 15, |log| {
            log[14].event = log[12].event.clone();
            let item = report!(log, 15, StaleReportRejected);
            (item.lease_id, item.state) = (LeaseId(4), TaskState::Leased);
            (item.about.attempt, item.about.previous) = (3, Lsn(14));
        }),
    ]
}

/// The queue has the dead letter queue `lost`, and the failure in record 20 leaves a copy.
fn with_letter(log: &mut [Record<'_>], queue: &'static str, id: u64) {
    item!(log, 10, QueueConfigured).settings.dead_letter_queue = Some("lost".into());
    let (task_id, queue) = (TaskId(id), Text::Borrowed(queue));
    let letter = DeadLetter { task_id, queue, ..DeadLetter::default() };
    item!(log, 20, TimerFired).deadlines[0].dead_letter = Some(Box::new(letter));
}

fn of_tasks() -> Vec<(Law, u64, Change)> {
    vec![
        (Law::OnlyLegalSteps, 1, |log| item!(log, 1, TaskCreated).tasks[0].max_failures = None),
        (Law::KeysAreUnique, 1, |log| item!(log, 1, TaskCreated).tasks[0].key_from = TaskId(9)),
        (Law::KeysAreUnique, 1, |log| {
            item!(log, 1, TaskCreated).tasks[0].key_free_at = Timestamp(1);
        }),
        (Law::OnlyLegalSteps, 4, |log| report!(log, 4, TaskFailed).to = TaskState::Canceled),
        (Law::OnlyLegalSteps, 4, |log| report!(log, 4, TaskFailed).to = TaskState::Leased),
        (Law::OnlyLegalSteps, 4, |log| report!(log, 4, TaskFailed).not_before = Timestamp::ZERO),
        (Law::OnlyLegalSteps, 4, |log| {
            item!(log, 1, TaskCreated).tasks[1].max_failures = Some(Budget::of(1));
        }),
        (Law::OnlyLegalSteps, 7, |log| report!(log, 7, LeaseReleased).to = TaskState::Waiting),
        (Law::OnlyLegalSteps, 7, |log| {
            report!(log, 7, LeaseReleased).not_before = Timestamp(1_700_000_000_000);
        }),
        (Law::OnlyLegalSteps, 8, |log| item!(log, 8, TaskRetried).from = TaskState::Dead),
        (Law::OnlyLegalSteps, 12, |log| {
            item!(log, 1, TaskCreated).tasks[0].max_expiries = Some(Budget::of(1));
        }),
        (Law::OnlyLegalSteps, 13, |log| {
            report!(log, 13, StaleReportRejected).state = TaskState::Leased;
        }),
        (Law::OnlyLegalSteps, 18, |log| item!(log, 18, CancelRequested).to = TaskState::Waiting),
        (Law::OnlyLegalSteps, 21, |log| item!(log, 21, CancelRequested).to = TaskState::Leased),
        // Task 4 fails in record 20, and its queue has no dead letter queue.
        (Law::DeadLettersFollowSettings, 20, |log| {
            let letter = DeadLetter { task_id: TaskId(5), ..DeadLetter::default() };
            item!(log, 20, TimerFired).deadlines[0].dead_letter = Some(Box::new(letter));
        }),
        (Law::DeadLettersFollowSettings, 20, |log| {
            item!(log, 10, QueueConfigured).settings.dead_letter_queue = Some("lost".into());
        }),
        (Law::DeadLettersFollowSettings, 20, |log| with_letter(log, "found", 5)),
        (Law::IdsOnlyGrow, 20, |log| with_letter(log, "lost", 6)),
        (Law::OnlyLegalSteps, 20, |log| with_letter(log, "lost", 5)),
        (Law::DeadLettersFollowSettings, 10, |log| {
            item!(log, 10, QueueConfigured).settings.dead_letter_queue = Some("q".into());
        }),
        (Law::CancelsOnlyTighten, 5, |log| item!(log, 5, CancelRequested).expires_at.0 += 1),
        (Law::CancelsOnlyTighten, 6, |log| {
            let later = item!(log, 5, CancelRequested).clone();
            let item = item!(log, 6, CancelRequested);
            (item.expires_at, item.revoke_at) = (later.expires_at, later.revoke_at);
        }),
        (Law::DeadlinesHold, 1, |log| item!(log, 1, TaskCreated).tasks[0].deadline_at.0 += 1),
        (Law::DeadlinesHold, 8, |log| item!(log, 8, TaskRetried).deadline_at = Timestamp::ZERO),
        (Law::DeadlinesHold, 20, |log| item!(log, 20, TimerFired).deadlines[0].deadline_at.0 -= 1),
        (Law::DeadlinesHold, 20, |log| log[19].at.0 -= 1),
        (Law::TimersFireInOrder, 20, |log| {
            let deadlines = &mut item!(log, 20, TimerFired).deadlines;
            deadlines.push(deadlines[0].clone());
        }),
        (Law::TimersFireInOrder, 12, |log| {
            let leases = &mut item!(log, 12, LeaseExpired).leases;
            leases.push(leases[0].clone());
        }),
        (Law::KeysAreUnique, 1, |log| {
            let tasks = &mut item!(log, 1, TaskCreated).tasks;
            (tasks[1].key, tasks[1].submit_hash) = (tasks[0].key.clone(), tasks[0].submit_hash);
        }),
        (Law::KeysAreUnique, 1, |log| item!(log, 1, TaskCreated).tasks[0].submit_hash = None),
        (Law::OnlyTheUnusedIsDeleted, 9, |log| {
            let queue = Text::Borrowed("another");
            log[8].event = Event::QueueDeleted(QueueDeleted { queue });
        }),
        (Law::OnlyTheUnusedIsDeleted, 10, |log| {
            let queue = item!(log, 10, QueueConfigured).queue.clone();
            log[9].event = Event::QueueDeleted(QueueDeleted { queue });
        }),
        (Law::OnlyTheEndedIsPurged, 21, |log| {
            log[20].event = log[21].event.clone();
            item!(log, 21, TasksPurged).tasks = vec![TaskId(2)];
        }),
    ]
}

#[test]
fn every_law_can_be_seen_broken_and_is_named_with_its_record() {
    let mut seen = BTreeSet::new();
    for (nth, (law, lsn, change)) in changes().into_iter().enumerate() {
        let found = read(change);
        let named = found.as_ref().map(|(lsn, violation)| (violation.law, *lsn));
        assert_eq!(named, Some((law, lsn)), "change {nth}: {found:?}");
        seen.insert(law);
    }
    // These three are not about one record; each has a test of its own below.
    seen.extend([Law::BytesAreTheRecord, Law::EveryGrantEndsOnce, Law::StateFollowsLog]);
    // These are about runs, which have a story of their own in `tests/runs/laws.rs`.
    seen.extend([Law::RunsGrowInOrder, Law::TheEndedStaysEnded, Law::GroupsCloseOnce]);
    seen.insert(Law::WhatEndsOnlyEnds);
    assert_eq!(seen, BTreeSet::from(Law::ALL));
}

#[test]
fn bytes_that_say_the_same_in_another_way_are_found() {
    let story = story();
    let mut longer = story.log[0].clone();
    assert_eq!(longer[..2], [8, 1], "the version, in one byte");
    longer.splice(1..2, [0x81, 0]);
    let record = codec::decode(&longer).unwrap();
    let found = Audit::new().read(&record, &longer).unwrap_err();
    assert_eq!(found.law, Law::BytesAreTheRecord);
    assert_eq!(Audit::new().read(&record, &story.log[0]), Ok(()));
}

#[test]
fn a_sound_log_adds_up() {
    let story = story();
    let mut audit = Audit::new();
    for bytes in &story.log {
        audit.read(&codec::decode(bytes).unwrap(), bytes).unwrap();
    }
    audit.compare(&seeded(&story.state, |_| {})).unwrap();
    let summary = audit.finish().unwrap();
    assert_eq!((summary.records, summary.created, summary.purged), (24, 5, 1));
    assert_eq!(summary.by_state, [1, 0, 0, 1, 0, 2]);
    assert_eq!((summary.grants, summary.open(), summary.heartbeats), (6, 0, 1));
    let ends = summary.ends.named().map(|(_, count)| count);
    assert_eq!(ends, [1, 1, 1, 1, 1, 0, 1, 0, 0]);
    assert_eq!(summary.stale_reports, 1);
    let first = Timestamp(1_700_000_000_000);
    assert_eq!(summary.times, Some((first, first.plus_ms(HOUR + 32 * SECOND))));
}

/// Stands for a mistake in `apply`: the records are right, what was made of them is not.
#[test]
fn a_state_that_is_not_what_the_records_say_is_found() {
    let story = story();
    let mut audit = Audit::new();
    for bytes in &story.log {
        audit.record(&codec::decode(bytes).unwrap()).unwrap();
    }
    audit.compare(&seeded(&story.state, |_| {})).unwrap();
    let spoils: [fn(&mut Item<'_>); 6] = [
        |item| {
            if let Item::Counters(counters) = item {
                counters.next_task_id = TaskId(1);
            }
        },
        |item| on_task_2(item, |task| task.id = TaskId(99)),
        |item| on_task_2(item, |task| task.attempt += 1),
        |item| on_task_2(item, |task| task.lease_id = LeaseId(1)),
        |item| on_task_2(item, |task| task.cancel_requested = false),
        |item| on_task_2(item, |task| task.last_lsn = Lsn(1)),
    ];
    for spoil in spoils {
        let found = audit.compare(&seeded(&story.state, spoil)).unwrap_err();
        assert_eq!(found.law, Law::StateFollowsLog, "{found}");
    }
}

/// The audit that a state's items make once each of them was spoiled.
fn seeded(state: &State, spoil: fn(&mut Item<'_>)) -> Audit {
    let mut seed = Seed::new();
    each_item(state.facts(), |mut item| {
        spoil(&mut item);
        seed.item(&item)
    })
    .unwrap();
    seed.finish()
}

fn on_task_2(item: &mut Item<'_>, spoil: fn(&mut TaskItem<'_>)) {
    if let Item::Task(task) = item
        && task.id == TaskId(2)
    {
        spoil(task);
    }
}

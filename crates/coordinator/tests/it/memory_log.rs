//! The real coordinator on a log in memory that takes four frames at once and loses replies: answers
//! leave only after the commit, and nothing that was answered is lost.

use std::collections::{BTreeMap, BTreeSet};

use tenure_coordinator::{Coordinator, Inbox, Memory, Next, Reading, Request, Upkeep, recover};
use tenure_core::command::CompleteTask;
use tenure_core::command::SubmitTasks;
use tenure_core::invariant;
use tenure_log::{Fault, MemoryLog, MemoryOptions, MemoryStorage};
use tenure_record::id::TaskId;
use tenure_record::state::TaskState;

use crate::support::asks::{complete, lease, new_task};
use crate::support::{Probe, START_MS};

/// Enough that a handful of tasks make a frame that is sent ahead.
const PAYLOAD_BYTES: usize = 20 << 10;

/// A coordinator on a log in memory.
struct Service {
    storage: MemoryStorage,
    coordinator: Coordinator<MemoryLog>,
    inbox: Inbox,
    now_ms: u64,
}

impl Service {
    fn on(storage: &MemoryStorage, options: MemoryOptions) -> Self {
        let recovery = recover(storage.claim(options), 1, |_| {}).unwrap();
        invariant::check_facts(recovery.state.facts()).unwrap();
        let inbox = Inbox::new(Memory::default());
        let reading = Reading { monotonic_ms: 0, wall_ms: START_MS };
        let coordinator = Coordinator::new(recovery, inbox.clone(), reading, 5);
        Self { storage: storage.clone(), coordinator, inbox, now_ms: 0 }
    }

    fn ask<R: Request>(&self, request: R) -> Probe<R> {
        Probe::ask(&self.inbox, request)
    }

    fn try_step(&mut self) -> Result<Next, Fault> {
        self.now_ms += 10;
        let reading = Reading { monotonic_ms: self.now_ms, wall_ms: START_MS + self.now_ms };
        self.coordinator.step(reading)
    }

    fn step(&mut self) -> Next {
        let next = self.try_step().unwrap();
        let durable = self.storage.last_lsn();
        let released = self.coordinator.released();
        assert!(released.0 <= durable.0, "{released} is told, and {durable} is the last");
        next
    }

    fn settle(&mut self) {
        for _ in 0..20_000 {
            if self.step() != Next::Now && self.coordinator.is_settled() {
                return;
            }
        }
        unreachable!("a coordinator comes to rest");
    }
}

fn submit(tasks: usize) -> SubmitTasks {
    let payload = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES));
    let tasks = (0..tasks).map(|_| new_task("mail", payload.clone())).collect();
    SubmitTasks { tasks }
}

/// What callers were told, so that it must be true after every restart.
#[derive(Default)]
struct Told {
    submitted: BTreeSet<TaskId>,
    completed: BTreeSet<TaskId>,
}

impl Told {
    fn note_submits(&mut self, probes: &[Probe<SubmitTasks>]) {
        for probe in probes.iter().filter(|probe| !probe.waits()) {
            let tasks = probe.answer();
            self.submitted.extend(tasks.iter().map(|task| task.task_id));
        }
    }

    fn note_completions(&mut self, probes: &BTreeMap<TaskId, Probe<CompleteTask>>) {
        let told = probes.iter().filter(|(_, probe)| !probe.waits());
        self.completed.extend(told.map(|(task, probe)| {
            assert_eq!(probe.answer().id, *task);
            *task
        }));
    }

    fn check(&self, service: &Service) {
        let state = service.coordinator.state();
        for task in &self.submitted {
            assert!(state.task(*task).is_some(), "task {task} was told and is lost");
        }
        for task in &self.completed {
            let found = state.task(*task).map(|task| task.state());
            assert_eq!(found, Some(TaskState::Completed), "the end of task {task} was told");
        }
    }
}

#[test]
fn answers_on_a_deep_log_with_lost_replies_leave_after_the_commit_and_nothing_is_lost() {
    let (mut unknown, mut deepest) = (0, 0);
    for seed in 0..12 {
        let options =
            MemoryOptions { depth: 4, lost_permille: 50 * seed, delay_polls_max: 4, seed };
        let storage = MemoryStorage::new(7);
        let mut told = Told::default();
        for round in 0..6 {
            let mut service = Service::on(&storage, options);
            told.check(&service);
            let submits: Vec<Probe<_>> = (0..8)
                .map(|nth| {
                    let probe = service.ask(submit(1 + (nth + round) % 6));
                    service.step();
                    probe
                })
                .collect();
            let leases: Vec<Probe<_>> =
                (0..6).map(|_| service.ask(lease("anna", &["mail"], 60_000))).collect();
            let mut completions = BTreeMap::new();
            // Of every second life the power is cut in the middle.
            let steps = if round % 2 == 0 { 40 } else { 7 + seed };
            for _ in 0..steps {
                service.step();
                for probe in leases.iter().filter(|probe| !probe.waits()) {
                    for grant in probe.grants() {
                        completions
                            .entry(grant.task_id)
                            .or_insert_with(|| service.ask(complete(grant.lease())));
                    }
                }
            }
            if round == 4 {
                service.settle();
                assert!(submits.iter().all(|probe| !probe.waits()));
                assert!(completions.values().all(|probe| !probe.waits()));
            }
            told.note_submits(&submits);
            told.note_completions(&completions);
            unknown += service.coordinator.log().unknown_outcomes();
            deepest = deepest.max(service.coordinator.log().most_under_way());
        }
        told.check(&Service::on(&storage, options));
        assert!(!told.completed.is_empty(), "seed {seed}: something was completed");
    }
    assert!(unknown > 50, "only {unknown} outcomes were unknown");
    assert_eq!(deepest, 4, "frames were sent ahead");
}

#[test]
fn nothing_is_told_and_nothing_new_is_sent_while_an_outcome_is_unknown() {
    let storage = MemoryStorage::new(7);
    let lost = MemoryOptions { depth: 4, lost_permille: 1_000, ..MemoryOptions::default() };
    let mut service = Service::on(&storage, lost);
    let probes: Vec<Probe<_>> = (0..20)
        .map(|_| {
            let probe = service.ask(submit(5));
            service.step();
            probe
        })
        .collect();
    for _ in 0..200 {
        service.step();
    }
    assert!(probes.iter().all(Probe::waits), "every reply got lost, so nothing was told");
    assert!(service.coordinator.released().0 == 0);
    assert_eq!(service.coordinator.log().most_under_way(), 1, "nothing was sent beside it");
    // What was stored of it counts at the next start, and the rest does not.
    let stored = storage.last_lsn();
    drop(service);
    let mut service = Service::on(&storage, MemoryOptions { depth: 4, ..MemoryOptions::default() });
    assert_eq!(service.coordinator.state().last_lsn().0, stored.0);
    let probe = service.ask(submit(1));
    service.settle();
    assert!(!probe.waits());
}

#[test]
fn a_deep_log_without_room_holds_its_frames_and_takes_them_in_order() {
    let storage = MemoryStorage::new(7);
    let options = MemoryOptions { depth: 4, lost_permille: 200, delay_polls_max: 3, seed: 3 };
    let mut service = Service::on(&storage, options);
    storage.limit_bytes(Some(700 << 10));
    let probes: Vec<Probe<_>> = (0..30)
        .map(|_| {
            let probe = service.ask(submit(5));
            service.step();
            probe
        })
        .collect();
    for _ in 0..300 {
        service.step();
    }
    let waiting = probes.iter().filter(|probe| probe.waits()).count();
    assert!((1..30).contains(&waiting), "{waiting} of them wait for room");
    storage.limit_bytes(None);
    service.settle();
    assert!(probes.iter().all(|probe| !probe.waits()));
    let mut told = Told::default();
    let accepted: Vec<Probe<_>> =
        probes.into_iter().filter(|probe| probe.heard().unwrap().is_ok()).collect();
    told.note_submits(&accepted);
    let last = service.coordinator.state().last_lsn();
    drop(service);
    let service = Service::on(&storage, options);
    assert_eq!(service.coordinator.state().last_lsn(), last);
    told.check(&service);
}

#[test]
fn a_coordinator_that_is_deposed_ends_and_has_told_nothing_that_is_not_in_the_log() {
    let storage = MemoryStorage::new(7);
    let options = MemoryOptions { depth: 4, delay_polls_max: 2, ..MemoryOptions::default() };
    let mut first = Service::on(&storage, options);
    let before = first.ask(submit(2));
    first.settle();
    let mut second = Service::on(&storage, options);
    let late = first.ask(submit(2));
    let fault = (0..50).find_map(|_| first.try_step().err()).expect("it is refused");
    assert!(matches!(fault, Fault::Deposed { .. }), "{fault}");
    assert!(late.waits(), "nothing was told about what was refused");
    let mut told = Told::default();
    told.note_submits(&[before]);
    let probe = second.ask(submit(3));
    second.settle();
    told.note_submits(&[probe]);
    drop((first, second));
    let third = Service::on(&storage, options);
    told.check(&third);
    assert_eq!(third.coordinator.state().facts().task_count(), 5);
}

#[test]
fn a_snapshot_is_taken_behind_its_own_frame_and_the_log_before_it_goes() {
    let storage = MemoryStorage::new(7);
    let options = MemoryOptions { depth: 4, lost_permille: 200, delay_polls_max: 3, seed: 11 };
    let mut service = Service::on(&storage, options);
    let upkeep = Upkeep {
        snapshot_log_bytes: 300 << 10,
        log_keep: tenure_log::Keep::Bytes(0),
        ..Upkeep::default()
    };
    service.coordinator = service.coordinator.with_upkeep(upkeep);
    let mut told = Told::default();
    let probes: Vec<Probe<_>> = (0..60)
        .map(|_| {
            let probe = service.ask(submit(5));
            (0..3).for_each(|_| {
                service.step();
            });
            probe
        })
        .collect();
    service.settle();
    (0..2_000).for_each(|_| {
        service.step();
    });
    told.note_submits(&probes);
    let kept = service.coordinator.kept();
    assert!(kept.taken >= 2, "{} snapshots were taken", kept.taken);
    assert!(kept.extent.oldest.0 > 1, "the log was trimmed: {:?}", kept.extent);
    let hash = service.coordinator.state().facts().hash();
    drop(service);
    let service = Service::on(&storage, options);
    assert_eq!(service.coordinator.state().facts().hash(), hash);
    assert!(service.coordinator.kept().newest.is_some(), "it began with a snapshot");
    told.check(&service);
}

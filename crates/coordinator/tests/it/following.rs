//! Those who follow see everything once, in order, from wherever they left off.
//!
//! Proves P2.
#![allow(clippy::unwrap_used, clippy::panic)]

use tenure_coordinator::{Followed, Position, history};
use tenure_core::command::SubmitTasks;
use tenure_log::Log;
use tenure_record::id::{Lsn, TaskId};
use tenure_record::state::TaskState;

use crate::support::asks::{complete, lease, lease_ref, submit, task};
use crate::support::{House, START_MS};

fn read_all(house: &House, after: Position) -> Vec<(u64, usize, u64, TaskState)> {
    let log = house.coordinator.log().reader();
    let mut follower = house.coordinator.feed().follow(log, after);
    let mut seen = Vec::new();
    loop {
        let found = follower.next(|record, step| {
            seen.push((record.lsn.0, step.index, step.task_id.0, step.to));
        });
        if found.unwrap() != Followed::Frame {
            return seen;
        }
    }
}

fn lived() -> House {
    let mut house = House::new();
    let tasks = vec![task("mail"); 3];
    house.tell(SubmitTasks { tasks });
    house.tell(lease("anna", &["mail"], 0));
    house.tell(complete(lease_ref(1, 1)));
    house
}

#[test]
fn a_follower_may_begin_anywhere_even_within_a_record() {
    let house = lived();
    let all = read_all(&house, Position::START);
    use TaskState::{Completed, Leased, Waiting};
    let expected = [(1, 0, 1, Waiting), (1, 1, 2, Waiting), (1, 2, 3, Waiting), (2, 0, 1, Leased)];
    assert_eq!(all[..4], expected);
    assert_eq!(all[4..], [(3, 0, 1, Completed)]);
    for seen in 0..all.len() {
        let (lsn, index, ..) = all[seen];
        let after = Position { lsn: Lsn(lsn), index: Some(index) };
        assert_eq!(read_all(&house, after), all[seen + 1..]);
    }
    assert_eq!(read_all(&house, Position::after(Lsn(1))), all[3..]);
    assert_eq!(read_all(&house, Position::after(Lsn(3))), []);
}

#[test]
fn after_a_restart_the_log_tells_what_memory_has_forgotten() {
    let house = lived();
    let before = read_all(&house, Position::START);
    let mut house = house.restart(START_MS);
    assert_eq!(read_all(&house, Position::START), before);
    house.tell(lease("ben", &["mail"], 0));
    let all = read_all(&house, Position::START);
    assert_eq!(all[..5], before);
    assert_eq!(all[5..], [(4, 0, 2, TaskState::Leased)], "first from the log, then from memory");
}

#[test]
fn nothing_is_shown_before_it_is_durable() {
    let mut house = lived();
    house.gate.shut();
    for _ in 0..6 {
        house.ask(submit("mail"));
    }
    house.settle();
    assert_eq!(read_all(&house, Position::after(Lsn(3))), []);
    house.gate.open();
    house.settle();
    assert_eq!(read_all(&house, Position::after(Lsn(3))).len(), 6);
}

#[test]
fn a_history_is_read_back_from_the_last_record() {
    let mut house = lived();
    let log = &mut house.coordinator.log().reader();
    let told = history(log, TaskId(1), Lsn(3)).unwrap();
    let steps: Vec<_> = told.steps.iter().map(|s| (s.lsn.0, s.event, s.from, s.to)).collect();
    use TaskState::{Completed, Leased, Waiting};
    assert_eq!(
        steps,
        [
            (1, "TaskCreated", None, Waiting),
            (2, "LeaseGranted", Some(Waiting), Leased),
            (3, "TaskCompleted", Some(Leased), Completed),
        ]
    );
    assert_eq!(told.truncated_before, None);
    assert_eq!(told.steps[2].worker.as_deref(), Some("anna"));
    house.tell(submit("mail"));
}

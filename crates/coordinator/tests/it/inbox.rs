//! When there is too much to do, those are refused first who are hurt least.
//!
//! Proves P15 and P16.
#![allow(clippy::unwrap_used)]

use tenure_code::Code;
use tenure_coordinator::limits::{
    INBOX_BYTES_MAX, INBOX_REQUESTS_MAX, STEP_REQUESTS_MAX, SUPPLY_LEASES, SUPPLY_MEMORY_MS,
};
use tenure_coordinator::request::{GetTask, PauseQueue, ResumeQueue};
use tenure_coordinator::{Next, Refusal, Supply};
use tenure_core::command::NewTask;
use tenure_record::name::QueueName;
use tenure_record::terms::Payload;

use crate::support::asks::{get, heartbeat, lease, lease_ref, submit, submit_task, task};
use crate::support::{House, Probe};

#[test]
fn new_work_is_refused_first_then_everything_but_reports() {
    let mut house = House::new();
    for _ in 0..INBOX_REQUESTS_MAX / 2 {
        house.ask(get(1));
    }
    let refused = house.ask(submit("mail")).refusal();
    assert_eq!(refused.code(), Code::Overloaded);
    assert_eq!(
        refused.to_string(),
        "there are 16384 requests waiting already; try again in a moment"
    );
    for _ in 0..INBOX_REQUESTS_MAX / 4 {
        assert!(house.ask(get(1)).waits());
    }
    assert_eq!(house.ask(get(1)).refusal().code(), Code::Overloaded);
    for _ in 0..INBOX_REQUESTS_MAX / 4 {
        assert!(house.ask(heartbeat(lease_ref(1, 1))).waits());
    }
    assert_eq!(house.ask(heartbeat(lease_ref(1, 1))).refusal().code(), Code::Overloaded);
    // What was taken and is not decided yet counts.
    house.step();
    assert_eq!(house.ask(submit("mail")).refusal().code(), Code::Overloaded);
    house.settle();
    assert!(house.ask(submit("mail")).waits(), "it is over");
}

#[test]
fn requests_are_bounded_by_their_bytes_too() {
    let mut house = House::new();
    let payload = Payload::parse("payload", vec![b'1'; 1 << 20]).unwrap();
    let large = NewTask { payload, ..task("mail") };
    let fit = INBOX_BYTES_MAX / 2 / ((1 << 20) + 256);
    for _ in 0..fit {
        assert!(house.ask(submit_task(large.clone())).waits());
    }
    let refused = house.ask(submit_task(large)).refusal().to_string();
    assert!(refused.contains("bytes of requests waiting"), "{refused}");
    assert!(house.ask(heartbeat(lease_ref(1, 1))).waits());
    house.disk.limit_room(None);
    house.step();
}

/// A house that has served a step's worth of requests and has one left of those it took, and somebody
/// who came since.
fn crowded() -> (House, Probe<GetTask>) {
    let mut house = House::new();
    for _ in 0..=STEP_REQUESTS_MAX {
        house.ask(get(1));
    }
    house.step();
    let late = house.ask(get(1));
    (house, late)
}

#[test]
fn whoever_came_while_others_were_served_is_work_to_do() {
    let (mut house, late) = crowded();
    let reading = house.reading();
    assert_eq!(house.coordinator.step(reading).unwrap(), Next::Now);
    assert!(late.waits());
    house.step();
    assert!(!late.waits());
}

#[test]
fn whoever_came_while_others_were_served_hears_of_the_end() {
    let (mut house, late) = crowded();
    house.coordinator.turn_away("the disk is gone");
    assert!(matches!(late.refusal(), Refusal::Unavailable(_)));
}

/// Takes one task for each of so many lease requests.
fn take(house: &mut House, queue: &str, count: u32) {
    for _ in 0..count {
        assert_eq!(house.tell(lease("w", &[queue], 0)).grants().len(), 1);
    }
}

#[test]
fn work_is_ample_while_workers_leave_some_behind_and_not_without_workers() {
    let mut house = House::new();
    for _ in 0..2 * SUPPLY_LEASES {
        house.tell(submit("mail"));
    }
    assert_eq!(house.inbox.supply(), Supply::Short, "nobody takes any of it");
    take(&mut house, "mail", SUPPLY_LEASES);
    assert_eq!(house.inbox.supply(), Supply::Ample);
    house.tell(lease("idle", &["other"], 0));
    assert_eq!(house.inbox.supply(), Supply::Ample, "who gets nothing elsewhere says nothing");
    house.pass_ms(SUPPLY_MEMORY_MS);
    house.tell(get(1));
    assert_eq!(house.inbox.supply(), Supply::Short, "the workers are gone");
}

#[test]
fn what_is_left_in_a_paused_queue_does_not_make_work_ample() {
    let mut house = House::new();
    let closed = QueueName::parse("closed").unwrap();
    for _ in 0..SUPPLY_LEASES {
        house.tell(submit("closed"));
        house.tell(submit("mail"));
    }
    house.tell(PauseQueue::open_ended(closed.clone()));
    for nth in 0..SUPPLY_LEASES {
        let got = house.tell(lease("w", &["mail", "closed"], 0)).grants();
        assert_eq!((got.len(), got[0].queue.as_ref()), (1, "mail"), "lease {nth}");
        house.tell(submit("closed"));
    }
    // The first of them left something in the queue that is open.
    for _ in 0..SUPPLY_LEASES {
        house.tell(submit("mail"));
        assert_eq!(house.tell(lease("w", &["mail", "closed"], 0)).grants().len(), 1);
    }
    assert_eq!(house.inbox.supply(), Supply::Short, "a worker could not take more");
    house.tell(ResumeQueue(closed));
    (0..SUPPLY_LEASES).for_each(|_| take(&mut house, "closed", 1));
    assert_eq!(house.inbox.supply(), Supply::Ample);
}

#[test]
fn work_is_short_when_workers_take_all_of_it_parked_or_not() {
    let mut house = House::new();
    let submit_and_take = |house: &mut House, tasks| {
        (0..tasks).for_each(|_| drop(house.tell(submit("mail"))));
        take(house, "mail", tasks);
    };
    submit_and_take(&mut house, 2 * SUPPLY_LEASES);
    assert_eq!(house.inbox.supply(), Supply::Ample);
    (0..SUPPLY_LEASES).for_each(|_| submit_and_take(&mut house, 1));
    assert_eq!(house.inbox.supply(), Supply::Short);
    submit_and_take(&mut house, 2 * SUPPLY_LEASES);
    assert_eq!(house.inbox.supply(), Supply::Ample);
    for _ in 0..SUPPLY_LEASES {
        let parked = house.tell(lease("w", &["mail"], 60_000));
        house.tell(submit("mail"));
        assert_eq!(parked.grants().len(), 1);
    }
    assert_eq!(house.inbox.supply(), Supply::Short);
}

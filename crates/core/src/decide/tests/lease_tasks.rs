//! A worker asks for work.

use tenure_record::limits::PAYLOAD_BYTES_MAX;
use tenure_record::name::{TagKey, TagValue};
use tenure_record::terms::{Payload, Tags};

use super::*;
use crate::limits::{LEASE_BYTES, LEASE_QUEUES_MAX};

#[test]
fn only_a_task_that_waits_and_whose_moment_has_come_is_leased() {
    let columns = [
        column("now", |_| lease()),
        later("10 s later", 10 * SECOND, |_| lease()),
        later("a second before its deadline", HOUR - SECOND, |_| lease()),
        later("at its deadline", HOUR, |_| lease()),
        column("another queue", |_| lease_of(&["other"], 1)),
    ];
    assert_table(
        &columns,
        "
                    | now                          | 10 s later                   | a second before its deadline | at its deadline | another queue
        Fresh       | LeaseGranted -> LEASED, 30 s | LeaseGranted -> LEASED, 30 s | LeaseGranted -> LEASED, 1 s  | = 0 leases      | = 0 leases
        Delayed     | = 0 leases                   | LeaseGranted -> LEASED, 30 s | LeaseGranted -> LEASED, 1 s  | = 0 leases      | = 0 leases
        Returned    | LeaseGranted -> LEASED, 30 s | LeaseGranted -> LEASED, 30 s | LeaseGranted -> LEASED, 1 s  | = 0 leases      | = 0 leases
        BackingOff  | = 0 leases                   | LeaseGranted -> LEASED, 30 s | LeaseGranted -> LEASED, 1 s  | = 0 leases      | = 0 leases
        Leased      | = 0 leases                   | = 0 leases                   | = 0 leases                   | = 0 leases      | = 0 leases
        Late        | = 0 leases                   | = 0 leases                   | = 0 leases                   | = 0 leases      | = 0 leases
        AskedToStop | = 0 leases                   | = 0 leases                   | = 0 leases                   | = 0 leases      | = 0 leases
        Completed   | = 0 leases                   | = 0 leases                   | = 0 leases                   | = 0 leases      | = 0 leases
        Failed      | = 0 leases                   | = 0 leases                   | = 0 leases                   | = 0 leases      | = 0 leases
        Dead        | = 0 leases                   | = 0 leases                   | = 0 leases                   | = 0 leases      | = 0 leases
        Canceled    | = 0 leases                   | = 0 leases                   | = 0 leases                   | = 0 leases      | = 0 leases
        ",
    );
}

#[test]
fn nobody_gets_more_than_was_asked_for_or_is_there() {
    let mut world = World::new();
    let task = || NewTask { key: None, ..body(Fresh) };
    let tasks = vec![task(), task(), task()];
    world.play(&Command::SubmitTasks(SubmitTasks { tasks }));
    let ids = |world: &World| world.state.counts().of(TaskState::Leased);
    for (asked, leased) in [(1, 1), (5, 3), (5, 3)] {
        world.play(&lease_of(&["q", "q", "unknown"], asked));
        assert_eq!(ids(&world), leased);
    }
}

#[test]
fn large_payloads_end_a_grant_early_but_one_is_always_given() {
    let mut world = World::new();
    let payload = || Payload::parse("payload", vec![b'1'; PAYLOAD_BYTES_MAX]).unwrap();
    let task = || NewTask { key: None, payload: payload(), ..body(Fresh) };
    for _ in 0..5 {
        world.play(&Command::SubmitTasks(SubmitTasks { tasks: vec![task()] }));
    }
    let leased = |world: &World| world.state.counts().of(TaskState::Leased);
    for sum in [2, 4, 5] {
        world.play(&lease_of(&["q"], 100));
        assert_eq!(leased(&world), sum);
    }
}

#[test]
fn as_many_queues_as_are_allowed_are_searched_and_one_more_is_refused() {
    let names: Vec<_> = (0..LEASE_QUEUES_MAX).map(|at| at.to_string()).collect();
    let mut names: Vec<_> = names.iter().map(String::as_str).collect();
    names[LEASE_QUEUES_MAX - 1] = "q";
    let mut world = World::with(Fresh);
    let (items, items_max) = (LEASE_QUEUES_MAX + 1, LEASE_QUEUES_MAX);
    let refusal = world.refusal(&lease_of(&[names.as_slice(), &["q"]].concat(), 1));
    assert_eq!(refusal, Some(Rejection::BatchTooLarge { items, items_max }));
    assert_eq!(world.play(&lease_of(&names, 1)), "LeaseGranted -> LEASED, 30 s");
}

#[test]
fn tags_count_into_what_one_grant_gives() {
    let tag = || (TagKey::parse("t").unwrap(), TagValue::parse("v").unwrap());
    let task = |bytes: usize, tags: Vec<(TagKey, TagValue)>| NewTask {
        key: None,
        payload: Payload::parse("payload", vec![b'1'; bytes]).unwrap(),
        tags: Tags::parse(tags).unwrap(),
        ..body(Fresh)
    };
    // The first two are all that a grant gives, to the byte; without the tags they are less.
    for (tags, leased) in [(vec![tag()], 2), (vec![], 3)] {
        let first = task(LEASE_BYTES - PAYLOAD_BYTES_MAX - 2, tags);
        let tasks = vec![first, task(PAYLOAD_BYTES_MAX, vec![]), task(1, vec![])];
        let mut world = World::new();
        world.play(&Command::SubmitTasks(SubmitTasks { tasks }));
        world.play(&lease_of(&["q"], 100));
        assert_eq!(world.state.counts().of(TaskState::Leased), leased);
    }
}

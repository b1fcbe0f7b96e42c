//! A worker asks for work.

use super::*;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::terms::Payload;

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
    let ids = |world: &World| world.state.counts().of(StateName::Leased);
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
    let leased = |world: &World| world.state.counts().of(StateName::Leased);
    for sum in [2, 4, 5] {
        world.play(&lease_of(&["q"], 100));
        assert_eq!(leased(&world), sum);
    }
}

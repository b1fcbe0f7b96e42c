//! A worker says that it is still at it.

use tenure_record::terms::LeaseMs;

use super::*;

fn heartbeat(lease: u64) -> Command {
    Command::Heartbeat(of(lease))
}

#[test]
fn only_the_lease_that_holds_is_extended() {
    let columns = [
        column("its lease", |_| heartbeat(ITS_OWN)),
        later("10 s later", 10 * SECOND, |_| heartbeat(ITS_OWN)),
        later("30 s later", 30 * SECOND, |_| heartbeat(ITS_OWN)),
        later("an older lease", SECOND, |_| heartbeat(OLDER)),
        later("never given", SECOND, |_| heartbeat(NEVER_GIVEN)),
    ];
    assert_table(
        &columns,
        "
                    | its lease  | 10 s later                            | 30 s later | an older lease | never given
        Fresh       | lease_lost | lease_lost                            | lease_lost | lease_lost     | lease_lost
        Delayed     | lease_lost | lease_lost                            | lease_lost | lease_lost     | lease_lost
        Returned    | lease_lost | lease_lost                            | lease_lost | lease_lost     | lease_lost
        BackingOff  | lease_lost | lease_lost                            | lease_lost | lease_lost     | lease_lost
        Leased      | = extended | LeaseExtended, 30 s                   | lease_lost | lease_lost     | lease_lost
        Late        | lease_lost | lease_lost                            | lease_lost | lease_lost     | lease_lost
        AskedToStop | = extended | LeaseExtended, 30 s, cancel requested | lease_lost | lease_lost     | lease_lost
        Completed   | lease_lost | lease_lost                            | lease_lost | lease_lost     | lease_lost
        Failed      | lease_lost | lease_lost                            | lease_lost | lease_lost     | lease_lost
        Dead        | lease_lost | lease_lost                            | lease_lost | lease_lost     | lease_lost
        Canceled    | lease_lost | lease_lost                            | lease_lost | lease_lost     | lease_lost
        ",
    );
}

#[test]
fn a_heartbeat_stops_at_a_deadline_and_at_a_revocation() {
    let mut world = World::with(Leased);
    world.play(&cancel(Some(MINUTE)));
    let mut ends = Vec::new();
    for _ in 0..3 {
        world.wait(20 * SECOND);
        ends.push(world.play(&Command::Heartbeat(of(ITS_OWN))));
    }
    let extended = |s: u64| format!("LeaseExtended, {s} s, cancel requested");
    assert_eq!(ends, [extended(30), extended(20), "lease_lost".to_owned()]);

    let mut world = World::with(Fresh);
    world.wait(HOUR - 10 * SECOND);
    assert_eq!(world.play(&lease()), "LeaseGranted -> LEASED, 10 s");
    world.wait(SECOND);
    assert_eq!(world.play(&Command::Heartbeat(of(1))), "= extended", "its end cannot move");
}

#[test]
fn a_heartbeat_extends_by_the_span_that_the_lease_was_given_with() {
    let mut world = World::with(Fresh);
    let asked = |lease_ms: Option<i64>| {
        let Command::LeaseTasks(request) = lease() else { unreachable!("it asks for a lease") };
        let lease_ms = lease_ms.map(|ms| LeaseMs::parse(ms).expect("it is in range"));
        Command::LeaseTasks(LeaseTasks { lease_ms, ..request })
    };
    assert_eq!(world.play(&asked(Some(5_000))), "LeaseGranted -> LEASED, 5 s");
    world.wait(SECOND);
    assert_eq!(world.play(&heartbeat(1)), "LeaseExtended, 5 s");
    world.play(&Command::ReleaseTask(of(1)));
    // The span was that lease's own: the next one lasts as the task says again.
    assert_eq!(world.play(&asked(None)), "LeaseGranted -> LEASED, 30 s");
    world.wait(SECOND);
    assert_eq!(world.play(&heartbeat(2)), "LeaseExtended, 30 s");
}

//! Timers fire by moment, then by kind, then by id, however late the sweep is.

use super::*;

#[test]
fn what_has_not_ended_by_its_deadline_has_failed_unless_it_was_asked_to_stop() {
    let columns = [later("an hour later", HOUR, |_| Command::FireTimers)];
    // A lease that ended before the deadline ends first, in a record of its own.
    assert_table(
        &columns,
        "
                    | an hour later
        Fresh       | TimerFired -> FAILED
        Delayed     | TimerFired -> FAILED
        Returned    | TimerFired -> FAILED
        BackingOff  | TimerFired -> FAILED
        Leased      | LeaseExpired -> WAITING, ran_out
        Late        | LeaseExpired -> WAITING, ran_out
        AskedToStop | LeaseExpired -> CANCELED, ran_out
        Completed   | = 0 done
        Failed      | = 0 done
        Dead        | = 0 done
        Canceled    | = 0 done
        ",
    );
}

#[test]
fn a_late_sweep_ends_the_lease_and_then_the_task_whose_deadline_came_after() {
    let mut world = World::with(Leased);
    world.wait(HOUR);
    assert_eq!(world.play(&Command::FireTimers), "LeaseExpired -> WAITING, ran_out");
    assert_eq!(world.play(&lease()), "= 0 leases", "its deadline has passed");
    assert_eq!(world.play(&Command::FireTimers), "TimerFired -> FAILED");
    assert_eq!(world.play(&Command::FireTimers), "= 0 done");
}

//! Time takes ownership back.
//!
//! Proves P18.

use super::*;

#[test]
fn only_a_lease_whose_time_is_up_is_ended() {
    let columns = [
        column("now", |_| Command::FireTimers),
        later("just before its end", 30 * SECOND - 1, |_| Command::FireTimers),
        later("at its end", 30 * SECOND, |_| Command::FireTimers),
        later("much later", 30 * MINUTE, |_| Command::FireTimers),
    ];
    assert_table(
        &columns,
        "
                    | now                              | just before its end              | at its end                        | much later
        Fresh       | = 0 done                         | = 0 done                         | = 0 done                          | = 0 done
        Delayed     | = 0 done                         | = 0 done                         | = 0 done                          | = 0 done
        Returned    | = 0 done                         | = 0 done                         | = 0 done                          | = 0 done
        BackingOff  | = 0 done                         | = 0 done                         | = 0 done                          | = 0 done
        Leased      | = 0 done                         | = 0 done                         | LeaseExpired -> WAITING, ran_out  | LeaseExpired -> WAITING, ran_out
        Late        | LeaseExpired -> WAITING, ran_out | LeaseExpired -> WAITING, ran_out | LeaseExpired -> WAITING, ran_out  | LeaseExpired -> WAITING, ran_out
        AskedToStop | = 0 done                         | = 0 done                         | LeaseExpired -> CANCELED, ran_out | LeaseExpired -> CANCELED, ran_out
        Completed   | = 0 done                         | = 0 done                         | = 0 done                          | = 0 done
        Failed      | = 0 done                         | = 0 done                         | = 0 done                          | = 0 done
        Dead        | = 0 done                         | = 0 done                         | = 0 done                          | = 0 done
        Canceled    | = 0 done                         | = 0 done                         | = 0 done                          | = 0 done
        ",
    );
}

#[test]
fn the_expiry_that_uses_up_the_budget_is_the_last() {
    let mut world = World::with(Late);
    assert_eq!(world.play(&Command::FireTimers), "LeaseExpired -> WAITING, ran_out");
    world.play(&lease());
    assert_eq!(world.expire(), "LeaseExpired -> DEAD, ran_out");
}

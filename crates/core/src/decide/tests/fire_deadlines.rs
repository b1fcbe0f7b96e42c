//! Tasks that took too long are canceled.

use super::*;

#[test]
fn what_has_not_ended_by_its_deadline_is_canceled() {
    let columns = [
        column("now", |_| Command::FireDeadlines),
        later("an hour later", HOUR, |_| Command::FireDeadlines),
    ];
    assert_table(
        &columns,
        "
                    | now      | an hour later
        Fresh       | = 0 done | TimerFired -> CANCELED
        Delayed     | = 0 done | TimerFired -> CANCELED
        Returned    | = 0 done | TimerFired -> CANCELED
        BackingOff  | = 0 done | TimerFired -> CANCELED
        Leased      | = 0 done | TimerFired -> CANCELED
        Late        | = 0 done | TimerFired -> CANCELED
        AskedToStop | = 0 done | TimerFired -> CANCELED
        Completed   | = 0 done | = 0 done
        Failed      | = 0 done | = 0 done
        Dead        | = 0 done | = 0 done
        Canceled    | = 0 done | = 0 done
        ",
    );
}

//! Tasks that took too long have failed.

use super::*;

#[test]
fn what_has_not_ended_by_its_deadline_has_failed_unless_it_was_asked_to_stop() {
    let columns = [
        column("now", |_| Command::FireDeadlines),
        later("an hour later", HOUR, |_| Command::FireDeadlines),
    ];
    assert_table(
        &columns,
        "
                    | now      | an hour later
        Fresh       | = 0 done | TimerFired -> FAILED
        Delayed     | = 0 done | TimerFired -> FAILED
        Returned    | = 0 done | TimerFired -> FAILED
        BackingOff  | = 0 done | TimerFired -> FAILED
        Leased      | = 0 done | TimerFired -> FAILED
        Late        | = 0 done | TimerFired -> FAILED
        AskedToStop | = 0 done | TimerFired -> CANCELED
        Completed   | = 0 done | = 0 done
        Failed      | = 0 done | = 0 done
        Dead        | = 0 done | = 0 done
        Canceled    | = 0 done | = 0 done
        ",
    );
}

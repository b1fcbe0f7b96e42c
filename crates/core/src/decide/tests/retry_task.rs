//! An operator gives an ended task another round.

use super::*;

#[test]
fn what_ended_but_was_not_done_can_be_retried() {
    let columns = [column("retry", |_| Command::RetryTask(TASK))];
    assert_table(
        &columns,
        "
                    | retry
        Fresh       | conflict
        Delayed     | conflict
        Returned    | conflict
        BackingOff  | conflict
        Leased      | conflict
        Late        | conflict
        AskedToStop | conflict
        Completed   | conflict
        Failed      | TaskRetried -> WAITING
        Dead        | TaskRetried -> WAITING
        Canceled    | TaskRetried -> WAITING
        ",
    );
}

#[test]
fn a_retry_starts_the_budgets_and_the_deadline_again() {
    for situation in [Failed, Dead, Canceled] {
        let mut world = World::with(situation);
        world.wait(2 * HOUR);
        world.play(&Command::RetryTask(TASK));
        let task = world.state.task(TASK).unwrap();
        assert_eq!((task.attempt(), task.failures(), task.expiries()), (2, 0, 0), "{situation:?}");
        assert_eq!(task.deadline_at(), Some(world.now.plus_ms(HOUR)), "{situation:?}");
        assert!(!task.cancel_requested() && task.errors().is_empty(), "{situation:?}");
        assert_eq!(world.play(&lease()), "LeaseGranted -> LEASED, 30 s", "{situation:?}");
        assert_eq!(
            world.play(&complete(ITS_OWN)),
            "StaleReportRejected, lease_lost",
            "{situation:?}"
        );
        assert_eq!(world.play(&complete(3)), "TaskCompleted -> COMPLETED", "{situation:?}");
    }
}

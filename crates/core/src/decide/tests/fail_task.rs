//! A worker says that its attempt failed.

use super::*;

#[test]
fn only_the_lease_that_holds_fails_a_task() {
    let columns = [
        column("its lease", |_| fail(ITS_OWN, Retry::WithBackoff)),
        column("for good", |_| fail(ITS_OWN, Retry::Never)),
        column("in a minute", |_| fail(ITS_OWN, Retry::After(span(MINUTE)))),
        column("an older lease", |_| fail(OLDER, Retry::Never)),
        column("never given", |_| fail(NEVER_GIVEN, Retry::Never)),
    ];
    assert_table(
        &columns,
        "
                    | its lease                   | for good                  | in a minute                 | an older lease            | never given
        Fresh       | lease_lost                  | lease_lost                | lease_lost                  | lease_lost                | lease_lost
        Delayed     | lease_lost                  | lease_lost                | lease_lost                  | lease_lost                | lease_lost
        Returned    | StaleReportRejected, lease_lost   | StaleReportRejected, lease_lost | StaleReportRejected, lease_lost   | StaleReportRejected, lease_lost | lease_lost
        BackingOff  | = WAITING                   | = WAITING                 | = WAITING                   | StaleReportRejected, lease_lost | lease_lost
        Leased      | TaskFailed -> WAITING, 10 s | TaskFailed -> FAILED      | TaskFailed -> WAITING, 60 s | StaleReportRejected, lease_lost | lease_lost
        Late        | StaleReportRejected, lease_lost   | StaleReportRejected, lease_lost | StaleReportRejected, lease_lost   | StaleReportRejected, lease_lost | lease_lost
        AskedToStop | TaskFailed -> CANCELED      | TaskFailed -> CANCELED    | TaskFailed -> CANCELED      | StaleReportRejected, lease_lost | lease_lost
        Completed   | StaleReportRejected, lease_lost   | StaleReportRejected, lease_lost | StaleReportRejected, lease_lost   | StaleReportRejected, lease_lost | lease_lost
        Failed      | = FAILED                    | = FAILED                  | = FAILED                    | StaleReportRejected, lease_lost | lease_lost
        Dead        | StaleReportRejected, lease_lost   | StaleReportRejected, lease_lost | StaleReportRejected, lease_lost   | StaleReportRejected, lease_lost | lease_lost
        Canceled    | StaleReportRejected, lease_lost   | StaleReportRejected, lease_lost | StaleReportRejected, lease_lost   | StaleReportRejected, lease_lost | lease_lost
        ",
    );
}

#[test]
fn the_failure_that_uses_up_the_budget_is_the_last() {
    let mut world = World::with(BackingOff);
    world.wait(10 * SECOND);
    assert_eq!(world.play(&lease()), "LeaseGranted -> LEASED, 30 s");
    // It may be released any number of times in between.
    assert_eq!(world.play(&release(3)), "LeaseReleased -> WAITING");
    world.play(&lease());
    assert_eq!(world.play(&fail(4, Retry::After(span(MINUTE)))), "TaskFailed -> FAILED");
}

//! A worker says that it is done.

use super::*;

#[test]
fn only_the_lease_that_holds_completes_a_task() {
    let columns = [
        column("its lease", |_| complete(ITS_OWN)),
        column("an older lease", |_| complete(OLDER)),
        column("never given", |_| complete(NEVER_GIVEN)),
    ];
    assert_table(
        &columns,
        "
                    | its lease                  | an older lease            | never given
        Fresh       | lease_lost                 | lease_lost                | lease_lost
        Delayed     | lease_lost                 | lease_lost                | lease_lost
        Returned    | StaleReportRejected, lease_lost  | StaleReportRejected, lease_lost | lease_lost
        BackingOff  | StaleReportRejected, lease_lost  | StaleReportRejected, lease_lost | lease_lost
        Leased      | TaskCompleted -> COMPLETED | StaleReportRejected, lease_lost | lease_lost
        Late        | StaleReportRejected, lease_lost  | StaleReportRejected, lease_lost | lease_lost
        AskedToStop | TaskCompleted -> COMPLETED | StaleReportRejected, lease_lost | lease_lost
        Completed   | = COMPLETED                | StaleReportRejected, lease_lost | lease_lost
        Failed      | StaleReportRejected, lease_lost  | StaleReportRejected, lease_lost | lease_lost
        Dead        | StaleReportRejected, lease_lost  | StaleReportRejected, lease_lost | lease_lost
        Canceled    | StaleReportRejected, lease_lost  | StaleReportRejected, lease_lost | lease_lost
        ",
    );
}

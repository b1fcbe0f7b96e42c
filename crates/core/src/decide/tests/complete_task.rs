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
        Returned    | TaskCancelled, lease_lost  | TaskCancelled, lease_lost | lease_lost
        BackingOff  | TaskCancelled, lease_lost  | TaskCancelled, lease_lost | lease_lost
        Leased      | TaskCompleted -> COMPLETED | TaskCancelled, lease_lost | lease_lost
        Late        | TaskCancelled, lease_lost  | TaskCancelled, lease_lost | lease_lost
        AskedToStop | TaskCompleted -> COMPLETED | TaskCancelled, lease_lost | lease_lost
        Completed   | = COMPLETED                | TaskCancelled, lease_lost | lease_lost
        Failed      | TaskCancelled, lease_lost  | TaskCancelled, lease_lost | lease_lost
        Dead        | TaskCancelled, lease_lost  | TaskCancelled, lease_lost | lease_lost
        Canceled    | TaskCancelled, lease_lost  | TaskCancelled, lease_lost | lease_lost
        ",
    );
}

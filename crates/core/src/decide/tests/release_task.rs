//! A worker gives its lease back.

use super::*;

#[test]
fn only_the_lease_that_holds_is_released() {
    let columns = [
        column("its lease", |_| release(ITS_OWN)),
        column("an older lease", |_| release(OLDER)),
        column("never given", |_| release(NEVER_GIVEN)),
    ];
    assert_table(
        &columns,
        "
                    | its lease                 | an older lease | never given
        Fresh       | lease_lost                | lease_lost     | lease_lost
        Delayed     | lease_lost                | lease_lost     | lease_lost
        Returned    | = WAITING                 | lease_lost     | lease_lost
        BackingOff  | lease_lost                | lease_lost     | lease_lost
        Leased      | LeaseReleased -> WAITING  | lease_lost     | lease_lost
        Late        | lease_lost                | lease_lost     | lease_lost
        AskedToStop | LeaseReleased -> CANCELED | lease_lost     | lease_lost
        Completed   | lease_lost                | lease_lost     | lease_lost
        Failed      | lease_lost                | lease_lost     | lease_lost
        Dead        | lease_lost                | lease_lost     | lease_lost
        Canceled    | = CANCELED                | lease_lost     | lease_lost
        ",
    );
}

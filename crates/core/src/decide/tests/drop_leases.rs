//! A worker's stream closed and did not come back.

use super::*;
use crate::limits::DUE_ITEMS_MAX;

fn drop_of(lease: u64) -> Command {
    Command::DropLeases(vec![of(lease)])
}

#[test]
fn only_a_lease_that_holds_is_dropped() {
    let columns = [
        column("its lease", |_| drop_of(ITS_OWN)),
        column("an older lease", |_| drop_of(OLDER)),
        column("never given", |_| drop_of(NEVER_GIVEN)),
    ];
    assert_table(
        &columns,
        "
                    | its lease                              | an older lease | never given
        Fresh       | = 0 done                               | = 0 done       | = 0 done
        Delayed     | = 0 done                               | = 0 done       | = 0 done
        Returned    | = 0 done                               | = 0 done       | = 0 done
        BackingOff  | = 0 done                               | = 0 done       | = 0 done
        Leased      | LeaseExpired -> WAITING, disconnected  | = 0 done       | = 0 done
        Late        | = 0 done                               | = 0 done       | = 0 done
        AskedToStop | LeaseExpired -> CANCELED, disconnected | = 0 done       | = 0 done
        Completed   | = 0 done                               | = 0 done       | = 0 done
        Failed      | = 0 done                               | = 0 done       | = 0 done
        Dead        | = 0 done                               | = 0 done       | = 0 done
        Canceled    | = 0 done                               | = 0 done       | = 0 done
        ",
    );
}

#[test]
fn nothing_to_drop_is_no_record() {
    let stranger = LeaseRef { task_id: TaskId(9), lease_id: LeaseId(1) };
    let mut world = World::with(Leased);
    assert_eq!(world.play(&Command::DropLeases(vec![])), "= 0 done");
    assert_eq!(world.play(&Command::DropLeases(vec![stranger])), "= 0 done");
    let twice = Command::DropLeases(vec![of(ITS_OWN), of(ITS_OWN)]);
    assert_eq!(world.play(&twice), "LeaseExpired -> WAITING, disconnected");
}

#[test]
fn as_many_leases_as_are_allowed_are_dropped_and_one_more_is_refused() {
    let dropped = |count| Command::DropLeases(vec![of(ITS_OWN); count]);
    let mut world = World::with(Leased);
    let (items, items_max) = (DUE_ITEMS_MAX + 1, DUE_ITEMS_MAX);
    let refusal = world.refusal(&dropped(items));
    assert_eq!(refusal, Some(Rejection::BatchTooLarge { items, items_max }));
    assert_eq!(world.play(&dropped(items_max)), "LeaseExpired -> WAITING, disconnected");
}

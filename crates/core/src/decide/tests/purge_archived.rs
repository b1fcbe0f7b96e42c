//! What is in the archive is forgotten: exactly that, and only if nothing happened to it since.

use tenure_record::id::Lsn;

use super::*;
use crate::command::{Archived, Rest};
use crate::limits::{BATCH_ITEMS_MAX, DUE_ITEMS_MAX};

fn purge(tasks: &[TaskId], as_of: u64) -> Command {
    let tasks = tasks.to_vec();
    Command::PurgeArchived(Archived { tasks, runs: Vec::new(), as_of: Lsn(as_of) })
}

#[test]
fn only_what_has_ended_and_was_left_alone_is_forgotten() {
    let columns = [
        column("before its end", |_| purge(&[TASK], 1)),
        column("another task", |_| purge(&[TaskId(2), TaskId::NONE], u64::MAX)),
        column("all of it", |_| purge(&[TASK, TASK], u64::MAX)),
    ];
    assert_table(
        &columns,
        "
                    | before its end | another task | all of it
        Fresh       | = 0 done       | = 0 done     | = 0 done
        Delayed     | = 0 done       | = 0 done     | = 0 done
        Returned    | = 0 done       | = 0 done     | = 0 done
        BackingOff  | = 0 done       | = 0 done     | = 0 done
        Leased      | = 0 done       | = 0 done     | = 0 done
        Late        | = 0 done       | = 0 done     | = 0 done
        AskedToStop | = 0 done       | = 0 done     | = 0 done
        Completed   | = 0 done       | = 0 done     | TasksPurged
        Failed      | = 0 done       | = 0 done     | TasksPurged
        Dead        | = 0 done       | = 0 done     | TasksPurged
        Canceled    | = 0 done       | = 0 done     | TasksPurged
        ",
    );
}

#[test]
fn a_task_that_was_retried_after_it_was_archived_stays() {
    let mut world = World::with(Failed);
    let archived = purge(&[TASK], world.state.last_lsn().0);
    world.play(&Command::RetryTask(TASK));
    assert_eq!(world.play(&archived), "= 0 done");
    world.play(&cancel(None));
    assert_eq!(world.play(&archived), "= 0 done", "its second end is not in the archive");
    assert_eq!(world.play(&purge(&[TASK], world.state.last_lsn().0)), "TasksPurged");
}

#[test]
fn a_late_report_that_is_not_in_the_archive_keeps_its_task() {
    let mut world = World::with(Dead);
    let archived = purge(&[TASK], world.state.last_lsn().0);
    world.play(&complete(OLDER));
    assert_eq!(world.play(&archived), "= 0 done");
}

#[test]
fn a_record_forgets_as_many_tasks_as_it_may_and_says_whether_there_are_more() {
    let mut world = World::new();
    let task = || NewTask { key: None, ..body(Fresh) };
    for count in [BATCH_ITEMS_MAX, 1] {
        world.play_unchecked(&Command::SubmitTasks(SubmitTasks { tasks: vec![task(); count] }));
    }
    world.wait(HOUR);
    for _ in 0..2 {
        world.play_unchecked(&Command::FireTimers);
    }
    let ids: Vec<_> = (1..=DUE_ITEMS_MAX as u64 + 1).map(TaskId).collect();
    let table = [
        (DUE_ITEMS_MAX - 1, DUE_ITEMS_MAX - 1, Rest::Nothing),
        (DUE_ITEMS_MAX, DUE_ITEMS_MAX, Rest::Nothing),
        (DUE_ITEMS_MAX + 1, DUE_ITEMS_MAX, Rest::More),
    ];
    for (named, items, rest) in table {
        let swept = world.swept(&purge(&ids[..named], u64::MAX));
        assert_eq!(swept, Swept { items, rest }, "{named} were named");
    }
}

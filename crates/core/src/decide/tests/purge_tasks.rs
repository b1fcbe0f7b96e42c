//! Finished tasks whose retention is over are forgotten.

use super::*;
use crate::command::Retention;

fn purge(age_ms: u64, tasks_max: u64) -> Command {
    Command::PurgeTasks(Retention { age_ms, tasks_max, ..Retention::default() })
}

#[test]
fn only_what_has_ended_is_forgotten() {
    let columns = [
        column("kept an hour", |_| purge(HOUR, 10)),
        later("an hour later", HOUR, |_| purge(HOUR, 10)),
        column("none is kept", |_| purge(HOUR, 0)),
    ];
    assert_table(
        &columns,
        "
                    | kept an hour | an hour later | none is kept
        Fresh       | = 0 done     | = 0 done      | = 0 done
        Delayed     | = 0 done     | = 0 done      | = 0 done
        Returned    | = 0 done     | = 0 done      | = 0 done
        BackingOff  | = 0 done     | = 0 done      | = 0 done
        Leased      | = 0 done     | = 0 done      | = 0 done
        Late        | = 0 done     | = 0 done      | = 0 done
        AskedToStop | = 0 done     | = 0 done      | = 0 done
        Completed   | = 0 done     | TasksPurged   | TasksPurged
        Failed      | = 0 done     | TasksPurged   | TasksPurged
        Dead        | = 0 done     | TasksPurged   | TasksPurged
        Canceled    | = 0 done     | TasksPurged   | TasksPurged
        ",
    );
}

#[test]
fn a_purged_task_never_was() {
    let mut world = World::with(Completed);
    world.play(&purge(0, 0));
    assert_eq!(world.play(&complete(ITS_OWN)), "not_found");
    assert_eq!(world.play(&cancel(None)), "not_found");
    assert!(world.state.queue("q").is_none(), "nothing needs the queue any more");
    // Its key is free, its numbers are not.
    assert_eq!(world.play(&submit(body(Delayed))), "TaskCreated -> WAITING");
    assert!(world.state.task(TaskId(2)).is_some());
}

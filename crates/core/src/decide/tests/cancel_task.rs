//! A client wants a task to stop.

use super::*;

#[test]
fn what_waits_is_canceled_and_what_is_leased_is_asked() {
    let columns = [
        column("for ever", |_| cancel(None)),
        column("grace of 5 s", |_| cancel(Some(5 * SECOND))),
        column("grace of 1 min", |_| cancel(Some(MINUTE))),
        column("no grace at all", |_| cancel(Some(0))),
    ];
    assert_table(
        &columns,
        "
                    | for ever                    | grace of 5 s                | grace of 1 min              | no grace at all
        Fresh       | CancelRequested -> CANCELED | CancelRequested -> CANCELED | CancelRequested -> CANCELED | CancelRequested -> CANCELED
        Delayed     | CancelRequested -> CANCELED | CancelRequested -> CANCELED | CancelRequested -> CANCELED | CancelRequested -> CANCELED
        Returned    | CancelRequested -> CANCELED | CancelRequested -> CANCELED | CancelRequested -> CANCELED | CancelRequested -> CANCELED
        BackingOff  | CancelRequested -> CANCELED | CancelRequested -> CANCELED | CancelRequested -> CANCELED | CancelRequested -> CANCELED
        Leased      | CancelRequested, 30 s left  | CancelRequested, 5 s left   | CancelRequested, 30 s left  | CancelRequested -> CANCELED
        Late        | CancelRequested, 0 s left   | CancelRequested, 0 s left   | CancelRequested, 0 s left   | CancelRequested -> CANCELED
        AskedToStop | = LEASED                    | CancelRequested, 5 s left   | CancelRequested, 30 s left  | CancelRequested -> CANCELED
        Completed   | task_terminal               | task_terminal               | task_terminal               | task_terminal
        Failed      | task_terminal               | task_terminal               | task_terminal               | task_terminal
        Dead        | task_terminal               | task_terminal               | task_terminal               | task_terminal
        Canceled    | = CANCELED                  | = CANCELED                  | = CANCELED                  | = CANCELED
        ",
    );
}

#[test]
fn only_a_more_urgent_cancel_is_news() {
    let mut world = World::with(Leased);
    let graces = [None, Some(20), None, Some(25), Some(20), Some(10)];
    let told = graces.map(|grace| world.play(&cancel(grace.map(|s| s * SECOND))));
    let asked = |s: u64| format!("CancelRequested, {s} s left");
    let same = || "= LEASED".to_owned();
    assert_eq!(told, [asked(30), asked(20), same(), same(), same(), asked(10)]);
}

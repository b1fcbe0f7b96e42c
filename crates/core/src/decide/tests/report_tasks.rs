//! Several reports at once.

use super::*;
use crate::command::ReportTasks;
use crate::limits::BATCH_ITEMS_MAX;

#[test]
fn each_report_is_decided_as_if_those_before_it_were_applied() {
    let columns = [
        later("heartbeat, complete", SECOND, |_| {
            let (heartbeats, completes) = (vec![of(ITS_OWN)], vec![completion(ITS_OWN)]);
            Command::ReportTasks(ReportTasks { heartbeats, completes, ..ReportTasks::default() })
        }),
        column("complete, fail", |_| {
            let fails = vec![failure(ITS_OWN, Retry::Never)];
            let completes = vec![completion(ITS_OWN)];
            Command::ReportTasks(ReportTasks { completes, fails, ..ReportTasks::default() })
        }),
        column("release twice", |_| {
            let releases = vec![of(ITS_OWN), of(ITS_OWN)];
            Command::ReportTasks(ReportTasks { releases, ..ReportTasks::default() })
        }),
    ];
    assert_table(
        &columns,
        "
                    | heartbeat, complete                           | complete, fail                                    | release twice
        Fresh       | lease_lost+lease_lost                         | lease_lost+lease_lost                             | lease_lost+lease_lost
        Delayed     | lease_lost+lease_lost                         | lease_lost+lease_lost                             | lease_lost+lease_lost
        Returned    | TaskCancelled, lease_lost+lease_lost          | TaskCancelled, lease_lost+lease_lost              | WAITING+WAITING
        BackingOff  | TaskCancelled, lease_lost+lease_lost          | TaskCancelled, lease_lost+WAITING                 | lease_lost+lease_lost
        Leased      | LeaseExtended+TaskCompleted, LEASED+COMPLETED | TaskCompleted+TaskCancelled, COMPLETED+lease_lost | LeaseReleased, WAITING+WAITING
        Late        | TaskCancelled, lease_lost+lease_lost          | TaskCancelled, lease_lost+lease_lost              | lease_lost+lease_lost
        AskedToStop | LeaseExtended+TaskCompleted, LEASED+COMPLETED | TaskCompleted+TaskCancelled, COMPLETED+lease_lost | LeaseReleased, CANCELED+CANCELED
        Completed   | lease_lost+COMPLETED                          | TaskCancelled, COMPLETED+lease_lost               | lease_lost+lease_lost
        Failed      | TaskCancelled, lease_lost+lease_lost          | TaskCancelled, lease_lost+FAILED                  | lease_lost+lease_lost
        Dead        | TaskCancelled, lease_lost+lease_lost          | TaskCancelled, lease_lost+lease_lost              | lease_lost+lease_lost
        Canceled    | TaskCancelled, lease_lost+lease_lost          | TaskCancelled, lease_lost+lease_lost              | CANCELED+CANCELED
        ",
    );
}

#[test]
fn no_reports_are_no_record() {
    assert_eq!(World::new().play(&Command::ReportTasks(ReportTasks::default())), "");
}

#[test]
fn a_request_with_too_many_reports_is_refused() {
    let releases = vec![of(ITS_OWN); BATCH_ITEMS_MAX + 1];
    let command = Command::ReportTasks(ReportTasks { releases, ..ReportTasks::default() });
    let refusal = World::new().refusal(&command);
    assert_eq!(refusal, Some(Rejection::BatchTooLarge { items: BATCH_ITEMS_MAX + 1 }));
}

//! Several reports at once.

use tenure_record::limits::{CODE_BYTES_MAX, NAME_BYTES_MAX, REASON_BYTES_MAX, RECORD_BYTES_MAX};
use tenure_record::name::FailureCode;

use super::*;
use crate::command::ReportTasks;
use crate::limits::BATCH_ITEMS_MAX;

#[test]
fn each_report_is_decided_as_if_those_before_it_were_applied() {
    let columns = [
        later("heartbeat, complete", SECOND, |_| {
            let (heartbeats, completes) = (vec![of(ITS_OWN).into()], vec![completion(ITS_OWN)]);
            Command::ReportTasks(ReportTasks { heartbeats, completes, ..ReportTasks::default() })
        }),
        column("complete, fail", |_| {
            let fails = vec![failure(ITS_OWN, Retry::Never)];
            let completes = vec![completion(ITS_OWN)];
            Command::ReportTasks(ReportTasks { completes, fails, ..ReportTasks::default() })
        }),
        column("release twice", |_| {
            let releases = vec![of(ITS_OWN).into(), of(ITS_OWN).into()];
            Command::ReportTasks(ReportTasks { releases, ..ReportTasks::default() })
        }),
    ];
    assert_table(
        &columns,
        "
                    | heartbeat, complete                           | complete, fail                                    | release twice
        Fresh       | lease_lost+lease_lost                         | lease_lost+lease_lost                             | lease_lost+lease_lost
        Delayed     | lease_lost+lease_lost                         | lease_lost+lease_lost                             | lease_lost+lease_lost
        Returned    | StaleReportRejected, lease_lost+lease_lost          | StaleReportRejected, lease_lost+lease_lost              | WAITING+WAITING
        BackingOff  | StaleReportRejected, lease_lost+lease_lost          | StaleReportRejected, lease_lost+WAITING                 | lease_lost+lease_lost
        Leased      | LeaseExtended+TaskCompleted, LEASED+COMPLETED | TaskCompleted+StaleReportRejected, COMPLETED+lease_lost | LeaseReleased -> WAITING, WAITING+WAITING
        Late        | StaleReportRejected, lease_lost+lease_lost          | StaleReportRejected, lease_lost+lease_lost              | lease_lost+lease_lost
        AskedToStop | LeaseExtended+TaskCompleted, LEASED+COMPLETED | TaskCompleted+StaleReportRejected, COMPLETED+lease_lost | LeaseReleased -> CANCELED, CANCELED+CANCELED
        Completed   | lease_lost+COMPLETED                          | StaleReportRejected, COMPLETED+lease_lost               | lease_lost+lease_lost
        Failed      | StaleReportRejected, lease_lost+lease_lost          | StaleReportRejected, lease_lost+FAILED                  | lease_lost+lease_lost
        Dead        | StaleReportRejected, lease_lost+lease_lost          | StaleReportRejected, lease_lost+lease_lost              | lease_lost+lease_lost
        Canceled    | StaleReportRejected, lease_lost+lease_lost          | StaleReportRejected, lease_lost+lease_lost              | CANCELED+CANCELED
        ",
    );
}

#[test]
fn no_reports_are_no_record() {
    assert_eq!(World::new().play(&Command::ReportTasks(ReportTasks::default())), "");
}

#[test]
fn as_many_reports_as_are_allowed_are_taken_and_one_more_is_refused_whatever_they_say() {
    let of_all_kinds = |items: usize| {
        Command::ReportTasks(ReportTasks {
            heartbeats: vec![of(ITS_OWN).into()],
            completes: vec![completion(ITS_OWN); 2],
            fails: vec![failure(ITS_OWN, Retry::Never); 3],
            releases: vec![of(ITS_OWN).into(); items - 6],
            ..ReportTasks::default()
        })
    };
    let (items, items_max) = (BATCH_ITEMS_MAX + 1, BATCH_ITEMS_MAX);
    let refusal = World::new().refusal(&of_all_kinds(items));
    assert_eq!(refusal, Some(Rejection::BatchTooLarge { items, items_max }));
    assert_eq!(World::new().refusal(&of_all_kinds(items_max)), None);
}

/// Names, codes and reasons as long as they may be.
#[test]
fn reports_that_are_taken_fit_into_a_record() {
    let long = |bytes: usize| "x".repeat(bytes);
    let mut world = World::new();
    let task = NewTask::new(queue(&long(NAME_BYTES_MAX)), Payload::default());
    let count = RECORD_BYTES_MAX / REASON_BYTES_MAX;
    world.play(&Command::SubmitTasks(SubmitTasks { tasks: vec![task; count] }));
    for _ in 0..count.div_ceil(1_000) {
        world.play(&Command::LeaseTasks(LeaseTasks {
            worker: WorkerName::parse(&long(NAME_BYTES_MAX)).unwrap(),
            queues: vec![queue(&long(NAME_BYTES_MAX))],
            tasks_max: NonZeroU32::new(1_000).unwrap(),
            lease_ms: None,
        }));
    }
    let fail = |id| FailTask {
        lease: LeaseRef { task_id: TaskId(id), lease_id: LeaseId(id) },
        reason: Reason::keep_end(&long(REASON_BYTES_MAX)),
        code: Some(FailureCode::parse(&long(CODE_BYTES_MAX)).unwrap()),
        retry: Retry::WithBackoff,
        checkpoint: None,
        worker: None,
    };
    let most = largest_that_is_taken(&world, count, |count| {
        let fails = (1..=count as u64).map(fail).collect();
        Command::ReportTasks(ReportTasks { fails, ..ReportTasks::default() })
    });
    let bytes = world.bytes(&most).unwrap();
    assert!(bytes <= RECORD_BYTES_MAX, "the record has {bytes} bytes");
}

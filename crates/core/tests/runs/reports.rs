//! What reports of a run's tasks take in a record.

use std::num::NonZeroU32;

use tenure_core::Rejection;
use tenure_core::command::{
    CancelTask, Command, LeaseRef, LeaseTasks, NewTask, Reply, ReportTasks, SubmitTasks,
};
use tenure_core::limits::{NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX};
use tenure_core::name::{QueueName, Reason, WorkerName};
use tenure_core::terms::Payload;

use super::world::{World, complete, fail};

/// Numbers and keys that are counted as if they were as long as they can be.
const A_LITTLE_BYTES: usize = 256;

fn long() -> String {
    "x".repeat(NAME_BYTES_MAX)
}

/// Leases of tasks of runs, each by a worker and from a queue whose names are as long as they may be.
fn leases_of_runs(world: &mut World, count: u32) -> Vec<LeaseRef> {
    let queue = long();
    world.register(&format!(
        "workflow: w
initial_node: a
nodes: [{{ref: a, kind: task, task: {{queue: {queue}}}}}]
"
    ));
    for _ in 0..count {
        world.start("w", "{}");
    }
    let command = LeaseTasks {
        worker: WorkerName::parse(&long()).unwrap(),
        queues: vec![QueueName::parse(&queue).unwrap()],
        tasks_max: NonZeroU32::new(count).unwrap(),
        lease_ms: None,
    };
    let Ok(Reply::Leased(leased)) = world.play(&Command::LeaseTasks(command)) else { panic!() };
    leased.iter().map(|it| LeaseRef { task_id: it.task_id, lease_id: it.lease_id }).collect()
}

#[test]
fn a_report_counts_for_what_it_and_all_that_follows_take_in_a_record_or_a_little_more() {
    let mut world = World::new();
    let [extended, completed, failed, released, late] =
        leases_of_runs(&mut world, 5).try_into().unwrap();
    for lease in [released, late] {
        let cancel = CancelTask { task_id: lease.task_id, grace_ms: None };
        world.play(&Command::CancelTask(cancel)).unwrap();
    }
    world.play(&Command::ReleaseTask(late)).unwrap();
    // Reports that are too much for a record by themselves, so that the refusal tells the count.
    let plain = NewTask::new(QueueName::parse("q").unwrap(), Payload::default());
    let count = RECORD_BYTES_MAX / PAYLOAD_BYTES_MAX;
    world.play(&Command::SubmitTasks(SubmitTasks { tasks: vec![plain; count] })).unwrap();
    let leases = world.lease(count as u32);
    world.now = world.now.plus_ms(1);
    let output = "1".repeat(PAYLOAD_BYTES_MAX);
    let large: Vec<_> = leases.iter().map(|lease| complete(*lease, &output)).collect();
    let counted = |mut reports: ReportTasks| {
        reports.completes.extend(large.iter().cloned());
        match world.clone().play(&Command::ReportTasks(reports)) {
            Err(Rejection::RecordTooLarge { bytes }) => bytes,
            other => panic!("{other:?}"),
        }
    };
    let none = ReportTasks::default;
    let without = counted(none());
    let mut failure = fail(failed, "BROKEN");
    failure.reason = Reason::keep_end(&"why ".repeat(500));
    let kinds = [
        ReportTasks { heartbeats: vec![extended], ..none() },
        ReportTasks { completes: vec![complete(completed, &"1".repeat(2_000))], ..none() },
        ReportTasks { fails: vec![failure], ..none() },
        ReportTasks { releases: vec![released], ..none() },
        ReportTasks { completes: vec![complete(late, "1")], ..none() },
    ];
    for reports in kinds {
        let counts = counted(reports.clone()) - without;
        let mut alone = world.clone();
        alone.play(&Command::ReportTasks(reports.clone())).unwrap();
        assert_eq!(alone.records, world.records + 1, "{reports:?}");
        let takes = alone.log.last().unwrap().len();
        let bound = takes..=takes + A_LITTLE_BYTES;
        assert!(bound.contains(&counts), "{counts} for {takes} bytes: {reports:?}");
    }
}

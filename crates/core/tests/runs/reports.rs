//! Many reports at once, and how many records they take.

use std::num::NonZeroU32;

use tenure_core::command::{
    Command, Heartbeat, LeaseRef, LeaseTasks, NewTask, Reply, ReportTasks, Rest, SubmitTasks,
};
use tenure_core::limits::SWEEP_BYTES_MAX;
use tenure_record::limits::{
    CHECKPOINT_BYTES_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX,
};
use tenure_record::name::{QueueName, WorkerName};
use tenure_record::progress::Checkpoint;
use tenure_record::terms::Payload;

use super::world::{Checks, World, complete};

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

/// Plays reports to their end. Says how many bytes each record has.
fn report_all(world: &mut World, mut report: ReportTasks) -> Vec<usize> {
    let items = report.heartbeats.len()
        + report.completes.len()
        + report.fails.len()
        + report.releases.len();
    let first = world.log.len();
    while report.decided < items {
        let reply = world.play(&Command::ReportTasks(report.clone())).unwrap();
        let Reply::Reported { reports, rest } = reply else { panic!("{reply:?}") };
        assert!(reports.iter().all(|it| it.result.is_ok()), "{reports:?}");
        report.decided += reports.len();
        assert_eq!(rest == Rest::More, report.decided < items);
    }
    world.log[first..].iter().map(Vec::len).collect()
}

#[test]
fn reports_that_are_too_much_for_one_record_are_several() {
    let mut world = World::with(Checks::Touched);
    let plain = NewTask::new(QueueName::parse("q").unwrap(), Payload::default());
    let count = RECORD_BYTES_MAX / PAYLOAD_BYTES_MAX + 1;
    world.play(&Command::SubmitTasks(SubmitTasks { tasks: vec![plain; count] })).unwrap();
    let leases = world.lease(count as u32);
    let output = "1".repeat(PAYLOAD_BYTES_MAX);
    let completes = leases.iter().map(|lease| complete(*lease, &output)).collect();
    let bytes = report_all(&mut world, ReportTasks { completes, ..ReportTasks::default() });
    assert!(bytes.len() > 1, "{bytes:?}");
    assert!(bytes.iter().all(|bytes| *bytes < 2 * PAYLOAD_BYTES_MAX), "{bytes:?}");
    world.verify();
}

#[test]
fn heartbeats_with_large_checkpoints_are_several_records() {
    let mut world = World::with(Checks::Touched);
    let plain = NewTask::new(QueueName::parse("q").unwrap(), Payload::default());
    let count = 4 * SWEEP_BYTES_MAX / CHECKPOINT_BYTES_MAX;
    world.play(&Command::SubmitTasks(SubmitTasks { tasks: vec![plain; count] })).unwrap();
    let leases = world.lease(count as u32);
    let checkpoint = Checkpoint::parse(&vec![b'1'; CHECKPOINT_BYTES_MAX]).unwrap();
    let alive = |lease: &LeaseRef| Heartbeat { checkpoint: checkpoint.clone(), ..(*lease).into() };
    let heartbeats = leases.iter().map(alive).collect();
    let bytes = report_all(&mut world, ReportTasks { heartbeats, ..ReportTasks::default() });
    assert_eq!(bytes.len(), 4, "{bytes:?}");
    let most = SWEEP_BYTES_MAX + 2 * CHECKPOINT_BYTES_MAX;
    assert!(bytes.iter().all(|bytes| *bytes < most), "{bytes:?}");
    let kept = world.state.bytes().tasks;
    assert!(kept > (count * CHECKPOINT_BYTES_MAX) as u64, "checkpoints count as memory: {kept}");
    world.verify();
}

#[test]
fn reports_while_a_wide_fan_out_is_dispatched_are_taken() {
    let mut world = World::with(Checks::Touched);
    world.register(
        "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}, input_mapping: {x: x}}
  - {ref: c, kind: pass}
transitions:
  - {ref: t, from: a, to: b, foreach: {collection: input.list, item_var: x}}
  - {from: b, to: c, synchronization: {joins_transition: t}}
",
    );
    // Payloads of twenty thousand bytes: what a thousand of them begin would fill many records.
    let item = format!("\"{}\"", "x".repeat(300));
    let list = vec![item; 3_000].join(",");
    let run = world.start("w", &format!("{{\"list\":[{list}]}}"));
    let begun = world.state.run(run).unwrap().token_count();
    assert!(begun < 1_100, "one record begins a part of them: {begun}");
    let completes: Vec<_> = world.lease(1_000).iter().map(|it| complete(*it, "1")).collect();
    assert_eq!(completes.len(), 1_000);
    let bytes = report_all(&mut world, ReportTasks { completes, ..ReportTasks::default() });
    let begun = world.state.run(run).unwrap().token_count() - begun;
    // And one token on which they meet.
    assert!(begun <= 1_000 * bytes.len() + 1, "{begun} branches in {} records", bytes.len());
    assert!(bytes.iter().all(|bytes| *bytes < RECORD_BYTES_MAX / 2), "{bytes:?}");
    world.verify();
}

#[test]
fn one_report_after_the_other_is_decided_where_all_are_too_much() {
    let mut world = World::new();
    let leases = leases_of_runs(&mut world, 3);
    let completes: Vec<_> = leases.iter().map(|lease| complete(*lease, "1")).collect();
    let report = ReportTasks { completes, is_single: true, ..ReportTasks::default() };
    assert_eq!(report_all(&mut world, report).len(), 3);
}

//! Runs that are over are forgotten by themselves, with their tasks.

use tenure_core::command::{
    Archived, Command, NewTask, Reply, Rest, Retention, SubmitTasks, Swept,
};
use tenure_core::limits::DUE_ITEMS_MAX;
use tenure_record::id::{Lsn, RunId, TaskId};
use tenure_record::name::QueueName;
use tenure_record::terms::{Payload, SpanMs};
use tenure_record::time::Timestamp;

use super::world::{Checks, World};

const WORKFLOW: &str = "workflow: w
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: q}}]
";

#[test]
fn a_run_that_is_over_has_a_moment_at_which_it_is_forgotten() {
    let mut world = World::new();
    world.register(WORKFLOW);
    let retention = Retention { age_ms: 1_000, ..Retention::default() };
    let run = world.start("w", "{}");
    assert_eq!(world.state.next_purge(&retention), None, "it is live");
    let lease = world.lease(1)[0];
    world.complete(lease, "1").unwrap();
    assert_eq!(world.state.next_purge(&retention), Some(world.now.plus_ms(1_000)));
    world.now = world.now.plus_ms(1_000);
    world.play(&Command::PurgeTasks(retention)).unwrap();
    assert!(world.state.run(run).is_none());
    assert_eq!(world.state.next_purge(&retention), None);
    world.verify();
    world.verify_snapshots();
}

#[test]
fn tasks_of_runs_are_not_counted_among_those_that_are_too_many() {
    let mut world = World::new();
    world.register(WORKFLOW);
    world.start("w", "{}");
    world.start("w", "{}");
    for lease in world.lease(2) {
        world.complete(lease, "1").unwrap();
    }
    let kept = Retention { tasks_max: 2, ..Retention::default() };
    assert!(world.state.next_purge(&kept).unwrap() > world.now, "two runs may stay");
    let fewer = Retention { tasks_max: 1, ..Retention::default() };
    assert_eq!(world.state.next_purge(&fewer), Some(Timestamp::ZERO));
    world.play(&Command::PurgeTasks(fewer)).unwrap();
    assert_eq!(world.state.facts().run_count(), 1);
    assert!(world.state.next_purge(&fewer).unwrap() > world.now);
}

#[test]
fn a_run_goes_with_its_tasks_once_it_is_archived_and_they_never_go_alone() {
    let mut world = World::new();
    world.register(WORKFLOW);
    let run = world.start("w", "{}");
    let archived = |tasks: &[u64], runs: &[RunId], as_of| {
        let tasks = tasks.iter().copied().map(TaskId).collect();
        Command::PurgeArchived(Archived { tasks, runs: runs.to_vec(), as_of })
    };
    let all = Lsn(u64::MAX);
    world.play(&archived(&[1], &[run], all)).unwrap();
    assert!(world.state.run(run).is_some(), "it is live");
    let lease = world.lease(1)[0];
    let before = world.state.last_lsn();
    world.complete(lease, "1").unwrap();
    world.play(&archived(&[], &[run], before)).unwrap();
    assert!(world.state.run(run).is_some(), "its end is not in the archive");
    world.play(&archived(&[1], &[], all)).unwrap();
    assert!(world.state.task(TaskId(1)).is_some(), "a task of a run goes with it");
    let end = world.state.last_lsn();
    world.play(&archived(&[1], &[run, run], end)).unwrap();
    assert!(world.state.run(run).is_none() && world.state.task(TaskId(1)).is_none());
    world.verify();
    world.verify_snapshots();
}

const PARENT: &str = "workflow: parent
initial_node: c
nodes:
  - {ref: c, kind: workflow, workflow: {name: middle}}
  - {ref: s, kind: signal, signal: {name: ok}}
transitions: [{from: c, to: s}]
";
const MIDDLE: &str = "workflow: middle
initial_node: c
nodes: [{ref: c, kind: workflow, workflow: {name: w}}]
";

/// A run whose child and grandchild are over, and one of no relation that ended with them.
fn family() -> (World, [RunId; 4]) {
    let mut world = World::new();
    world.register(WORKFLOW);
    world.register(MIDDLE);
    world.register(PARENT);
    let parent = world.start("parent", "{}");
    let other = world.start("w", "{}");
    for lease in world.lease(2) {
        world.complete(lease, "1").unwrap();
    }
    let runs = [parent, RunId(2), RunId(3), other];
    let states = runs.map(|run| world.run_state(run));
    assert_eq!(states, ["WAITING", "COMPLETED", "COMPLETED", "COMPLETED"]);
    (world, runs)
}

fn are_there(world: &World, runs: [RunId; 4]) -> [bool; 4] {
    runs.map(|run| world.state.run(run).is_some())
}

#[test]
fn a_child_run_is_kept_as_long_as_its_parent_and_goes_right_after_it() {
    for crashes in [false, true] {
        let (mut world, runs) = family();
        let retention = Retention { age_ms: 1_000, ..Retention::default() };
        let sweep = |world: &mut World| {
            if crashes {
                world.crash();
            }
            match world.play(&Command::PurgeTasks(retention)).unwrap() {
                Reply::Swept(Swept { items, rest }) => (items, rest),
                other => panic!("{other:?}"),
            }
        };
        world.now = world.now.plus_ms(10_000);
        assert_eq!(sweep(&mut world), (1, Rest::Nothing));
        assert_eq!(are_there(&world, runs), [true, true, true, false]);
        assert_eq!(world.state.next_purge(&retention), None, "the parent keeps them");
        world.signal(runs[0], "ok", "null").unwrap();
        assert_eq!(world.state.next_purge(&retention), Some(world.now.plus_ms(1_000)));
        world.now = world.now.plus_ms(1_000);
        // Parents go first: no run that can be looked at has a child that cannot.
        assert_eq!(sweep(&mut world), (1, Rest::More));
        assert_eq!(are_there(&world, runs), [false, true, true, false]);
        assert_eq!(world.state.next_purge(&retention), Some(Timestamp::ZERO));
        assert_eq!(sweep(&mut world), (1, Rest::More));
        assert_eq!(sweep(&mut world), (1, Rest::Nothing));
        assert_eq!(are_there(&world, runs), [false; 4]);
        assert_eq!(world.state.next_purge(&retention), None);
        world.verify();
        world.verify_snapshots();
    }
}

#[test]
fn child_runs_do_not_count_among_those_that_are_too_many() {
    let (mut world, runs) = family();
    world.now = world.now.plus_ms(1_000);
    world.signal(runs[0], "ok", "null").unwrap();
    let two = Retention { tasks_max: 2, ..Retention::default() };
    assert!(world.state.next_purge(&two).unwrap() > world.now, "parent and other may stay");
    let one = Retention { tasks_max: 1, ..Retention::default() };
    world.play(&Command::PurgeTasks(one)).unwrap();
    assert_eq!(are_there(&world, runs), [true, true, true, false]);
    let none = Retention { tasks_max: 0, ..Retention::default() };
    world.play(&Command::PurgeTasks(none)).unwrap();
    assert_eq!(are_there(&world, runs), [false, true, true, false]);
    // Nothing is too many or too old now, and still no child outlives its parent.
    for _ in 0..2 {
        world.play(&Command::PurgeTasks(two)).unwrap();
    }
    assert_eq!(are_there(&world, runs), [false; 4]);
    world.verify();
}

#[test]
fn an_archived_child_run_is_kept_as_long_as_its_parent() {
    let (mut world, runs) = family();
    let purge = |world: &mut World, runs: &[RunId]| {
        let as_of = world.state.last_lsn();
        let archived = Archived { tasks: Vec::new(), runs: runs.to_vec(), as_of };
        world.play(&Command::PurgeArchived(archived)).unwrap();
    };
    purge(&mut world, &runs);
    assert_eq!(are_there(&world, runs), [true, true, true, false]);
    world.signal(runs[0], "ok", "null").unwrap();
    purge(&mut world, &runs);
    assert_eq!(are_there(&world, runs), [false, true, true, false], "one level at a time");
    purge(&mut world, &runs);
    purge(&mut world, &runs);
    assert_eq!(are_there(&world, runs), [false; 4]);
    world.verify();
    world.verify_snapshots();
}

#[test]
fn a_late_report_that_is_not_in_the_archive_keeps_the_run_of_its_task() {
    let mut world = World::new();
    world.register(WORKFLOW);
    let run = world.start("w", "{}");
    let lease = world.lease(1)[0];
    world.play(&Command::CancelRun(run)).unwrap();
    assert_eq!(world.run_state(run), "CANCELED");
    let archived =
        |as_of| Command::PurgeArchived(Archived { tasks: Vec::new(), runs: vec![run], as_of });
    let before = world.state.last_lsn();
    let _ = world.complete(lease, "1");
    assert!(world.state.last_lsn() > before, "the late report is on record");
    world.play(&archived(before)).unwrap();
    assert!(world.state.run(run).is_some(), "the report would be lost");
    world.play(&archived(world.state.last_lsn())).unwrap();
    assert!(world.state.run(run).is_none());
    world.verify();
}

/// A run counts for one, and for each of its tokens one more.
#[test]
fn tasks_and_runs_share_the_room_of_a_record_that_forgets_them() {
    const HOUR_MS: u64 = 3_600_000;
    let mut world = World::with(Checks::Touched);
    let queue = QueueName::parse("plain").unwrap();
    let total_timeout_ms = Some(SpanMs::parse("timeout_ms", HOUR_MS as i64).unwrap());
    let task = NewTask { total_timeout_ms, ..NewTask::new(queue, Payload::default()) };
    // Room is left for two runs with one token each.
    let tasks = vec![task; DUE_ITEMS_MAX - 4];
    let ids: Vec<_> = (1..=tasks.len() as u64).map(TaskId).collect();
    world.play(&Command::SubmitTasks(SubmitTasks { tasks })).unwrap();
    world.wait(HOUR_MS);
    world.register("workflow: w\ninitial_node: a\nnodes: [{ref: a, kind: pass}]\n");
    let runs = (0..3).map(|_| world.start("w", "{}")).collect();
    let as_of = world.state.last_lsn();
    let commands = [
        Command::PurgeTasks(Retention { tasks_max: 0, ..Retention::default() }),
        Command::PurgeArchived(Archived { tasks: ids, runs, as_of }),
    ];
    for command in commands {
        let mut world = world.clone();
        let sweeps = [(DUE_ITEMS_MAX - 2, Rest::More), (1, Rest::Nothing)];
        for (items, rest) in sweeps {
            let Ok(Reply::Swept(swept)) = world.play(&command) else { panic!("{command:?}") };
            assert_eq!(swept, Swept { items, rest });
        }
        assert_eq!(world.state.facts().run_count(), 0);
        world.verify();
    }
}

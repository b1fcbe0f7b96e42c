//! Artifacts: which files a run leaves behind, and under which names.

use tenure_code::Code;
use tenure_core::Rejection;
use tenure_core::command::{Command, CompleteTask, LeaseRef, NewTask, SubmitTasks};
use tenure_core::limits::ARTIFACTS_PER_RUN_MAX;
use tenure_core::state::ArtifactState;
use tenure_record::artifact::{Artifact, ArtifactName, MediaType, Sha256};
use tenure_record::codec;
use tenure_record::id::RunId;
use tenure_record::name::QueueName;
use tenure_record::terms::Payload;

use super::world::{Checks, World, complete, fail};

pub(crate) fn artifact(name: &str, content: u8) -> Artifact {
    Artifact {
        name: ArtifactName::parse(name).unwrap(),
        media_type: MediaType::parse("text/plain").unwrap(),
        bytes: content.into(),
        sha256: Sha256([content; 32]),
    }
}

fn hand_in(world: &mut World, lease: LeaseRef, output: &str, files: &[(&str, u8)]) {
    let artifacts = files.iter().map(|(name, content)| artifact(name, *content)).collect();
    let command = CompleteTask { artifacts, ..complete(lease, output) };
    world.play(&Command::CompleteTask(command)).unwrap();
}

/// The names of a run's artifacts in that state.
fn names(world: &World, run: RunId, state: ArtifactState) -> Vec<String> {
    let artifacts = world.state.run(run).unwrap().artifacts();
    let found = artifacts.iter().filter(|it| it.state == state).map(|it| it.name.to_owned());
    found.collect()
}

fn committed(world: &World, run: RunId) -> Vec<String> {
    assert_eq!(names(world, run, ArtifactState::Staged), [""; 0], "a run that is over stages none");
    world.verify();
    world.verify_snapshots();
    names(world, run, ArtifactState::Committed)
}

fn staged(world: &World, run: RunId) -> Vec<String> {
    names(world, run, ArtifactState::Staged)
}

/// Three branches with one task each, joined so.
fn fan(join: &str, rest: &str) -> World {
    let mut world = World::new();
    world.register(&format!(
        "workflow: w
initial_node: a
nodes:
  - {{ref: a, kind: pass}}
  - {{ref: b, kind: task, task: {{queue: q}}, retry: {{max_failures: 1}}}}
  - {{ref: c, kind: pass}}
transitions:
  - {{ref: t, from: a, to: b, spawn_count: 3}}
  - {{from: b, to: c, synchronization: {{joins_transition: t, {join}}}}}
{rest}"
    ));
    world
}

fn line(rest: &str) -> World {
    let mut world = World::new();
    world.register(&format!(
        "workflow: w
initial_node: a
nodes:
  - {{ref: a, kind: task, task: {{queue: q}}, output_schema: {{type: object}}}}
  - {{ref: b, kind: task, task: {{queue: q}}, retry: {{max_failures: 1}}}}
transitions:
  - {{from: a, to: b}}
{rest}"
    ));
    world
}

#[test]
fn what_a_completion_hands_in_is_staged_and_committed_with_the_run() {
    let mut world = line("");
    let run = world.start("w", "{}");
    let lease = world.lease(1)[0];
    hand_in(&mut world, lease, "{}", &[("report.txt", 1), ("logs/a.log", 2)]);
    assert_eq!(staged(&world, run), ["report.txt", "logs/a.log"]);
    let lease = world.lease(1)[0];
    hand_in(&mut world, lease, "{}", &[("b.txt", 3)]);
    assert_eq!(committed(&world, run), ["report.txt", "logs/a.log", "b.txt"]);
    let view = world.state.run(run).unwrap();
    let first = view.artifacts()[0];
    assert_eq!((first.node(), first.bytes(), first.media_type()), ("a", 1, "text/plain"));
    let named = world.state.facts().named_blobs();
    assert_eq!(named.len(), 3);
    assert!(named.contains(&Sha256([2; 32])));
}

#[test]
fn a_join_promotes_what_its_branches_staged_in_the_order_of_their_indices() {
    let mut world = fan("wait_for: all", "");
    let run = world.start("w", "{}");
    let leases = world.lease(3);
    for (nth, lease) in leases.into_iter().enumerate().rev() {
        hand_in(&mut world, lease, "1", &[(&format!("part-{nth}"), nth as u8)]);
    }
    assert_eq!(committed(&world, run), ["part-0", "part-1", "part-2"]);
}

#[test]
fn losers_and_failed_branches_leave_nothing() {
    let mut world = fan("wait_for: any", "");
    let run = world.start("w", "{}");
    let leases = world.lease(3);
    hand_in(&mut world, leases[1], "1", &[("won", 1)]);
    // The others are canceled; what they hand in now is lost.
    let late = CompleteTask { artifacts: vec![artifact("late", 2)], ..complete(leases[0], "1") };
    let _ = world.play(&Command::CompleteTask(late));
    assert_eq!(committed(&world, run), ["won"]);

    let mut world = fan("wait_for: all, on_unreachable: proceed, fail_fast: false", "");
    let run = world.start("w", "{}");
    let leases = world.lease(3);
    hand_in(&mut world, leases[0], "1", &[("zero", 1)]);
    world.play(&Command::FailTask(fail(leases[1], "BAD"))).unwrap();
    hand_in(&mut world, leases[2], "1", &[("two", 2)]);
    assert_eq!(committed(&world, run), ["zero", "two"]);
}

#[test]
fn what_comes_after_a_group_has_fired_is_dropped_though_it_runs_on() {
    let mut world = fan("wait_for: {m_of_n: 2}, on_late: abandon", "");
    let run = world.start("w", "{}");
    let leases = world.lease(3);
    for (nth, lease) in leases.into_iter().enumerate() {
        hand_in(&mut world, lease, "1", &[(&nth.to_string(), nth as u8)]);
    }
    assert_eq!(committed(&world, run), ["0", "1"]);
}

#[test]
fn a_join_that_fails_drops_what_its_branches_staged() {
    let mut world = fan("wait_for: all, else_to: c", "");
    let run = world.start("w", "{}");
    let leases = world.lease(3);
    hand_in(&mut world, leases[0], "1", &[("zero", 1)]);
    assert_eq!(staged(&world, run), ["zero"]);
    world.play(&Command::FailTask(fail(leases[1], "BAD"))).unwrap();
    assert_eq!((world.run_state(run), committed(&world, run)), ("COMPLETED", Vec::new()));
    assert!(world.state.facts().named_blobs().is_empty(), "nobody names it any more");
}

#[test]
fn branches_that_nothing_joins_keep_what_they_staged() {
    let mut world = World::new();
    world.register(
        "workflow: w
initial_node: a
nodes: [{ref: a, kind: pass}, {ref: b, kind: task, task: {queue: q}}]
transitions: [{ref: t, from: a, to: b, spawn_count: 2}]
",
    );
    let run = world.start("w", "{}");
    for (nth, lease) in world.lease(2).into_iter().enumerate() {
        hand_in(&mut world, lease, "1", &[(&nth.to_string(), 1)]);
    }
    assert_eq!(committed(&world, run), ["0", "1"]);
}

#[test]
fn one_name_of_several_branches_is_told_apart_as_the_definition_says() {
    for (rule, expected, state) in [
        ("qualify", vec!["t#1[0]/out", "t#1[1]/out", "t#1[2]/out"], "COMPLETED"),
        ("last_wins", vec!["out"], "COMPLETED"),
        ("fail", vec![], "FAILED"),
    ] {
        let mut world = fan("wait_for: all", &format!("artifacts: {{on_conflict: {rule}}}\n"));
        let run = world.start("w", "{}");
        for (nth, lease) in world.lease(3).into_iter().enumerate() {
            hand_in(&mut world, lease, "1", &[("out", nth as u8)]);
        }
        assert_eq!(committed(&world, run), expected, "{rule}");
        assert_eq!(world.run_state(run), state, "{rule}");
        if rule == "fail" {
            assert_eq!(world.codes(run), ["ARTIFACT_CONFLICT"]);
        }
        if rule == "last_wins" {
            let last = world.state.run(run).unwrap().artifacts()[0].sha256();
            assert_eq!(last, Sha256([2; 32]), "the highest index counts");
        }
    }
}

#[test]
fn a_loop_that_hands_in_one_name_twice_keeps_both() {
    let mut world = World::new();
    world.register(
        "workflow: w
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: q}}, {ref: z, kind: pass}]
transitions:
  - {from: a, to: a, priority: 1, condition: \"result_again\", loop: {max_iterations: 1}}
  - {from: a, to: z, priority: 2}
"
        .replace("result_again", "outputs.a == 1")
        .as_str(),
    );
    let run = world.start("w", "{}");
    let lease = world.lease(1)[0];
    hand_in(&mut world, lease, "1", &[("out", 1)]);
    let lease = world.lease(1)[0];
    hand_in(&mut world, lease, "2", &[("out", 2)]);
    assert_eq!(committed(&world, run), ["@1/out", "@2/out"]);
}

#[test]
fn a_run_that_fails_commits_only_if_it_always_does() {
    for (rule, expected) in [("success", &[][..]), ("always", &["log"])] {
        let mut world = line(&format!("artifacts: {{commit_on: {rule}}}\n"));
        let run = world.start("w", "{}");
        let lease = world.lease(1)[0];
        hand_in(&mut world, lease, "{}", &[("log", 1)]);
        let lease = world.lease(1)[0];
        world.play(&Command::FailTask(fail(lease, "BAD"))).unwrap();
        assert_eq!(world.run_state(run), "FAILED");
        assert_eq!(committed(&world, run), expected, "{rule}");
    }
}

#[test]
fn a_completion_whose_output_is_refused_stages_nothing() {
    let mut world = line("artifacts: {commit_on: always}\n");
    let run = world.start("w", "{}");
    let lease = world.lease(1)[0];
    hand_in(&mut world, lease, "[\"no object\"]", &[("log", 1)]);
    assert_eq!((world.run_state(run), committed(&world, run)), ("FAILED", Vec::new()));
    assert_eq!(world.codes(run), ["OUTPUT_INVALID"]);
}

#[test]
fn a_task_without_a_run_keeps_no_artifacts_and_is_told_so() {
    let mut world = World::new();
    let queue = QueueName::parse("q").unwrap();
    let tasks = vec![NewTask::new(queue, Payload::default())];
    world.play(&Command::SubmitTasks(SubmitTasks { tasks })).unwrap();
    let lease = world.lease(1)[0];
    let command = CompleteTask { artifacts: vec![artifact("a", 1)], ..complete(lease, "1") };
    let refused = world.play(&Command::CompleteTask(command)).unwrap_err();
    assert!(matches!(refused, Rejection::NoRunForArtifacts { .. }), "{refused:?}");
    assert_eq!(refused.code(), Code::InvalidRequest);
    world.complete(lease, "1").unwrap();
}

#[test]
fn a_run_takes_only_so_many() {
    let mut world = World::with(Checks::Touched);
    world.register(
        "workflow: w
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: q}}, {ref: z, kind: pass}]
transitions: [{from: a, to: a, loop: {max_iterations: 200}}, {from: a, to: z, outcome: error}]
",
    );
    let run = world.start("w", "{}");
    let names: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let files: Vec<(&str, u8)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    for _ in 0..=ARTIFACTS_PER_RUN_MAX / 100 {
        let lease = world.lease(1)[0];
        hand_in(&mut world, lease, "1", &files);
    }
    assert_eq!(world.run_state(run), "COMPLETED", "the error was dealt with");
    let last = world.log.last().map(|bytes| format!("{:?}", codec::decode(bytes).unwrap()));
    assert!(last.unwrap().contains("LIMIT_ARTIFACTS"));
    // The same files under the same names, a hundred times over.
    assert_eq!(world.state.run(run).unwrap().artifacts().len(), 100);
    world.verify();
}

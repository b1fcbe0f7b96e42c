//! Whole stories: many tasks, dying workers, a dying server.

use std::time::Duration;

use serde_json::json;

use crate::exec::crew::{Note, Worker, eventually};
use crate::server::Server;

#[test]
fn two_hundred_tasks_over_eight_slots_all_succeed() {
    let server = Server::start("exec-many");
    let _worker = Worker::exec(&server, &["--slots", "8", "--quiet"]);
    let task = |n: u32| json!({"payload": {"argv": ["echo", n.to_string()]}});
    let tasks: Vec<_> = (0..200).map(task).collect();
    let (status, batch) = server.post("/v1/tasks/batch", &json!({"tasks": tasks}));
    assert_eq!(status, 201);
    let ids: Vec<_> =
        batch["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    for (n, id) in ids.iter().enumerate() {
        let task = server.ended(*id);
        assert_eq!((&task["state"], &task["output"]), (&json!("COMPLETED"), &json!(n)));
        assert_eq!(server.events(*id), ["TaskCreated", "LeaseGranted", "TaskCompleted"]);
    }
    server.check_all(&ids);
}

#[test]
fn a_task_of_a_worker_that_dies_succeeds_at_another() {
    let server = Server::start("exec-dies");
    let mut dying = Worker::exec(&server, &["--lease", "4s"]);
    let note = Note::new("dies");
    let id = server.sh(&format!(
        "echo $$ >> {}; test $TENURE_ATTEMPT = 2 && exec echo saved; sleep 300",
        note.path()
    ));
    note.pids(1);
    dying.kill();
    let _other = Worker::exec(&server, &[]);
    let task = server.ended(id);
    assert_eq!((&task["state"], &task["output"]), (&json!("COMPLETED"), &json!("saved")));
    assert_eq!((&task["attempt"], &task["expiries"]), (&json!(2), &json!(1)));
    let (_, history) = server.get(&format!("/v1/tasks/{id}/history"));
    let at = |n: usize| history["items"][n]["at"].as_str().unwrap().to_owned();
    // The lease, or the grace of a stream that was cut, and a second; and the time until it was
    // killed. The task's own lease would have been 30 s.
    assert!(between(&at(1), &at(2)) <= Duration::from_secs(20), "{history:#}");
    server.check_all(&[id]);
}

/// From one moment to another on the same or the next day.
fn between(from: &str, to: &str) -> Duration {
    let of_day = |moment: &str| {
        let time = moment.split_once('T').unwrap().1.trim_end_matches('Z');
        let parts: Vec<f64> = time.split(':').map(|part| part.parse().unwrap()).collect();
        parts[0] * 3_600.0 + parts[1] * 60.0 + parts[2]
    };
    Duration::from_secs_f64((of_day(to) - of_day(from)).rem_euclid(86_400.0))
}

#[test]
fn a_task_that_was_canceled_while_it_waited_never_runs() {
    let server = Server::start("exec-never");
    let note = Note::new("never");
    let ids: Vec<_> = (0..10).map(|_| server.sh(&format!("echo ran >> {}", note.path()))).collect();
    for id in &ids {
        assert_eq!(server.cancel(*id), 200);
    }
    let _worker = Worker::exec(&server, &["--slots", "4"]);
    let after = server.submit(&json!({"argv": ["true"]}));
    assert_eq!(server.ended(after)["state"], "COMPLETED", "the worker has gone past them");
    assert_eq!(note.text(), "");
    for id in &ids {
        let task = server.task(*id);
        assert_eq!((&task["state"], &task["attempt"]), (&json!("CANCELED"), &json!(0)));
    }
    server.check_all(&ids);
}

#[test]
fn a_server_that_is_killed_again_and_again_loses_nothing() {
    let mut server = Server::start("exec-server-dies");
    // A lease that was granted and not told of when the server died has to run out.
    let _worker = Worker::exec(&server, &["--slots", "4", "--lease", "2s"]);
    let ids: Vec<_> = (0..60).map(|n| server.sh(&format!("sleep 0.1; echo {n}"))).collect();
    for round in 1..=3 {
        let enough = round * 10;
        eventually("some progress", || {
            let done = server.get("/v1/status").1["tasks"]["COMPLETED"].as_u64()?;
            (done >= enough).then_some(())
        });
        server.crash_and_come_back();
    }
    for (n, id) in ids.iter().enumerate() {
        let task = server.ended(*id);
        assert_eq!((&task["state"], &task["output"]), (&json!("COMPLETED"), &json!(n)));
        let completed = server.events(*id).iter().filter(|event| *event == "TaskCompleted").count();
        assert_eq!(completed, 1);
    }
    server.check_all(&ids);
}

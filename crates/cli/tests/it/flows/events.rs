//! Live updates of runs.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::flows::definitions::{FAN, complete, lease, put_yaml, start};
use crate::server::Server;

/// The first few events, each with its id.
pub(crate) fn events(server: &Server, query: &str, count: usize) -> Vec<(String, Value)> {
    let mut stream = server.connect();
    write!(stream, "GET /v1/events{query} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let (mut found, mut id) = (Vec::new(), String::new());
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if let Some(text) = line.strip_prefix("id: ") {
            id = text.to_owned();
        }
        if let Some(data) = line.strip_prefix("data: ") {
            found.push((std::mem::take(&mut id), serde_json::from_str(data).unwrap()));
        }
        if found.len() == count {
            return found;
        }
    }
    panic!("the stream ended after {found:?}");
}

#[test]
fn a_follower_of_a_run_misses_nothing_and_sees_nothing_twice_over_kills() {
    let mut server = Server::start("flow-events");
    put_yaml(&server, "fan", FAN);
    // Others, which the follower must not hear of.
    server.post("/v1/tasks", &json!({"queue": "elsewhere"}));
    let other = start(&server, "fan", &json!({"parts": []}));
    let run = start(&server, "fan", &json!({"parts": [0, 1, 2]}));
    assert_ne!(run, other);
    for _ in 0..3 {
        let held = lease(&server, 1).remove(0);
        complete(&server, &held, &held["payload"]["item"]);
    }
    // Begun, three tasks made, each leased and completed, and finished.
    let count = 1 + 3 + 3 + 3 + 1;
    let all = events(&server, &format!("?run={run}&after=0"), count);
    let names: Vec<_> = all.iter().map(|(_, event)| event["event"].as_str().unwrap()).collect();
    assert_eq!((names[0], names[count - 1]), ("RunStarted", "RunFinished"));
    assert_eq!(names.iter().filter(|name| **name == "TaskCreated").count(), 3);
    assert!(all.iter().all(|(_, event)| event["run_id"] == run), "{all:?}");
    let (begun, over) = (&all[0].1, &all[count - 1].1);
    assert_eq!((&begun["workflow"], &begun["to"]), (&json!("fan"), &json!("RUNNING")));
    assert_eq!(over["to"], "COMPLETED");
    // Resumed after every event, each time by a new process: the rest is the same.
    for (seen, (id, _)) in all.iter().enumerate().take(count - 1) {
        if seen % 3 == 0 {
            server.crash_and_come_back();
        }
        let rest = events(&server, &format!("?run={run}&after={id}"), count - 1 - seen);
        assert_eq!(rest, all[seen + 1..], "after {id}");
    }
}

#[test]
fn a_follower_that_comes_back_while_the_run_goes_on_sees_what_one_sees_from_the_start() {
    let mut server = Server::start("flow-events-live");
    put_yaml(&server, "fan", FAN);
    let parts = 4;
    let run = start(&server, "fan", &json!({"parts": [0, 1, 2, 3]}));
    let mut seen = events(&server, &format!("?run={run}&after=0"), 1 + parts);
    let follow = |server: &Server, seen: &mut Vec<(String, Value)>, count| {
        let (last, _) = seen.last().unwrap();
        let more = events(server, &format!("?run={run}&after={last}"), count);
        seen.extend(more);
    };
    for _ in 0..parts {
        let held = lease(&server, 1).remove(0);
        server.crash_and_come_back();
        assert_eq!(complete(&server, &held, &json!(1)).0, 200, "a lease outlives the server");
        server.crash_and_come_back();
        follow(&server, &mut seen, 2);
    }
    follow(&server, &mut seen, 1);
    assert_eq!(seen.last().unwrap().1["event"], "RunFinished");
    assert_eq!(events(&server, &format!("?run={run}&after=0"), seen.len()), seen);
}

#[test]
fn a_follower_of_everything_hears_of_tasks_and_runs_in_order() {
    let server = Server::start("flow-events-all");
    put_yaml(&server, "fan", FAN);
    start(&server, "fan", &json!({"parts": [1]}));
    let all = events(&server, "?after=0", 2);
    let names: Vec<_> = all.iter().map(|(_, event)| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["RunStarted", "TaskCreated"]);
    let only = events(&server, "?after=0&queue=q", 1);
    assert_eq!(only[0].1["event"], "TaskCreated", "a run is in no queue");
    assert_eq!(only[0].0, all[1].0, "an event has one name, whoever follows");
}

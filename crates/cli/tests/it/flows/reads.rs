//! Lists, versions, keys, tokens and history.

use serde_json::{Value, json};

use crate::flows::definitions::{ASK, FAN, complete, lease, line, put_yaml, start};
use crate::server::Server;

fn ids(list: &Value) -> Vec<u64> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["id"].as_u64().unwrap()).collect()
}

#[test]
fn a_definition_that_differs_is_a_new_version_and_a_run_keeps_its_own() {
    let server = Server::start("flow-versions");
    assert_eq!(server.put("/v1/workflows/line", &line()).0, 201);
    let (status, same) = server.put("/v1/workflows/line", &line());
    assert_eq!((status, &same["version"]), (200, &json!(1)), "it does not differ");
    let first = start(&server, "line", &json!({"n": 1}));
    let mut changed = line();
    changed["timeout_ms"] = json!(60_000);
    let (status, second) = server.put("/v1/workflows/line", &changed);
    assert_eq!((status, &second["version"]), (201, &json!(2)));
    assert_eq!(server.get(&format!("/v1/runs/{first}")).1["version"], 1);
    let newest = start(&server, "line", &json!({"n": 1}));
    let (_, run) = server.get(&format!("/v1/runs/{newest}"));
    assert_eq!(run["version"], 2);
    assert!(run["deadline_at"].is_string(), "{run}");
    let (status, pinned) =
        server.post("/v1/workflows/line/runs", &json!({"input": {"n": 1}, "version": 1}));
    assert_eq!((status, &pinned["version"]), (201, &json!(1)));

    put_yaml(&server, "ask", ASK);
    let (_, list) = server.get("/v1/workflows");
    let names: Vec<_> = list["items"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["ask", "line"]);
    assert_eq!(list["items"][1]["version"], 2);
    let (_, page) = server.get("/v1/workflows?limit=1");
    assert_eq!((&page["items"][0]["name"], &page["next_cursor"]), (&json!("ask"), &json!("ask")));
    let (_, page) = server.get("/v1/workflows?limit=1&cursor=ask");
    assert_eq!((&page["items"][0]["name"], &page["next_cursor"]), (&json!("line"), &Value::Null));
    let (_, one) = server.get("/v1/workflows/line?version=1");
    assert_eq!((&one["version"], &one["definition"]), (&json!(1), &line()));
    assert_eq!(server.get("/v1/workflows/line").1["definition"], changed);
}

#[test]
fn the_same_key_gives_the_same_run_of_a_workflow() {
    let server = Server::start("flow-keys");
    server.put("/v1/workflows/line", &line());
    put_yaml(&server, "ask", ASK);
    let body = json!({"input": {"n": 1}, "key": "k"});
    let (status, first) = server.post("/v1/workflows/line/runs", &body);
    assert_eq!(status, 201);
    let (status, again) = server.post("/v1/workflows/line/runs", &body);
    assert_eq!((status, &again["id"]), (200, &first["id"]));
    let (status, other) =
        server.post("/v1/workflows/ask/runs", &json!({"input": {"id": "1"}, "key": "k"}));
    assert_eq!(status, 201, "another workflow has keys of its own");
    assert_ne!(other["id"], first["id"]);
}

#[test]
fn runs_are_listed_newest_first_and_by_what_is_asked_for() {
    let server = Server::start("flow-lists");
    server.put("/v1/workflows/line", &line());
    put_yaml(&server, "ask", ASK);
    for n in 0..3 {
        let tags = if n == 1 { json!({"odd": "yes"}) } else { json!({}) };
        let body = json!({"input": {"n": n}, "tags": tags});
        assert_eq!(server.post("/v1/workflows/line/runs", &body).0, 201);
        start(&server, "ask", &json!({"id": "x"}));
    }
    assert_eq!(ids(&server.get("/v1/runs").1), [6, 5, 4, 3, 2, 1]);
    assert_eq!(ids(&server.get("/v1/runs?workflow=line").1), [5, 3, 1]);
    assert_eq!(ids(&server.get("/v1/runs?state=WAITING").1), [6, 4, 2]);
    assert_eq!(ids(&server.get("/v1/runs?state=RUNNING&workflow=ask").1), [0; 0]);
    assert_eq!(ids(&server.get("/v1/runs?tag=odd:yes").1), [3]);
    assert_eq!(ids(&server.get("/v1/runs?workflow=nobody").1), [0; 0]);
    let (_, page) = server.get("/v1/runs?limit=4");
    assert_eq!(ids(&page), [6, 5, 4, 3]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let (_, rest) = server.get(&format!("/v1/runs?limit=4&cursor={cursor}"));
    assert_eq!((ids(&rest), &rest["next_cursor"]), (vec![2, 1], &Value::Null));
    let (_, status) = server.get("/v1/status");
    assert_eq!((&status["runs"]["RUNNING"], &status["runs"]["WAITING"]), (&json!(3), &json!(3)));
}

#[test]
fn tokens_tell_where_a_run_stands_and_where_it_came_from() {
    let server = Server::start("flow-tokens");
    put_yaml(&server, "fan", FAN);
    let run = start(&server, "fan", &json!({"parts": ["a", "b", "c"]}));
    let path = format!("/v1/runs/{run}/tokens");
    let (_, tokens) = server.get(&path);
    assert_eq!(ids(&tokens), [1, 2, 3, 4]);
    let second = &tokens["items"][2];
    assert_eq!((&second["node"], &second["path"]), (&json!("part"), &json!("root/fan#1[1]")));
    assert_eq!((&second["branch_index"], &second["branch_total"]), (&json!(1), &json!(3)));
    assert_eq!((&second["parent"], &second["via"]), (&json!(1), &json!("fan")));
    assert_eq!(second["state"], "dispatched");
    assert!(second["task_id"].is_u64(), "{second}");
    let (_, page) = server.get(&format!("{path}?limit=3"));
    assert_eq!((ids(&page), &page["next_cursor"]), (vec![1, 2, 3], &json!("3")));
    let (_, page) = server.get(&format!("{path}?limit=3&cursor=3"));
    assert_eq!((ids(&page), &page["next_cursor"]), (vec![4], &Value::Null));
    let (_, tasks) = server.get(&format!("/v1/tasks?run={run}&state=WAITING&limit=2"));
    assert_eq!(ids(&tasks), [3, 2]);
    let cursor = tasks["next_cursor"].as_str().unwrap();
    assert_eq!(ids(&server.get(&format!("/v1/tasks?run={run}&cursor={cursor}")).1), [1]);
    assert_eq!(ids(&server.get("/v1/tasks?run=99").1), [0; 0]);
}

#[test]
fn the_history_of_a_run_has_each_decision_with_its_cause_and_what_a_condition_read() {
    let mut server = Server::start("flow-history");
    server.put("/v1/workflows/line", &line());
    let run = start(&server, "line", &json!({"n": 9}));
    complete(&server, &lease(&server, 1)[0], &json!({"n": 18}));
    let path = format!("/v1/runs/{run}/history");
    let (status, history) = server.get(&path);
    assert_eq!((status, &history["truncated_before"]), (200, &Value::Null));
    let items = history["items"].as_array().unwrap();
    let causes: Vec<_> = items.iter().map(|item| item["cause"]["event"].clone()).collect();
    assert_eq!(causes, ["RunStarted", "TaskCompleted"]);
    assert_eq!(items[1]["cause"]["task_id"], 1);
    assert!(items[1]["lsn"].as_u64() > items[0]["lsn"].as_u64());
    let decisions = items[1]["decisions"].as_array().unwrap();
    let created = decisions.iter().find(|it| it["decision"] == "CreateTokens").unwrap();
    let token = &created["tokens"][0];
    assert_eq!((&token["node"], &token["via"]), (&json!("large"), &json!("is_large")));
    assert!(token["why"].to_string().contains("18"), "what the condition read: {token}");
    assert_eq!(decisions.last().unwrap()["decision"], "FinishRun");
    server.crash_and_come_back();
    assert_eq!(server.get(&path).1, history, "the log has it");
}

#[test]
fn all_tasks_of_a_wide_run_are_listed_between_those_of_others() {
    // More tokens than one page looks at.
    const WIDE: u64 = 10_100;
    let server = Server::start("flow-wide");
    put_yaml(&server, "fan", FAN);
    let other = start(&server, "fan", &json!({"parts": [1, 2]}));
    let wide = start(&server, "fan", &json!({"parts": (0..WIDE).collect::<Vec<_>>()}));
    // Branches begin a chunk at a time.
    while server.get("/v1/status").1["tasks"]["WAITING"] != WIDE + 2 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    server.post("/v1/tasks", &json!({"queue": "elsewhere"}));
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let (status, page) = server.get(&format!("/v1/tasks?run={wide}&limit=1000{cursor}"));
        assert_eq!(status, 200, "{page}");
        found.extend(ids(&page));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, (3..=WIDE + 2).rev().collect::<Vec<_>>(), "newest first, each once");
    assert_eq!(ids(&server.get(&format!("/v1/tasks?run={other}")).1), [2, 1]);
    let (_, last) = server.get(&format!("/v1/runs/{wide}/tokens?cursor={WIDE}&limit=1000"));
    assert_eq!((ids(&last), &last["next_cursor"]), (vec![WIDE + 1], &Value::Null));
}

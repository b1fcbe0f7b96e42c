//! Artifacts through the real server: handed in, committed, published, and killed in between.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::server::{Server, agent, url};
use serde_json::{Value, json};

/// Whatever is waited for comes long before.
const LONG: Duration = Duration::from_secs(60);
/// Of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
/// Of three million times `x`.
const LARGE: &str = "e55b8bdf621ddaa8f462c74745db9680d3bb7536a9cf854f8d6668b34a287890";
const LARGE_BYTES: usize = 3_000_000;

fn begin(server: &Server) -> u64 {
    let workflow = json!({
        "workflow": "w",
        "initial_node": "a",
        "nodes": [{"ref": "a", "kind": "task", "task": {"queue": "q"}}, {"ref": "b", "kind": "task", "task": {"queue": "q"}}],
        "transitions": [{"from": "a", "to": "b"}],
    });
    let (status, said) = server.put("/v1/workflows/w", &workflow);
    assert!(status == 201 || status == 200, "{said}");
    let (status, run) = server.post("/v1/workflows/w/runs", &json!({"input": {}}));
    assert_eq!(status, 201, "{run}");
    run["id"].as_u64().unwrap()
}

fn lease(server: &Server) -> (u64, u64) {
    let body = json!({"worker": "anna", "queues": ["q"], "wait_ms": 10_000});
    let (status, answer) = server.post("/v1/leases", &body);
    assert_eq!(status, 200);
    let lease = &answer["leases"][0];
    (lease["task_id"].as_u64().unwrap(), lease["lease_id"].as_u64().unwrap())
}

fn complete(server: &Server, artifacts: &Value) -> (u16, Value) {
    let (task, lease) = lease(server);
    let body = json!({"lease_id": lease, "output": {}, "artifacts": artifacts});
    server.post(&format!("/v1/tasks/{task}/complete"), &body)
}

fn upload(server: &Server, sha256: &str, bytes: &[u8]) -> (u16, Value) {
    let mut answer =
        agent().put(url(&server.address, &format!("/v1/blobs/{sha256}"))).send(bytes).unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null))
}

fn list(server: &Server, run: u64) -> Vec<(String, String)> {
    let (status, answer) = server.get(&format!("/v1/runs/{run}/artifacts"));
    assert_eq!(status, 200, "{answer}");
    let items = answer["items"].as_array().unwrap().iter();
    let text = |it: &Value, field: &str| it[field].as_str().unwrap().to_owned();
    items.map(|it| (text(it, "name"), text(it, "state"))).collect()
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn are_published(server: &Server, run: u64, count: usize) -> bool {
    let listed = list(server, run);
    listed.len() == count && listed.iter().all(|(_, state)| state == "published")
}

fn blob(server: &Server, sha256: &str) -> std::path::PathBuf {
    server.folder.join("blobs").join(&sha256[..2]).join(&sha256[2..])
}

fn age(path: &Path) {
    let long_ago = SystemTime::now() - Duration::from_secs(100_000);
    fs::OpenOptions::new().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
}

#[test]
fn what_tasks_hand_in_is_committed_with_the_run_published_and_given_back() {
    let server = Server::start("artifacts-whole");
    let run = begin(&server);
    let large = vec![b'x'; LARGE_BYTES];
    assert_eq!(upload(&server, LARGE, &large).0, 201);
    let (status, again) = upload(&server, LARGE, &large);
    assert_eq!((status, again["bytes"].as_u64()), (200, Some(LARGE_BYTES as u64)));
    let files = json!([
        {"name": "greetings/hello.txt", "media_type": "text/plain", "data": "aGVsbG8="},
        {"name": "large.bin", "blob": LARGE},
    ]);
    let (status, said) = complete(&server, &files);
    assert_eq!(status, 200, "{said}");
    let staged = [("greetings/hello.txt", "staged"), ("large.bin", "staged")];
    assert_eq!(list(&server, run), staged.map(|(name, state)| (name.to_owned(), state.to_owned())));
    assert_eq!(complete(&server, &json!([])).0, 200);
    wait_until("the publication", || are_published(&server, run, 2));
    let store = server.folder.join("artifacts").join(run.to_string());
    assert_eq!(fs::read(store.join("greetings/hello.txt")).unwrap(), b"hello");
    assert_eq!(fs::metadata(store.join("large.bin")).unwrap().len(), LARGE_BYTES as u64);
    let mut history = Command::new(env!("CARGO_BIN_EXE_tenure"));
    history.args(["run", "history", &run.to_string()]);
    let told = history.args(["--server", &format!("http://{}", server.address)]).output().unwrap();
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("(a) hands in greetings/hello.txt (text/plain, 5 bytes)"), "{told}");
    assert!(told.contains("it leaves large.bin (application/octet-stream, 3000000"), "{told}");

    let path = format!("/v1/runs/{run}/artifacts/greetings/hello.txt");
    let mut answer = agent().get(url(&server.address, &path)).call().unwrap();
    assert_eq!(answer.body_mut().read_to_string().unwrap(), "hello");
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/plain");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("etag"), format!("\"{HELLO}\""));
    assert!(header("content-disposition").starts_with("attachment; filename=\"hello.txt\""));
    let known = agent().get(url(&server.address, &path)).header("if-none-match", header("etag"));
    assert_eq!(known.call().unwrap().status(), 304);
    let large = agent().get(url(&server.address, &format!("/v1/runs/{run}/artifacts/large.bin")));
    let mut answer = large.call().unwrap();
    assert_eq!(answer.body_mut().read_to_vec().unwrap().len(), LARGE_BYTES);
    assert_eq!(server.get(&format!("/v1/runs/{run}/artifacts/none")).0, 404);
    assert_eq!(server.get("/v1/runs/99/artifacts").0, 404);
}

#[test]
fn what_is_not_right_is_refused_with_a_sentence_and_the_lease_goes_on() {
    let server = Server::start("artifacts-refused");
    let run = begin(&server);
    let (task, lease_id) = lease(&server);
    let refused = |artifacts: Value| {
        let body = json!({"lease_id": lease_id, "output": {}, "artifacts": artifacts});
        let (status, said) = server.post(&format!("/v1/tasks/{task}/complete"), &body);
        assert_eq!((status, said["code"].as_str()), (400, Some("invalid_request")), "{said}");
        said["detail"].as_str().unwrap().to_owned()
    };
    for (artifacts, why) in [
        (json!([{"name": "../x", "data": ""}]), "goes by"),
        (json!([{"name": "/x", "data": ""}]), "absolute"),
        (json!([{"name": "a\u{1}", "data": ""}]), "control"),
        (json!([{"name": "a"}]), "needs its bytes"),
        (json!([{"name": "a", "data": "", "blob": HELLO}]), "not both"),
        (json!([{"name": "a", "data": "%"}]), "not base64"),
        (json!([{"name": "a", "blob": "12"}]), "64 hexadecimal"),
        (json!([{"name": "a", "blob": HELLO}]), "upload it first"),
        (json!([{"name": "a", "data": "", "media_type": "x\r\ny: z"}]), "no media type"),
        (json!([{"name": "a", "data": ""}, {"name": "a", "data": ""}]), "two artifacts"),
        (json!([{"name": "a", "data": "", "x": 1}]), "x"),
    ] {
        let said = refused(artifacts);
        assert!(said.contains(why), "{why}: {said}");
    }
    let (status, said) = upload(&server, HELLO, b"jello");
    assert_eq!(status, 400);
    assert!(said["detail"].as_str().unwrap().contains("under its own hash"), "{said}");
    assert_eq!(upload(&server, "12", b"hello").0, 400);
    assert!(list(&server, run).is_empty());
    let body = json!({"lease_id": lease_id, "output": {}, "artifacts": []});
    assert_eq!(server.post(&format!("/v1/tasks/{task}/complete"), &body).0, 200);

    let (_, task) = server.post("/v1/tasks", &json!({"queue": "alone"}));
    let body = json!({"worker": "anna", "queues": ["alone"], "wait_ms": 10_000});
    let lease_id = server.post("/v1/leases", &body).1["leases"][0]["lease_id"].clone();
    let body = json!({"lease_id": lease_id, "artifacts": [{"name": "a", "data": "aGVsbG8="}]});
    let (status, said) = server.post(&format!("/v1/tasks/{}/complete", task["id"]), &body);
    assert_eq!(status, 400, "{said}");
    assert!(said["detail"].as_str().unwrap().contains("belongs to no run"), "{said}");
}

#[test]
fn a_kill_between_upload_record_and_publication_loses_nothing_that_was_told() {
    let mut server = Server::start("artifacts-killed");
    let run = begin(&server);
    assert_eq!(upload(&server, HELLO, b"hello").0, 201);
    server.crash_and_come_back();
    assert_eq!(upload(&server, HELLO, b"hello").0, 200, "what was kept is there");
    let (status, said) = complete(&server, &json!([{"name": "hello.txt", "blob": HELLO}]));
    assert_eq!(status, 200, "{said}");
    server.crash_and_come_back();
    assert_eq!(list(&server, run), [("hello.txt".to_owned(), "staged".to_owned())]);
    assert_eq!(complete(&server, &json!([{"name": "b", "data": "Yg=="}])).0, 200);
    // Right after the record, wherever the publication is.
    server.kill();
    let _ = fs::remove_dir_all(server.folder.join("artifacts"));
    server.restart_where_it_was();
    wait_until("the publication", || are_published(&server, run, 2));
    server.kill();
    fs::remove_file(server.folder.join("artifacts").join(run.to_string()).join("b")).unwrap();
    server.restart_where_it_was();
    wait_until("the publication of what was missing", || are_published(&server, run, 2));
}

#[test]
fn a_start_sweeps_what_nobody_names_but_nothing_new() {
    let mut server = Server::start("artifacts-swept");
    let run = begin(&server);
    assert_eq!(complete(&server, &json!([{"name": "named", "data": "bmFtZWQ="}])).0, 200);
    assert_eq!(upload(&server, HELLO, b"hello").0, 201);
    assert_eq!(upload(&server, LARGE, &vec![b'x'; LARGE_BYTES]).0, 201);
    server.kill();
    for folder in fs::read_dir(server.folder.join("blobs")).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path != blob(&server, LARGE) {
                age(&path);
            }
        }
    }
    server.restart_where_it_was();
    wait_until("the sweep", || !blob(&server, HELLO).exists());
    assert!(blob(&server, LARGE).exists(), "it was just uploaded");
    assert_eq!(complete(&server, &json!([])).0, 200);
    wait_until("the publication", || are_published(&server, run, 1));
}

/// A worker that ends with the test.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_command_leaves_in_its_folder_is_handed_in() {
    let server = Server::start("artifacts-exec");
    let workflow = json!({
        "workflow": "e",
        "initial_node": "a",
        "nodes": [{"ref": "a", "kind": "task", "task": {"queue": "q"}, "input_mapping": {"argv": "input.argv"}}],
    });
    assert_eq!(server.put("/v1/workflows/e", &workflow).0, 201);
    let script = "mkdir $TENURE_ARTIFACTS/logs && echo one > $TENURE_ARTIFACTS/logs/a.log && \
                  stat -c '%a' $TENURE_ARTIFACTS > $TENURE_ARTIFACTS/mode && echo 7";
    let input = json!({"input": {"argv": ["sh", "-c", script]}});
    let run = server.post("/v1/workflows/e/runs", &input).1["id"].as_u64().unwrap();
    let at = format!("http://{}", server.address);
    let worker = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["worker", "exec", "--queue", "q", "--queue", "alone", "--server", &at])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _worker = Worker(worker.unwrap());
    wait_until("the publication", || are_published(&server, run, 2));
    assert_eq!(server.text(&format!("/v1/runs/{run}/artifacts/logs/a.log")), "one\n");
    assert_eq!(server.text(&format!("/v1/runs/{run}/artifacts/mode")), "700\n", "its own only");

    // A task of no run has no such folder.
    let task = json!({"queue": "alone", "payload": {"argv": ["sh", "-c", "echo \"[$TENURE_ARTIFACTS]\""]}});
    let id = server.post("/v1/tasks", &task).1["id"].as_u64().unwrap();
    let (_, task) = server.get(&format!("/v1/tasks/{id}?wait_ms=60000"));
    assert_eq!(
        (task["state"].as_str(), &task["output"]),
        (Some("COMPLETED"), &json!([])),
        "{task}"
    );
}

#[test]
fn a_name_that_turns_the_text_around_is_refused() {
    let server = Server::start("artifacts-names");
    begin(&server);
    let (task, lease) = lease(&server);
    for name in ["\u{202e}x", "a\u{200b}", "a\u{9b}2J"] {
        let artifacts = json!([{"name": name, "data": "aGVsbG8="}]);
        let body = json!({"lease_id": lease, "output": {}, "artifacts": artifacts});
        let (status, said) = server.post(&format!("/v1/tasks/{task}/complete"), &body);
        assert_eq!((status, said["code"].as_str()), (400, Some("invalid_request")), "{said}");
        assert!(said["detail"].as_str().unwrap().contains("leave it out"), "{said}");
    }
}

#[test]
fn artifacts_go_with_their_run() {
    let server = Server::start_with("artifacts-forgotten", &["--retention", "1s"], &[]);
    let run = begin(&server);
    assert_eq!(complete(&server, &json!([{"name": "hello.txt", "data": "aGVsbG8="}])).0, 200);
    age(&blob(&server, HELLO));
    assert_eq!(complete(&server, &json!([])).0, 200);
    wait_until("the end of the run's time", || server.get(&format!("/v1/runs/{run}")).0 == 404);
    wait_until("the sweep", || !blob(&server, HELLO).exists());
    let store = server.folder.join("artifacts").join(run.to_string());
    wait_until("the end of what was published", || !store.exists());
}

#[test]
fn a_blob_that_is_missing_or_damaged_is_told_and_can_be_brought_back() {
    let server = Server::start("artifacts-lost");
    let run = begin(&server);
    assert_eq!(complete(&server, &json!([{"name": "hello.txt", "data": "aGVsbG8="}])).0, 200);
    let path = format!("/v1/runs/{run}/artifacts/hello.txt");
    fs::write(blob(&server, HELLO), "jello").unwrap();
    let (status, said) = server.get(&path);
    assert_eq!((status, said["code"].as_str()), (500, Some("artifact_lost")), "{said}");
    assert!(said["detail"].as_str().unwrap().contains("other bytes"), "{said}");
    fs::remove_file(blob(&server, HELLO)).unwrap();
    let (_, said) = server.get(&path);
    assert!(said["detail"].as_str().unwrap().contains("is missing"), "{said}");
    assert_eq!(upload(&server, HELLO, b"hello").0, 201);
    assert_eq!(server.text(&path), "hello");
}

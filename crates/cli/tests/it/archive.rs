//! The archive as a user meets it: the real binary, files that other programs can read, and a server
//! that is killed while it archives. What was forgotten is in the archive at least once.
#![allow(clippy::unwrap_used, clippy::panic)]

mod points;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::server::{self, Server};
use serde_json::{Value, json};

const WAIT_MAX: Duration = Duration::from_secs(90);

fn tenure(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure")).args(args).output().unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder that goes away with its test.
struct Archive(PathBuf);

impl Archive {
    fn new(name: &str) -> Self {
        let folder = server::folder_of(&format!("archive-of-{name}"));
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn serve(&self, name: &str, retention: &str) -> Server {
        Server::start_with(name, &["--archive", self.path(), "--retention", retention], &[])
    }

    /// Files of this kind, oldest first.
    fn files(&self, kind: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(kind) && name.ends_with(".ndjson.zst")
        });
        files.sort();
        files
    }

    fn bytes(&self) -> u64 {
        let files = self.files("").into_iter();
        files.map(|file| fs::metadata(file).map_or(0, |found| found.len())).sum()
    }

    /// What `tenure history` finds, by id.
    fn history(&self, args: &[&str]) -> (Vec<Value>, Output) {
        let fixed = ["history", "--archive", self.path(), "-o", "json"];
        let ran = tenure(&[&fixed, args].concat());
        let lines = said(&ran.stdout);
        (lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), ran)
    }

    fn all(&self, args: &[&str]) -> Vec<Value> {
        let (items, ran) = self.history(&[&["--all"], args].concat());
        assert_eq!(ran.status.code(), Some(0), "{}", said(&ran.stderr));
        items
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Waits until something is so.
#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < WAIT_MAX, "not within {} s: {what}", WAIT_MAX.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn finished(server: &Server) -> u64 {
    let tasks = &server.get("/v1/status").1["tasks"];
    ["COMPLETED", "FAILED", "DEAD", "CANCELED"].iter().map(|it| tasks[it].as_u64().unwrap()).sum()
}

/// Submits and completes so many, at most a thousand.
fn finish(server: &Server, count: usize) -> Vec<u64> {
    let tasks: Vec<_> = (0..count).map(|n| json!({"queue": "mail", "payload": {"n": n}})).collect();
    let (status, taken) = server.post("/v1/tasks/batch", &json!({ "tasks": tasks }));
    assert_eq!(status, 201, "{taken}");
    let wanted = json!({"worker": "anna", "queues": ["mail"], "max": count});
    let (_, leased) = server.post("/v1/leases", &wanted);
    let leases = leased["leases"].as_array().unwrap().iter();
    let done: Vec<_> = leases
        .map(|it| json!({"task_id": it["task_id"], "lease_id": it["lease_id"], "output": "sent"}))
        .collect();
    assert_eq!(server.post("/v1/reports", &json!({ "complete": done })).0, 200);
    taken["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
}

/// All that the log says was forgotten: tasks and runs.
fn forgotten(server: &Server) -> (Vec<u64>, Vec<u64>) {
    let dumped = server.tenure(&["wal", "dump"]);
    let (mut tasks, mut runs) = (Vec::new(), Vec::new());
    for line in said(&dumped.stdout).lines().filter(|line| line.contains("\"TasksPurged\"")) {
        let record: Value = serde_json::from_str(line).unwrap();
        let ids = |name: &str| record[name].as_array().unwrap().clone();
        tasks.extend(ids("tasks").iter().map(|id| id.as_u64().unwrap()));
        runs.extend(ids("runs").iter().map(|id| id.as_u64().unwrap()));
    }
    (tasks, runs)
}

/// What was forgotten and is in no archive.
fn lost(forgotten: &[u64], archived: &[Value]) -> Vec<u64> {
    let there: BTreeMap<_, _> =
        archived.iter().map(|it| (it["id"].as_u64().unwrap(), it)).collect();
    assert_eq!(there.len(), archived.len(), "each is shown once");
    forgotten.iter().copied().filter(|id| !there.contains_key(id)).collect()
}

#[test]
fn a_folder_that_cannot_be_an_archive_is_refused_at_the_start() {
    let archive = Archive::new("refused");
    fs::write(&archive.0, b"a file").unwrap();
    let refused = |code: i32, words: &str, folder: &str| {
        let ran = Server::run("refused-archive", &["--archive", folder], &[]);
        let stderr = said(&ran.stderr);
        assert_eq!(ran.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(words) && stderr.contains(folder), "{stderr}");
    };
    refused(74, "nothing can be archived in", archive.path());
    let data = server::folder_of("refused-archive");
    fs::create_dir_all(&data).unwrap();
    refused(2, "must not be inside of one another", data.join("a").to_str().unwrap());
    fs::remove_file(&archive.0).unwrap();
    let server = archive.serve("owner", "7d");
    refused(73, "another server archives into", archive.path());
    drop(server);
    refused(73, "the archive of another log", archive.path());
}

#[test]
fn what_is_forgotten_is_in_the_archive_as_the_api_had_shown_it() {
    let archive = Archive::new("story");
    let mut server = archive.serve("story", "7d");
    let definition = "workflow: line\ninitial_node: work\nnodes:\n  - {ref: work, kind: task, \
                      task: {queue: q}}\noutput_mapping: {out: outputs.work}\n";
    assert_eq!(server.put_as("/v1/workflows/line", "application/yaml", definition).0, 201);
    assert_eq!(server.post("/v1/workflows/line/runs", &json!({"input": {}, "key": "r"})).0, 201);
    let pretty = r#"{"queue": "mail", "key": "k", "tags": {"a": "b"}, "max_failures": 1, "payload":
        {"n": 1.50,
         "t": "x\ny"}}"#;
    assert_eq!(server.post_text("/v1/tasks", pretty).0, 201);
    for _ in 0..2 {
        let wanted = json!({"worker": "anna", "queues": ["mail", "q"]});
        let lease = server.post("/v1/leases", &wanted).1["leases"][0].clone();
        let (id, lease) = (lease["task_id"].as_u64().unwrap(), &lease["lease_id"]);
        match id {
            1 => server.post("/v1/tasks/1/complete", &json!({"lease_id": lease, "output": [7]})),
            _ => server.post("/v1/tasks/2/fail", &json!({"lease_id": lease, "reason": "no host"})),
        };
    }
    let expected: Vec<Value> = ["tasks/2", "tasks/1", "runs/1"]
        .iter()
        .map(|path| {
            let mut shown = server.get(&format!("/v1/{path}")).1;
            let mut history = server.get(&format!("/v1/{path}/history")).1;
            // An archive has the whole history, so it has no next page.
            assert_eq!(history.as_object_mut().unwrap().remove("next_cursor"), Some(Value::Null));
            shown["history"] = history;
            shown
        })
        .collect();
    assert_eq!(expected[0]["state"], "FAILED", "{}", expected[0]);
    server.kill();
    server.restart_with(&["--archive", archive.path(), "--retention", "1ms"]);
    wait_until("all is forgotten", || server.get("/v1/runs/1").0 == 404 && finished(&server) == 0);
    let mut found = archive.all(&[]);
    found.sort_by_key(|item| std::cmp::Reverse(item["id"].as_u64()));
    found.extend(archive.all(&["--runs"]));
    for item in &mut found {
        let last = item["history"]["items"].as_array().unwrap().last().unwrap()["lsn"].clone();
        assert_eq!(item["last_lsn"], last);
        assert!(item["archived_at"].is_string(), "{item}");
        for more in ["last_lsn", "archived_at"] {
            item.as_object_mut().unwrap().remove(more);
        }
    }
    assert_eq!(found, expected);
    read_by_others(&archive);
    choose(&archive);
    the_server_says_where(&archive, &server);
}

/// Other programs read the files too.
fn read_by_others(archive: &Archive) {
    let file = &archive.files("tasks")[0];
    let script = format!(
        "set -o pipefail; zstd -dc {} | python3 -c \"
import json, sys
print(sorted((t['id'], t['state'], t['payload']) for t in map(json.loads, sys.stdin) if t['key']))
\"",
        file.display()
    );
    let has = |program| Command::new(program).arg("--version").output().is_ok();
    if !has("zstd") || !has("python3") {
        println!("SKIPPED: zstd or python3 is missing");
        return;
    }
    let ran = Command::new("bash").args(["-c", &script]).output().unwrap();
    let expected = "[(2, 'FAILED', {'n': 1.5, 't': 'x\\ny'})]\n";
    assert_eq!(said(&ran.stdout), expected, "{}", said(&ran.stderr));
}

/// What was asked for is found, and nothing else.
fn choose(archive: &Archive) {
    let count = |args: &[&str]| archive.all(args).len();
    assert_eq!(count(&["--queue", "mail"]), 1);
    assert_eq!(count(&["--state", "failed", "--key", "k", "--since", "1h"]), 1);
    assert_eq!(count(&["--until", "1h"]), 0);
    assert_eq!(count(&["--of-run", "1"]), 1);
    assert_eq!(count(&["--workflow", "line"]), 1);
    assert_eq!(count(&["--workflow", "other"]), 0);
    let table = |args: &[&str]| {
        let ran = tenure(&[&["history", "--archive", archive.path()], args].concat());
        assert_eq!(ran.status.code(), Some(0), "{}", said(&ran.stderr));
        said(&ran.stdout)
    };
    let listed = table(&[]);
    assert!(listed.contains("FAILED") && listed.contains("no host"), "{listed}");
    let task = table(&["--task", "2"]);
    assert!(task.contains("TaskFailed") && task.contains("\"x\\ny\""), "{task}");
    let run = table(&["--run", "1"]);
    assert!(run.contains("the run began") && run.contains("line"), "{run}");
    let missing = tenure(&["history", "--archive", archive.path(), "--task", "99"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(said(&missing.stderr).contains("task 99 is not in the archive"));
    let nowhere = tenure(&["history", "--archive", "no/such/folder"]);
    assert_eq!(nowhere.status.code(), Some(66), "{}", said(&nowhere.stderr));
}

fn the_server_says_where(archive: &Archive, server: &Server) {
    let url = format!("http://{}", server.address);
    let ran = tenure(&["history", "--server", &url, "--task", "1", "-o", "json"]);
    assert_eq!(ran.status.code(), Some(0), "{}", said(&ran.stderr));
    let shown = &server.get("/v1/status").1["archive"];
    assert_eq!((&shown["archived"], &shown["failing"]), (&json!(3), &Value::Null));
    let (folder, there) = (shown["folder"].as_str().unwrap(), archive.0.canonicalize().unwrap());
    assert_eq!(Path::new(folder), there);
    let status = said(&tenure(&["status", "--server", &url]).stdout);
    assert!(status.contains("archived") && status.contains("3 since the start"), "{status}");
    let metrics = server.text("/metrics");
    for line in ["tenure_archive_items_total 3", "tenure_archive_failing_seconds 0.0"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let without = Server::start("no-archive");
    let url = format!("http://{}", without.address);
    let ran = tenure(&["history", "--server", &url]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(said(&ran.stderr).contains("the server has no archive"));
}

#[test]
fn an_archive_that_cannot_be_written_holds_up_forgetting_and_nothing_else() {
    let archive = Archive::new("gone");
    let server = archive.serve("gone", "1ms");
    let away = archive.0.with_extension("away");
    let _ = fs::remove_dir_all(&away);
    fs::rename(&archive.0, &away).unwrap();
    let ids = finish(&server, 30);
    wait_until("it says so", || !server.get("/v1/status").1["archive"]["failing"].is_null());
    assert_eq!(finished(&server), 30, "nothing was forgotten");
    assert_eq!(finish(&server, 10).len(), 10, "work goes on");
    let metrics = server.text("/metrics");
    assert!(!metrics.contains("tenure_archive_failing_seconds 0.0\n"), "{metrics}");
    assert!(!metrics.contains("tenure_archive_failures_total 0\n"), "{metrics}");
    let url = format!("http://{}", server.address);
    let status = said(&tenure(&["status", "--server", &url]).stdout);
    assert!(status.contains("not archived"), "{status}");
    fs::rename(&away, &archive.0).unwrap();
    wait_until("all is forgotten", || finished(&server) == 0);
    assert!(server.get("/v1/status").1["archive"]["failing"].is_null());
    let found = archive.all(&[]);
    assert_eq!((found.len(), lost(&ids, &found)), (40, vec![]));
}

#[test]
fn what_is_damaged_is_named_and_the_rest_is_read() {
    let archive = Archive::new("rot");
    let mut server = archive.serve("rot", "1ms");
    for round in 1..=2 {
        finish(&server, 5);
        wait_until("it is forgotten", || finished(&server) == 0);
        assert_eq!(archive.all(&[]).len(), 5 * round);
    }
    server.kill();
    let file = archive.files("tasks")[0].clone();
    let sound = fs::read(&file).unwrap();
    let mut rotten = sound.clone();
    rotten[20] ^= 1;
    fs::write(&file, &rotten).unwrap();
    let (found, ran) = archive.history(&["--all"]);
    let stderr = said(&ran.stderr);
    assert_eq!((found.len(), ran.status.code()), (5, Some(65)), "{stderr}");
    let name = file.to_str().unwrap();
    assert!(stderr.contains(name) && stderr.contains("at offset 0 "), "{stderr}");
    // Cut off in the middle of the last frame, as a crash would.
    fs::write(&file, &sound[..sound.len() - 3]).unwrap();
    let (found, ran) = archive.history(&["--all"]);
    let stderr = said(&ran.stderr);
    assert_eq!((found.len(), ran.status.code()), (5, Some(0)), "{stderr}");
    assert!(stderr.contains("are not finished"), "{stderr}");
}

/// How many kills there are.
const KILLS: u64 = 12;
const KILLED_TASKS: usize = 400;

#[test]
fn no_kill_forgets_what_is_not_in_the_archive() {
    let archive = Archive::new("killed");
    let args = ["--archive", archive.path(), "--retention", "1ms"];
    let mut server = archive.serve("killed", "1ms");
    let mut ids = Vec::new();
    for kill in 0..KILLS {
        ids.extend(finish(&server, KILLED_TASKS));
        server.kill();
        // A start archives at once what is due. Some are killed at the first sign of that, some soon
        // after it.
        let before = archive.bytes();
        server.restart_with(&args);
        let start = Instant::now();
        while archive.bytes() == before && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(kill * 7_919 % 40));
        server.kill();
        let (tasks, _) = forgotten(&server);
        let (found, ran) = archive.history(&["--all"]);
        assert_eq!(ran.status.code(), Some(0), "kill {kill}: {}", said(&ran.stderr));
        assert_eq!(lost(&tasks, &found), [0; 0], "kill {kill}");
        server.restart_with(&args);
    }
    wait_until("all is forgotten", || finished(&server) == 0);
    server.kill();
    let (tasks, _) = forgotten(&server);
    let found = archive.all(&[]);
    assert_eq!((tasks.len(), found.len()), (ids.len(), ids.len()));
    assert_eq!(lost(&ids, &found), [0; 0]);
    assert!(server.tenure(&["wal", "verify"]).status.success());
    println!("tally: {KILLS} kills, {} forgotten, lost 0", tasks.len());
    // The test of the test: a file that is missing is noticed.
    let files = archive.files("tasks");
    fs::remove_file(&files[0]).unwrap();
    assert_ne!(lost(&tasks, &archive.all(&[])), [0; 0]);
}

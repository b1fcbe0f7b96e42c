//! Large payloads as a user meets them: they take disk and not memory, and come back byte for byte
//! after a kill, from a snapshot, from a backup, and on a disk that has no room for the shelf.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::server::{self, Server};
use serde_json::{Value, json};

const SHELF: &str = "shelf";
const KIB: usize = 1 << 10;

/// A JSON text of about so many bytes that no other task has.
fn text(task: usize, bytes: usize) -> String {
    let mut number = task as u64;
    let next = std::iter::repeat_with(|| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
        char::from(b'a' + (number >> 33) as u8 % 26)
    });
    next.take(bytes).collect()
}

/// Submits so many tasks, in batches that fit a record; gives their ids.
fn submit(server: &Server, count: usize, bytes: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    let all: Vec<_> = (0..count).collect();
    for some in all.chunks((6 << 20) / bytes) {
        let task = |n: &usize| json!({"queue": "large", "payload": text(*n, bytes)});
        let tasks: Vec<_> = some.iter().map(task).collect();
        let (status, answer) = server.post("/v1/tasks/batch", &json!({ "tasks": tasks }));
        assert_eq!(status, 201, "{answer}");
        ids.extend(answer["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()));
    }
    ids
}

fn assert_payloads(server: &Server, ids: &[u64], bytes: usize, every: usize) {
    for (n, id) in ids.iter().enumerate().step_by(every) {
        let (status, task) = server.get(&format!("/v1/tasks/{id}"));
        assert_eq!(status, 200);
        assert!(task["payload"] == text(n, bytes), "the payload of task {id} is another");
    }
}

fn hash(server: &Server) -> Value {
    server.get("/v1/status?hash=true").1["state_hash"].clone()
}

fn metric(server: &Server, name: &str) -> u64 {
    let metrics = server.text("/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}")).trim().parse().unwrap()
}

/// Waits until it is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !is_so() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn json_of(ran: &Output) -> Value {
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn tenure(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure")).args(args).output().unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[test]
fn large_payloads_take_disk_and_not_memory() {
    const TASKS: usize = 600;
    const BYTES: usize = 512 * KIB;
    /// All payloads together are 300 MiB. What is left is the server, recent frames for followers
    /// (32 MiB) and what passes through.
    const MIB_MAX: u64 = 180;
    let mut server = Server::start("large");
    let ids = submit(&server, TASKS, BYTES);
    server.assert_well("after the submits", MIB_MAX);
    assert_eq!(metric(&server, "tenure_shelf_strings"), TASKS as u64);
    assert_eq!(metric(&server, "tenure_shelf_refused_total"), 0);
    assert_payloads(&server, &ids, BYTES, 50);
    let before = hash(&server);
    server.assert_well("after a hash of everything", MIB_MAX);

    server.kill();
    assert!(fs::metadata(server.folder.join(SHELF)).unwrap().len() >= (TASKS * BYTES) as u64);
    server.restart();
    server.assert_well("after a replay", MIB_MAX);
    assert_eq!(hash(&server), before);
    assert_payloads(&server, &ids, BYTES, 7);

    let (status, taken) = server.post("/v1/snapshots", &json!({}));
    assert_eq!((status, &taken["state_hash"]), (200, &before));
    server.assert_well("after a snapshot", MIB_MAX);
    server.kill();
    // Nobody needs what the process before has left.
    fs::remove_file(server.folder.join(SHELF)).unwrap();
    server.restart();
    server.assert_well("after a start from the snapshot", MIB_MAX);
    assert_eq!(hash(&server), before);
    assert_payloads(&server, &ids, BYTES, 31);

    // Whoever asks for all gets as much as fits an answer.
    let (_, page) = server.get("/v1/tasks?limit=1000");
    assert_eq!(page["items"].as_array().unwrap().len(), 2, "a page is cut at its bound");
    let ask = json!({"worker": "w", "queues": ["large"], "max": 100, "lease_ms": 600_000});
    let (_, leased) = server.post("/v1/leases", &ask);
    assert_eq!(leased["leases"].as_array().unwrap().len(), 4, "and so is an answer with leases");
    server.assert_well("after leases and a page", MIB_MAX);
    let doctor = server.tenure(&["doctor", "-o", "json"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("every file belongs here"));
    assert_eq!(server.terminate(), Some(0));
    assert!(!server.folder.join(SHELF).exists(), "an orderly end leaves no scratch");
}

#[test]
fn work_with_large_payloads_is_done_and_its_room_comes_back() {
    const BYTES: usize = 1000 * KIB;
    let args = ["--retention", "1ms"];
    let server = Server::start_with("large-work", &args, &[]);
    for round in 0..10 {
        let ids = submit(&server, 12, BYTES);
        let mut done = 0;
        while done < ids.len() {
            let ask = json!({"worker": "w", "queues": ["large"], "max": 100});
            let (_, leased) = server.post("/v1/leases", &ask);
            for lease in leased["leases"].as_array().unwrap() {
                let id = lease["task_id"].as_u64().unwrap();
                let n = ids.iter().position(|there| *there == id).unwrap();
                assert!(lease["payload"] == text(n, BYTES), "round {round}, task {id}");
                let output = text(n + 1_000, BYTES);
                let report = json!({"lease_id": lease["lease_id"], "output": output});
                let (status, task) = server.post(&format!("/v1/tasks/{id}/complete"), &report);
                assert_eq!((status, &task["state"]), (200, &json!("COMPLETED")));
                assert!(task["output"] == output && task["payload"] == text(n, BYTES));
                done += 1;
            }
        }
        until("finished tasks are purged", || metric(&server, "tenure_shelf_strings") == 0);
    }
    let bytes = fs::metadata(server.folder.join(SHELF)).unwrap().len();
    assert!(bytes < 40 << 20, "the file has {bytes} bytes after rounds of 24 MiB each");
}

#[test]
fn a_shelf_that_was_changed_ends_the_server_and_the_next_start_is_right() {
    const BYTES: usize = 300 * KIB;
    let (mut server, mut stderr) = Server::start_listening("large-changed", &[]);
    let ids = submit(&server, 3, BYTES);
    let before = hash(&server);
    let shelf = OpenOptions::new().read(true).write(true).open(server.folder.join(SHELF)).unwrap();
    let mut byte = [0];
    shelf.read_exact_at(&mut byte, 1_000).unwrap();
    shelf.write_all_at(&[byte[0] ^ 1], 1_000).unwrap();
    let asked = server::agent().get(server::url(&server.address, "/v1/tasks/1")).call();
    assert!(asked.is_err(), "nobody is told what is not so");
    until("the server ends", || server.has_ended());
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("a payload is not what was written"), "{said}");
    assert!(said.contains("start again"), "{said}");
    server.restart();
    assert_eq!(hash(&server), before);
    assert_payloads(&server, &ids, BYTES, 1);
}

#[test]
fn a_backup_has_the_payloads_and_not_the_shelf() {
    const BYTES: usize = 700 * KIB;
    let server = Server::start("large-backup");
    let ids = submit(&server, 20, BYTES);
    assert_eq!(server.post("/v1/snapshots", &json!({})).0, 200);
    submit(&server, 5, BYTES);
    let before = hash(&server);
    let (copy, data) = (folder("large-copy"), folder("large-restored"));
    let url = format!("http://{}", server.address);
    let taken =
        json_of(&tenure(&["backup", copy.to_str().unwrap(), "-o", "json", "--server", &url]));
    assert_eq!(taken["state_hash"], before);
    assert!(!copy.join(SHELF).exists());
    let args = ["restore", copy.to_str().unwrap(), "--data", data.to_str().unwrap(), "-o", "json"];
    assert_eq!(json_of(&tenure(&args))["state_hash"], before);
    let names = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.filter(|name| name.to_string_lossy().contains(SHELF)).collect();
    assert!(names.is_empty(), "{names:?}");
    let again = Server::start_on(data, &[]).unwrap();
    assert_eq!(hash(&again), before);
    assert_payloads(&again, &ids, BYTES, 1);
    assert_eq!(json_of(&again.tenure(&["wal", "verify", "-o", "json"]))["sound"], true);
}

/// A disk of this size, in memory.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(size: &str) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("tenure-large-full-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let disk = Self(folder);
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", size, "tmpfs"]).arg(&disk.0).stdin(Stdio::null());
        match mount.output() {
            Ok(output) if output.status.success() => Ok(disk),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_disk_without_room_for_the_shelf_still_serves() {
    const BYTES: usize = 512 * KIB;
    // Two segments, and more than makes the log refuse new work; but less than the shelf leaves it.
    let disk = match SmallDisk::mount("size=360m") {
        Ok(disk) => disk,
        Err(why) => {
            let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!is_ci, "under CI this must run: {why}");
            return println!("SKIPPED: no small disk can be mounted: {why}");
        }
    };
    let data = disk.0.join("data");
    let mut server = Server::start_on(data, &[]).unwrap();
    let ids = submit(&server, 24, BYTES);
    assert_eq!(metric(&server, "tenure_shelf_strings"), 0);
    assert_eq!(metric(&server, "tenure_shelf_refused_total"), 24);
    assert_payloads(&server, &ids, BYTES, 5);
    let ask = json!({"worker": "w", "queues": ["large"], "max": 1});
    let (_, leased) = server.post("/v1/leases", &ask);
    let lease = &leased["leases"][0];
    let report = json!({"lease_id": lease["lease_id"], "output": text(77, BYTES)});
    let path = format!("/v1/tasks/{}/complete", lease["task_id"]);
    assert_eq!(server.post(&path, &report).0, 200);
    let before = hash(&server);
    server.kill();
    server.restart();
    assert_eq!(hash(&server), before);
    drop(server);
}

//! T8 on the real binary: the disk is full, files may not grow, descriptors are gone, lines cannot be
//! written. P13: a write that fails ends the server with a sentence. P14: on a full disk new work is
//! refused, and what was accepted goes on. P15: clients cannot take what the log needs, nor all memory.
#![allow(clippy::unwrap_used, clippy::panic)]

mod evidence;
mod server;

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use server::{Server, TENURE, folder_of};

/// Nothing in these tests takes so long.
const LONG: Duration = Duration::from_secs(60);
const WRITE_FAILED: i32 = 74;
const GET: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// Room for a segment, its spare, what is kept free, and a little more.
const SMALL_DISK_BYTES: u64 = 320 << 20;

/// A disk in memory that can be filled.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount() -> Result<Self, String> {
        let disk = Self(folder_of("small-disk"));
        std::fs::create_dir_all(&disk.0).unwrap();
        let size = format!("size={SMALL_DISK_BYTES}");
        let mut mount = Command::new("mount");
        match mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&disk.0).output() {
            Ok(output) if output.status.success() => Ok(disk),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Takes all room that is left.
    fn fill(&self) -> PathBuf {
        let ballast = self.0.join("ballast");
        let mut file = File::create(&ballast).unwrap();
        for piece in [1 << 20, 1 << 12, 1] {
            while file.write_all(&vec![1; piece]).is_ok() {}
        }
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Runs the server through a shell that changes something first.
fn through_shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn submit(server: &Server) -> (u16, Value) {
    server.post("/v1/tasks", &json!({"queue": "q", "lease_ms": 600_000}))
}

fn lease(server: &Server) -> Value {
    let body = json!({"worker": "w", "queues": ["q"]});
    server.post("/v1/leases", &body).1["leases"][0].clone()
}

fn report(server: &Server, lease: &Value, verb: &str) -> u16 {
    let path = format!("/v1/tasks/{}/{verb}", lease["task_id"]);
    server.post(&path, &json!({"lease_id": lease["lease_id"]})).0
}

#[test]
fn a_copy_that_runs_out_of_room_leaves_nothing_and_one_that_has_none_is_not_begun() {
    let disk = match SmallDisk::mount() {
        Ok(disk) => disk,
        Err(why) => return evidence::skipped(&format!("a disk cannot be mounted: {why}")),
    };
    let server = Server::start("no-room");
    let payload = "x".repeat(500_000);
    for _ in 0..4 {
        assert_eq!(server.post("/v1/tasks", &json!({"queue": "q", "payload": payload})).0, 201);
    }
    let copy = disk.0.join("copy");
    let back_up = |limit: &str| {
        let script = format!("{limit}; exec \"$0\" backup \"$1\" --server \"$2\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, TENURE]).arg(&copy).arg(format!("http://{}", server.address));
        let ran = shell.output().unwrap();
        assert_eq!(ran.status.code(), Some(WRITE_FAILED));
        assert!(!copy.exists() && !copy.with_extension("part").exists(), "nothing is left of it");
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    let said = back_up("ulimit -f 100");
    assert!(said.contains("the server goes on"), "{said}");
    disk.fill();
    let said = back_up("true");
    assert!(said.contains("has 0 free") && said.contains("nothing was copied"), "{said}");
    assert_eq!(submit(&server).0, 201);
}

/// T8; P14.
#[test]
fn on_a_full_disk_new_work_is_refused_and_workers_are_heard() {
    let disk = match SmallDisk::mount() {
        Ok(disk) => disk,
        Err(why) => return evidence::skipped(&format!("a disk cannot be mounted: {why}")),
    };
    let mut server = Server::start_on(disk.0.join("data"), &[]).unwrap();
    for _ in 0..20 {
        assert_eq!(submit(&server).0, 201);
    }
    let held = lease(&server);
    let ballast = disk.fill();
    wait_for("new work is refused", || submit(&server).0 == 507);
    let (_, refused) = submit(&server);
    assert_eq!(refused["code"], "disk_full");
    let mut done = 0;
    assert_eq!(report(&server, &held, "complete"), 200, "what is accepted goes on");
    for _ in 0..10 {
        let held = lease(&server);
        assert_eq!(report(&server, &held, "heartbeat"), 200);
        assert_eq!(report(&server, &held, "complete"), 200);
        done += 1;
    }
    assert_eq!(server.get("/v1/tasks/1").1["state"], "COMPLETED");
    std::fs::remove_file(&ballast).unwrap();
    wait_for("it recovers by itself", || submit(&server).0 == 201);
    server.kill();
    let folder = server.keep_folder();
    let mut server = Server::start_on(folder, &[]).unwrap();
    let tasks = server.get("/v1/status").1["tasks"].clone();
    assert_eq!(tasks["COMPLETED"], 1 + done, "{tasks}");
    server.kill();
    assert!(server.tenure(&["wal", "verify"]).status.success());
    evidence::print("T8", &[("full disks", 1), ("lost", 0), ("completed while full", 1 + done)]);
}

/// T8; P13. A limit from outside is an error like any other, and is told.
#[test]
fn files_that_may_not_grow_end_the_server_with_a_sentence() {
    if evidence::lacks("prlimit") {
        return;
    }
    let folder = folder_of("small-files");
    let output = Command::new("prlimit")
        .args(["--fsize=10000000", env!("CARGO_BIN_EXE_tenure"), "serve", "--log", "quiet"])
        .args(["--listen", "127.0.0.1:0", "--data"])
        .arg(&folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(WRITE_FAILED), "{said}");
    assert!(said.contains("File too large"), "{said}");
    let _ = std::fs::remove_dir_all(&folder);
    // The same while it runs: the segment is there already, and the next one cannot be made.
    let mut server = Server::start("small-files");
    let mut limit = Command::new("prlimit");
    let limited = limit.args(["--pid", &server.pid().to_string(), "--fsize=10000000:10000000"]);
    assert!(limited.status().unwrap().success());
    let large = json!({"payload": "x".repeat(1_000_000)}).to_string();
    let mut taken = 0;
    let code = loop {
        let post = server::agent().post(server::url(&server.address, "/v1/tasks"));
        match post.content_type(server::JSON).send(&large) {
            Ok(answer) if answer.status().as_u16() == 201 => taken += 1,
            Ok(_) | Err(_) => {}
        }
        if let Some(code) = server.exit_code() {
            break code;
        }
        assert!(taken < 300, "a segment is larger than that");
    };
    assert_eq!(code, WRITE_FAILED);
    server.restart();
    let tasks = server.get("/v1/status").1["tasks"].clone();
    assert!(tasks["WAITING"].as_u64().unwrap() >= taken, "{taken} were taken: {tasks}");
    evidence::print("T8", &[("limits of files met", 2), ("lost", 0), ("acknowledged", taken)]);
}

/// T8; P15.
#[test]
fn clients_cannot_take_the_descriptors_that_the_log_needs() {
    let few = through_shell("ulimit -n 128 && exec \"$0\" \"$@\"");
    let mut server = Server::start_under("few-files", &few).unwrap();
    let agent = server::agent();
    let address = server.address.clone();
    // A connection is used again when its answer was read.
    let read = |answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>| {
        let mut answer = answer.ok()?;
        answer.body_mut().read_to_string().ok()?;
        Some(answer.status().as_u16())
    };
    assert_eq!(read(agent.get(server::url(&address, "/readyz")).call()), Some(200));
    let mut crowd = Vec::new();
    // More than one segment, over the connection that was there first.
    for n in 0..90 {
        if n % 10 == 0 {
            // Idle ones are let go after a while, so that there must be new ones.
            crowd.extend((0..100).filter_map(|_| TcpStream::connect(&address).ok()));
        }
        let large = json!({"queue": "q", "payload": "x".repeat(1_000_000)}).to_string();
        let post = agent.post(server::url(&address, "/v1/tasks")).content_type(server::JSON);
        let status = read(post.send(&large));
        assert_eq!(status, Some(201), "task {n}; the server ended: {:?}", server.exit_code());
    }
    let connections = crowd.len() as u64;
    drop(crowd);
    wait_for("it takes new connections again", || {
        read(server::agent().get(server::url(&address, "/readyz")).call()) == Some(200)
    });
    server.kill();
    server.restart();
    assert_eq!(server.get("/v1/status").1["tasks"]["WAITING"], 90);
    evidence::print("T8", &[("connections beyond descriptors", connections), ("lost", 0)]);
}

fn metric(server: &Server, name: &str) -> u64 {
    let metrics = server.text("/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("there is no {name}")).trim().parse().unwrap()
}

/// T8; P15. Followers share what is decoded, and those that were let go are counted.
/// What the kernel holds for the server's connections because no reader has acknowledged it: for the
/// one with the most, and for all.
fn unsent_bytes(server: &Server) -> (u64, u64) {
    let port = server.address.rsplit(':').next().unwrap().parse::<u16>().unwrap();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let held = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_ours = fields.next()?.ends_with(&format!(":{port:04X}"));
        let (sent, _) = fields.nth(2)?.split_once(':')?;
        is_ours.then(|| u64::from_str_radix(sent, 16).unwrap())
    });
    held.fold((0, 0), |(most, all), bytes| (most.max(bytes), all + bytes))
}

#[test]
fn silent_followers_cost_little_and_are_counted_when_they_are_let_go() {
    const FOLLOWERS: u64 = 300;
    let server = Server::start("followers");
    let batch = json!({"tasks": vec![json!({"queue": "q"}); 2_000]});
    let fill = || {
        let begun = Instant::now();
        for _ in 0..10 {
            assert!(server.post("/v1/tasks/batch", &batch).0 < 300);
        }
        begun.elapsed()
    };
    let alone = fill();
    let before = server.memory_mib();
    let silent: Vec<TcpStream> = (0..FOLLOWERS)
        .map(|_| {
            let mut stream = server.connect();
            let host = &server.address;
            write!(stream, "GET /v1/events?after=0 HTTP/1.1\r\nhost: {host}\r\n\r\n").unwrap();
            stream
        })
        .collect();
    wait_for("all follow", || metric(&server, "tenure_subscribers") == FOLLOWERS);
    let followed = fill();
    let after = server.memory_mib();
    println!("submits took {alone:?} alone and {followed:?} followed; {before} to {after} MiB");
    // On a busy machine many decode at once, and the allocator returns that with a delay. Followers
    // that share nothing take 5 MB each.
    assert!(after < before + 300, "{FOLLOWERS} followers: {before} MiB before, {after} MiB now");
    let held = metric(&server, "tenure_memory_used_bytes{pool=\"subscribers\"}");
    assert!(held < 64 << 20, "{held} bytes of updates wait");
    // Each could read 10 MB. What a reader has not acknowledged waits in the kernel, beside its window.
    let unsent = unsent_bytes(&server);
    println!("the kernel holds {} KiB at most, {} KiB in all", unsent.0 >> 10, unsent.1 >> 10);
    assert!(unsent.0 > 0, "it holds something for those that do not read");
    assert!(unsent.0 < 512 << 10, "it holds {} bytes for one connection", unsent.0);
    let begun = Instant::now();
    while metric(&server, "tenure_subscribers_dropped_total") < FOLLOWERS {
        assert!(begun.elapsed() < 3 * LONG, "those that do not read are let go, and counted");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(metric(&server, "tenure_subscribers_dropped_total"), FOLLOWERS);
    drop(silent);
}

/// A control group of its own inside of ours, which limits memory.
struct SmallGroup(PathBuf);

impl SmallGroup {
    fn make(bytes: u64) -> Result<Self, String> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").map_err(|e| e.to_string())?;
        let v1 = groups.lines().find_map(|line| line.split_once(":memory:"));
        let v2 = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let (root, ours, file) = match (v1, v2) {
            (Some((_, ours)), _) => ("/sys/fs/cgroup/memory", ours, "memory.limit_in_bytes"),
            (None, Some(ours)) => ("/sys/fs/cgroup", ours, "memory.max"),
            (None, None) => return Err("there are no control groups".to_owned()),
        };
        let ours = PathBuf::from(root).join(ours.trim_start_matches('/'));
        let group = Self(ours.join(format!("tenure-test-{}", std::process::id())));
        std::fs::create_dir(&group.0).map_err(|error| error.to_string())?;
        std::fs::write(group.0.join(file), bytes.to_string()).map_err(|e| e.to_string())?;
        Ok(group)
    }

    /// How often the kernel has ended a process in it.
    fn kills(&self) -> u64 {
        let files = ["memory.events", "memory.oom_control"].map(|file| self.0.join(file));
        let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok()).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.unwrap().trim().parse().unwrap()
    }
}

impl Drop for SmallGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// T8; P15. The kernel never has to end a server whose clients bring more than its memory holds.
#[test]
fn in_a_small_control_group_new_work_is_refused_before_memory_runs_out() {
    const LIMIT: u64 = 256 << 20;
    let group = match SmallGroup::make(LIMIT) {
        Ok(group) => group,
        Err(why) => return evidence::skipped(&format!("a control group cannot be made: {why}")),
    };
    let procs = group.0.join("cgroup.procs");
    let enter = format!("echo $$ > {} && exec \"$0\" \"$@\"", procs.display());
    let mut server = Server::start_under("small-group", &through_shell(&enter)).unwrap();
    let memory = server.get("/v1/status").1["memory"].clone();
    assert_eq!(memory["max_bytes"], LIMIT / 100 * 80, "{memory}");
    let task = json!({"queue": "q", "lease_ms": 600_000, "payload": "x".repeat(60_000)});
    let batch = json!({"tasks": vec![task; 10]});
    let mut taken = 0;
    let (status, refused) = loop {
        let answer = server.post("/v1/tasks/batch", &batch);
        if answer.0 >= 300 {
            break answer;
        }
        taken += 10;
        assert!(taken < 10_000, "600 MB were taken");
    };
    assert_eq!((status, &refused["code"]), (507, &json!("memory_full")), "{refused}");
    let held = lease(&server);
    assert_eq!(report(&server, &held, "complete"), 200, "what is accepted goes on");
    assert_eq!((group.kills(), server.has_ended()), (0, false));
    let mib = server.memory_mib();
    println!("{taken} tasks of 60,000 bytes were taken; {mib} MiB are held");
    server.kill();
    evidence::print("T8", &[("memory budgets met", 1), ("killed by the kernel", 0)]);
}

/// T8. Lines are for people; work goes on without them.
#[test]
fn lines_that_cannot_be_written_are_let_go() {
    let unheard = through_shell("exec \"$0\" \"$@\" --log-format json 2> /dev/full");
    let mut server = Server::start_under("unheard", &unheard).unwrap();
    assert_eq!(submit(&server).0, 201);
    let held = lease(&server);
    assert_eq!(report(&server, &held, "complete"), 200);
    assert_eq!(server.terminate(), Some(0));
}

/// P15.
#[test]
fn ten_thousand_idle_connections_leave_it_responsive() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const IDLE: usize = 10_000;
    let wanted = IDLE as u64 + 2_000;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let maximum = limit.maximum.map(|maximum| maximum.max(wanted));
        let raised = Rlimit { current: Some(wanted), maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            println!("SKIPPED: {wanted} descriptors cannot be had: {error}");
            return;
        }
    }
    let server = Server::start("idle");
    let before = server.memory_mib();
    let mut idle: Vec<_> = (0..IDLE - 100).map(|_| server.connect()).collect();
    server.assert_well("idle connections", before + 300);
    let begun = Instant::now();
    assert_eq!(server.post("/v1/tasks", &json!({})).0, 201);
    assert!(begun.elapsed() < Duration::from_secs(10), "it answers");
    // Those beyond the limit are served, and the longest idle ones are closed for them.
    idle.extend((0..300).map(|_| server.connect()));
    let mut last = idle.pop().unwrap();
    last.write_all(GET).unwrap();
    assert!(last.read(&mut [0; 12]).unwrap() > 0, "the newest is answered");
    assert_eq!(idle[0].read(&mut [0]).unwrap_or(0), 0, "the oldest is closed");
    drop(idle);
    let begun = Instant::now();
    let is_free = |server: &Server| {
        TcpStream::connect(&server.address).is_ok_and(|mut stream| {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
            stream.write_all(GET).is_ok() && stream.read(&mut [0; 8]).is_ok_and(|size| size > 0)
        })
    };
    while !is_free(&server) {
        assert!(begun.elapsed() < Duration::from_secs(60), "places are given back");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.assert_well("after idle connections", before + 300);
}

//! A worker in a process of its own, and what tests ask about tasks and processes.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::Server;

/// Nothing in these tests takes so long.
pub(crate) const LONG: Duration = Duration::from_secs(90);

const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

/// A worker that goes away with its test.
pub(crate) struct Worker {
    child: Child,
    log: PathBuf,
}

impl Worker {
    /// An exec worker on the queue `default`.
    pub(crate) fn exec(server: &Server, args: &[&str]) -> Self {
        Self::start(server, "exec", args, &[])
    }

    pub(crate) fn start(server: &Server, kind: &str, args: &[&str], envs: &[(&str, &str)]) -> Self {
        let mut command = Command::new(TENURE);
        command.args(["worker", kind, "--queue", "default"]).args(args);
        Self::spawn(server, command.envs(envs.iter().copied()))
    }

    /// An exec worker that may open so many files.
    pub(crate) fn with_files(server: &Server, files: u32, args: &[&str]) -> Self {
        let script = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, TENURE, "worker", "exec", "--queue", "default"]).args(args);
        Self::spawn(server, &mut command)
    }

    /// An exec worker whose stderr nobody reads any more.
    pub(crate) fn unheard(server: &Server) -> Self {
        let mut command = Command::new("sh");
        let script = "exec \"$0\" worker exec --queue default 2> /dev/full";
        Self::spawn(server, command.args(["-c", script, TENURE]))
    }

    fn spawn(server: &Server, command: &mut Command) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("worker-{}-{number}.log", std::process::id()));
        command.env("TENURE_SERVER", format!("http://{}", server.address));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        Self { child: command.spawn().unwrap(), log }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for it to end by itself, and gives its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < LONG, "the worker does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the worker said:\n{}", self.log());
        }
        let _ = std::fs::remove_file(&self.log);
    }
}

pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Waits for something that must come.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < LONG, "this never came: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process works no more: it is gone, or waits to be reaped.
pub(crate) fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

/// A file for what a child says about itself.
pub(crate) struct Note(PathBuf);

impl Note {
    pub(crate) fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("note-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap_or_default()
    }

    /// Numbers that children write, one to a line, when there are so many.
    pub(crate) fn pids(&self, count: usize) -> Vec<u32> {
        eventually("the children's numbers", || {
            let text = self.text();
            // The last line is whole when its end is there.
            let whole = text.ends_with('\n') && text.lines().count() >= count;
            whole.then(|| text.lines().map(|line| line.trim().parse().unwrap()).collect())
        })
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Server {
    /// Submits with a short backoff, and gives the id.
    pub(crate) fn submit(&self, payload: &Value) -> u64 {
        self.submit_with(payload, &json!({}))
    }

    pub(crate) fn submit_with(&self, payload: &Value, more: &Value) -> u64 {
        let backoff = json!({"kind": "fixed", "initial_ms": 1, "max_ms": 1, "jitter": 0});
        let mut body = json!({"payload": payload, "backoff": backoff});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, task) = self.post("/v1/tasks", &body);
        assert_eq!(status, 201, "{task}");
        task["id"].as_u64().unwrap()
    }

    pub(crate) fn sh(&self, script: &str) -> u64 {
        self.submit(&json!({"argv": ["sh", "-c", script]}))
    }

    pub(crate) fn task(&self, id: u64) -> Value {
        self.get(&format!("/v1/tasks/{id}")).1
    }

    /// A task that has ended.
    pub(crate) fn ended(&self, id: u64) -> Value {
        eventually("the task's end", || {
            let (status, task) = self.get(&format!("/v1/tasks/{id}?wait_ms=10000"));
            assert_eq!(status, 200);
            (!task["finished_at"].is_null()).then_some(task)
        })
    }

    pub(crate) fn cancel(&self, id: u64) -> u16 {
        self.post(&format!("/v1/tasks/{id}/cancel"), &json!({})).0
    }

    /// The names of a task's events, oldest first.
    pub(crate) fn events(&self, id: u64) -> Vec<String> {
        let (_, history) = self.get(&format!("/v1/tasks/{id}/history"));
        let items = history["items"].as_array().unwrap();
        items.iter().map(|item| item["event"].as_str().unwrap().to_owned()).collect()
    }

    /// Judges each task's history by other eyes than the server's, then the whole log.
    pub(crate) fn check_all(mut self, ids: &[u64]) {
        for id in ids {
            self.check_history(*id);
        }
        assert_eq!(self.terminate(), Some(0));
        let verified = self.tenure(&["wal", "verify"]);
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    }

    fn check_history(&self, id: u64) {
        let (_, history) = self.get(&format!("/v1/tasks/{id}/history"));
        let items = history["items"].as_array().unwrap();
        let (mut last_lease, mut state, mut ends) = (0, Value::Null, 0);
        for item in items {
            assert_eq!(item["from"], state, "task {id}: {history:#}");
            state = item["to"].clone();
            if item["event"] == "LeaseGranted" {
                let lease = item["lease_id"].as_u64().unwrap();
                assert!(lease > last_lease && ends == 0, "task {id}: {history:#}");
                last_lease = lease;
            }
            let is_end =
                ["COMPLETED", "FAILED", "DEAD", "CANCELED"].iter().any(|end| state == *end);
            ends += u32::from(is_end && item["from"] != item["to"]);
        }
        assert_eq!(ends, 1, "task {id} ends once: {history:#}");
    }
}

//! T12: the wall clock is set, by seconds and by years, while the server runs and while it is down.
//! P4: no two leases hold at once, and their ids grow. P7: no lease ends before its time, and none
//! that is over comes back. P17: what is scheduled is neither lost nor done twice.
#![allow(clippy::unwrap_used, clippy::panic)]

mod evidence;
mod server;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use server::{Server, folder_of};

/// How long an abandoned lease lasts, and how long a delayed task waits.
const SPAN: Duration = Duration::from_millis(700);
/// The server counts whole milliseconds.
const CLOCK: Duration = Duration::from_millis(5);
/// Nothing in this test takes so long.
const LONG: Duration = Duration::from_secs(60);
const YEAR: i64 = 365 * 86_400;

/// When the clock is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Running,
    Down,
}

/// Where the clock stands after each jump, in seconds from the true time.
const JUMPS: [(i64, When); 12] = [
    (5, When::Running),
    (-5, When::Running),
    (60, When::Running),
    (-3_600, When::Running),
    (3_600, When::Running),
    (-86_400, When::Down),
    (30 * 86_400, When::Running),
    (-YEAR, When::Running),
    (10 * YEAR, When::Running),
    (0, When::Running),
    (2 * 86_400, When::Down),
    (-2 * YEAR, When::Down),
];
/// By then every appointment is due.
const END_OF_TIME: i64 = 20 * YEAR;

/// A server whose wall clock can be set.
struct World {
    server: Server,
    folder: PathBuf,
    runner: Vec<String>,
    offset_s: i64,
}

impl World {
    fn begin() -> Self {
        let folder = folder_of("clock");
        let _ = std::fs::remove_dir_all(&folder);
        let (clock, lines) = (folder.with_extension("clock"), folder.with_extension("lines"));
        let mut faketime = Command::new("faketime");
        let preload = faketime.args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"]).output().unwrap();
        let preload = String::from_utf8(preload.stdout).unwrap();
        let run = format!(
            "exec env LD_PRELOAD='{}' FAKETIME_TIMESTAMP_FILE='{}' FAKETIME_NO_CACHE=1 \
             FAKETIME_DONT_FAKE_MONOTONIC=1 \"$0\" \"$@\" 2>> '{}'",
            preload.trim(),
            clock.display(),
            lines.display()
        );
        std::fs::write(&clock, "+0").unwrap();
        let _ = std::fs::remove_file(&lines);
        let runner = vec!["sh".to_owned(), "-c".to_owned(), run];
        let server = Server::start_on(folder.clone(), &runner).unwrap();
        Self { server, folder, runner, offset_s: 0 }
    }

    fn set_clock(&mut self, offset_s: i64) {
        let clock = self.folder.with_extension("clock");
        // Whole or not at all: the server may look at any time.
        let new = clock.with_extension("new");
        std::fs::write(&new, format!("{offset_s:+}")).unwrap();
        std::fs::rename(&new, &clock).unwrap();
        self.offset_s = offset_s;
    }

    /// How often a jump was reported.
    fn reports(&self) -> usize {
        let lines = std::fs::read_to_string(self.folder.with_extension("lines")).unwrap();
        lines.matches("the wall clock jumped by").count()
    }

    /// Sets the clock, and waits until it was noticed.
    fn jump(&mut self, offset_s: i64, when: When) {
        match when {
            When::Running => {
                let before = self.reports();
                self.set_clock(offset_s);
                let set_at = Instant::now();
                while self.reports() == before {
                    assert!(set_at.elapsed() < LONG, "a jump to {offset_s} is reported");
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            When::Down => {
                self.server.kill();
                self.server.keep_folder();
                self.set_clock(offset_s);
                self.server = Server::start_on(self.folder.clone(), &self.runner).unwrap();
            }
        }
    }

    /// The moment that the server takes for now and a little more, as it is written.
    fn soon(&self) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let ms = now.as_millis() as i64 + self.offset_s * 1_000 + 300;
        jiff::Timestamp::from_millisecond(ms).unwrap().to_string()
    }

    fn submit(&self, mut task: Value, queue: &str) -> u64 {
        task["queue"] = json!(queue);
        let (status, task) = self.server.post("/v1/tasks", &task);
        assert_eq!(status, 201, "{task}");
        task["id"].as_u64().unwrap()
    }

    fn lease(&self, queue: &str) -> Option<Value> {
        let body = json!({"worker": "w", "queues": [queue], "wait_ms": 100});
        let (status, leases) = self.server.post("/v1/leases", &body);
        assert_eq!(status, 200, "{leases}");
        leases["leases"].as_array().unwrap().first().cloned()
    }

    /// Waits for a lease from a queue.
    fn leased(&self, queue: &str) -> Value {
        let begun = Instant::now();
        loop {
            if let Some(lease) = self.lease(queue) {
                return lease;
            }
            assert!(begun.elapsed() < LONG, "{queue} is offered some day");
        }
    }

    fn report(&self, lease: &Value, verb: &str) -> (u16, Value) {
        let path = format!("/v1/tasks/{}/{verb}", lease["task_id"]);
        self.server.post(&path, &json!({"lease_id": lease["lease_id"]}))
    }

    /// One task of each kind, before and after the clock is set. Gives the one with an appointment.
    fn live_through(&mut self, number: usize, offset_s: i64, when: When) -> u64 {
        let queue = |kind: &str| format!("{kind}-{number}");
        let what = format!("jump {number} to {offset_s} s, {when:?}");
        self.submit(json!({"lease_ms": SPAN.as_millis() as u64}), &queue("abandoned"));
        self.submit(json!({"lease_ms": 3_600_000}), &queue("held"));
        let appointed = self.submit(json!({"run_at": self.soon()}), &queue("appointed"));
        let held = self.leased(&queue("held"));
        let abandoned_at = Instant::now();
        let abandoned = self.leased(&queue("abandoned"));
        let delayed_at = Instant::now();
        let delayed = self.submit(json!({"delay_ms": SPAN.as_millis() as u64}), &queue("delayed"));
        self.jump(offset_s, when);
        // A server that was down cannot tell a clock that was set from time that went by.
        let check_span = |since: Instant| {
            let is_over = since.elapsed() + CLOCK >= SPAN;
            assert!(is_over || when == When::Down, "{what}: too early");
        };
        let again = self.leased(&queue("abandoned"));
        check_span(abandoned_at);
        let late = self.leased(&queue("delayed"));
        check_span(delayed_at);
        assert!(again["lease_id"].as_u64() > abandoned["lease_id"].as_u64(), "{what}: P4");
        for verb in ["heartbeat", "complete"] {
            let (status, refused) = self.report(&abandoned, verb);
            assert_eq!((status, &refused["code"]), (409, &json!("lease_lost")), "{what}: {verb}");
        }
        assert_eq!(late["task_id"], delayed, "{what}");
        for lease in [&again, &late] {
            assert_eq!(self.report(lease, "complete").0, 200, "{what}");
        }
        // An hour is over for who was down while the clock was set ahead by more.
        if when == When::Running {
            let (status, extended) = self.report(&held, "heartbeat");
            assert_eq!(status, 200, "{what}: a lease that holds goes on: {extended}");
            assert!(extended["expires_at"].as_str() >= held["expires_at"].as_str(), "{what}");
            assert!(self.lease(&queue("held")).is_none(), "{what}: two leases");
            assert_eq!(self.report(&held, "complete").0, 200, "{what}");
        }
        assert!(self.lease(&queue("delayed")).is_none(), "{what}: a delay ends once");
        appointed
    }

    /// A task with an appointment was offered once.
    fn keep(&self, number: usize, appointed: u64) {
        let queue = format!("appointed-{number}");
        let lease = self.leased(&queue);
        assert_eq!((&lease["task_id"], &lease["attempt"]), (&json!(appointed), &json!(1)));
        assert_eq!(self.report(&lease, "complete").0, 200);
        assert!(self.lease(&queue).is_none(), "an appointment is kept once");
        let (_, history) = self.server.get(&format!("/v1/tasks/{appointed}/history"));
        let events: Vec<_> = history["items"].as_array().unwrap().iter().collect();
        let events: Vec<_> = events.iter().map(|item| item["event"].as_str().unwrap()).collect();
        assert_eq!(events, ["TaskCreated", "LeaseGranted", "TaskCompleted"]);
    }
}

/// T12; P4, P7, P17.
#[test]
fn no_jump_of_the_clock_makes_two_leases_or_loses_or_doubles_a_task() {
    if evidence::lacks("faketime") {
        return;
    }
    let mut world = World::begin();
    let mut appointed = Vec::new();
    for (number, (offset_s, when)) in JUMPS.into_iter().enumerate() {
        appointed.push(world.live_through(number, offset_s, when));
    }
    world.jump(END_OF_TIME, When::Running);
    for (number, task) in appointed.into_iter().enumerate() {
        world.keep(number, task);
    }
    world.server.kill();
    let verified = world.server.tenure(&["wal", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
    for extension in ["clock", "lines"] {
        let _ = std::fs::remove_file(world.folder.with_extension(extension));
    }
    let jumps = JUMPS.len() as u64;
    evidence::print(
        "T12",
        &[("clock jumps", jumps), ("two leases", 0), ("lost", 0), ("doubled", 0)],
    );
}

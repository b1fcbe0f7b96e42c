//! T12: the wall clock is set, by seconds and by years, while the server runs and while it is down.
//! P4: no two leases hold at once, and their ids grow. P7: no lease ends before its time, and none
//! that is over comes back. P17: what is scheduled is neither lost nor done twice.
#![allow(clippy::unwrap_used, clippy::panic)]

mod evidence;
mod server;

use std::io::{BufRead, BufReader, Read, Write};
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
/// No clock was ever right that showed this.
const BEFORE_1970: i64 = -100 * YEAR;
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
    fn begin(name: &str, offset_s: i64) -> Self {
        let folder = folder_of(name);
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
        std::fs::write(&clock, format!("{offset_s:+}")).unwrap();
        let _ = std::fs::remove_file(&lines);
        let runner = vec!["sh".to_owned(), "-c".to_owned(), run];
        let server = Server::start_on(folder.clone(), &runner).unwrap();
        Self { server, folder, runner, offset_s }
    }

    fn set_clock(&mut self, offset_s: i64) {
        let clock = self.folder.with_extension("clock");
        // Whole or not at all: the server may look at any time.
        let new = clock.with_extension("new");
        std::fs::write(&new, format!("{offset_s:+}")).unwrap();
        std::fs::rename(&new, &clock).unwrap();
        self.offset_s = offset_s;
    }

    fn lines(&self) -> String {
        std::fs::read_to_string(self.folder.with_extension("lines")).unwrap()
    }

    fn clean_up(&self) {
        for extension in ["clock", "lines"] {
            let _ = std::fs::remove_file(self.folder.with_extension(extension));
        }
    }

    /// How often a jump was reported.
    fn reports(&self) -> usize {
        self.lines().matches("the wall clock jumped by").count()
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
        self.moment_in(300)
    }

    /// What the server's wall clock says in so many milliseconds, as it is written.
    fn moment_in(&self, ms: i64) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let ms = now.as_millis() as i64 + self.offset_s * 1_000 + ms;
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
            let end = (self.moment_in(3_590_000), self.moment_in(3_600_000));
            let shown = extended["expires_at"].as_str().unwrap();
            assert!(end.0.as_str() < shown && shown <= end.1.as_str(), "{what}: {extended}");
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

impl World {
    /// Begins a run of a workflow that only waits.
    fn begin_waiting(&self, name: &str, timer: &Value) -> u64 {
        let workflow = json!({
            "workflow": name,
            "initial_node": "wait",
            "nodes": [{"ref": "wait", "kind": "timer", "timer": timer}],
        });
        let (status, said) = self.server.put(&format!("/v1/workflows/{name}"), &workflow);
        assert_eq!(status, 201, "{said}");
        let input = json!({"input": {"at": self.moment_in(3_600_000)}});
        let (status, run) = self.server.post(&format!("/v1/workflows/{name}/runs"), &input);
        assert_eq!(status, 201, "{run}");
        run["id"].as_u64().unwrap()
    }

    /// The state of a run once it has ended, or as it is after a while.
    fn run_state(&self, run: u64, wait_ms: u64) -> Value {
        self.server.get(&format!("/v1/runs/{run}?wait_ms={wait_ms}")).1["state"].clone()
    }
}

impl World {
    /// A moment as the server shows it is within a few seconds of what its wall clock says in so
    /// many milliseconds.
    fn is_near(&self, shown: &Value, ms: i64) {
        let (from, to) = (self.moment_in(ms - 10_000), self.moment_in(ms + 10_000));
        let shown = shown.as_str().unwrap_or_else(|| panic!("no moment: {shown}"));
        assert!(from.as_str() < shown && shown < to.as_str(), "{shown} is not near {from}");
    }

    /// A task that lives while log time is ahead shows the wall clock everywhere, and shows it again
    /// after a restart.
    fn shows_the_true_time(&mut self) {
        let task = self.submit(json!({"lease_ms": 60_000}), "today");
        let lease = self.leased("today");
        self.is_near(&lease["expires_at"], 60_000);
        let path = format!("/v1/tasks/{task}");
        let (_, shown) = self.server.get(&path);
        self.is_near(&shown["lease"]["expires_at"], 60_000);
        assert_eq!(self.report(&lease, "complete").0, 200);
        let delayed = self.submit(json!({"delay_ms": 3_600_000}), "later");
        let (_, later) = self.server.get(&format!("/v1/tasks/{delayed}"));
        self.is_near(&later["run_at"], 3_600_000);
        let (_, shown) = self.server.get(&path);
        for moment in ["created_at", "started_at", "finished_at"] {
            self.is_near(&shown[moment], 0);
        }
        let (_, history) = self.server.get(&format!("{path}/history"));
        history["items"].as_array().unwrap().iter().for_each(|item| self.is_near(&item["at"], 0));
        self.server.kill();
        let dump = self.server.tenure(&["wal", "dump"]);
        let dump = String::from_utf8(dump.stdout).unwrap();
        let last: Value = serde_json::from_str(dump.lines().last().unwrap()).unwrap();
        self.is_near(&last["at"], 0);
        assert!(last["log_at"].as_str().unwrap() > self.moment_in(29 * YEAR * 1_000).as_str());
        self.server.keep_folder();
        self.server = Server::start_on(self.folder.clone(), &self.runner).unwrap();
        let (_, again) = self.server.get(&path);
        assert_eq!(again, shown, "a task shows the same times after a restart");
        let mut stream = self.server.connect();
        write!(stream, "GET /v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let events = BufReader::new(stream).lines().map(Result::unwrap);
        let events = events.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
        let events = events.map(|text| serde_json::from_str::<Value>(&text).unwrap());
        let of_today = events.filter(|event| event["task_id"] == task).take(3);
        assert_eq!(of_today.inspect(|event| self.is_near(&event["at"], 0)).count(), 3);
    }
}

/// One start with the clock far ahead moves log time for good, and calendar moments not at all.
#[test]
fn after_a_start_with_the_clock_years_ahead_an_hour_is_an_hour() {
    if evidence::lacks("faketime") {
        return;
    }
    let mut world = World::begin("clock-ahead", 30 * YEAR);
    world.submit(json!({}), "first");
    let delayed = world.begin_waiting("delayed", &json!({"delay_ms": 2_000}));
    assert!(!world.lines().contains("log time is"), "{}", world.lines());
    world.jump(0, When::Down);
    assert!(world.lines().contains("s ahead of the wall clock"), "{}", world.lines());
    let (_, status) = world.server.get("/v1/status");
    let ahead_ms = status["log_time_ahead_ms"].as_i64().unwrap();
    assert!((29 * YEAR..31 * YEAR).contains(&(ahead_ms / 1_000)), "{status}");
    let metrics = world.server.text("/metrics");
    let metric = metrics.lines().find(|it| it.starts_with("tenure_log_time_ahead_seconds "));
    let seconds: f64 = metric.unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    assert!(seconds > 29.0 * YEAR as f64, "{metric:?}");
    let at = format!("http://{}", world.server.address);
    let shown = Command::new(server::TENURE).args(["status", "--server", &at]).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("ahead of the wall clock"));
    world.shows_the_true_time();
    // Spans go on, whatever the wall clock says.
    assert_eq!(world.run_state(delayed, 60_000), "COMPLETED", "a delay is a span");
    world.submit(json!({"delay_ms": 300}), "span");
    assert_eq!(world.report(&world.leased("span"), "complete").0, 200);
    let task = world.submit(json!({"run_at": world.moment_in(3_600_000)}), "calendar");
    let run = world.begin_waiting("calendar", &json!({"until": "input.at"}));
    assert!(world.lease("calendar").is_none(), "it is due in an hour");
    assert_eq!(world.run_state(run, 1_500), "WAITING", "it is due in an hour");
    world.jump(3_500, When::Running);
    assert!(world.lease("calendar").is_none(), "100 seconds before");
    assert_eq!(world.run_state(run, 1_500), "WAITING", "100 seconds before");
    world.jump(3_601, When::Running);
    assert_eq!(world.leased("calendar")["task_id"], task);
    assert_eq!(world.run_state(run, 60_000), "COMPLETED");
    world.server.kill();
    let verified = world.server.tenure(&["wal", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
    for extension in ["clock", "lines"] {
        let _ = std::fs::remove_file(world.folder.with_extension(extension));
    }
}

/// T12; P4, P7, P17.
#[test]
fn no_jump_of_the_clock_makes_two_leases_or_loses_or_doubles_a_task() {
    if evidence::lacks("faketime") {
        return;
    }
    let mut world = World::begin("clock", 0);
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
    world.clean_up();
    let jumps = JUMPS.len() as u64;
    evidence::print(
        "T12",
        &[("clock jumps", jumps), ("two leases", 0), ("lost", 0), ("doubled", 0)],
    );
}

/// P7.
#[test]
fn a_server_does_not_start_before_1970_and_survives_a_clock_that_is_set_there() {
    if evidence::lacks("faketime") {
        return;
    }
    let mut world = World::begin("clock-before-1970", 0);
    let has_date = |world: &World| {
        let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let mut stream = world.server.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.to_ascii_lowercase().contains("\r\ndate: ")
    };
    world.set_clock(BEFORE_1970);
    // On whichever thread a connection is served.
    for _ in 0..50 {
        assert!(!has_date(&world), "no date where the clock cannot be right");
    }
    world.submit(json!({}), "work");
    let lease = world.leased("work");
    assert_eq!(world.report(&lease, "complete").0, 200);
    world.server.kill();
    world.server.keep_folder();
    assert!(Server::start_on(world.folder.clone(), &world.runner).is_none(), "it does not start");
    let said = world.lines();
    assert!(said.contains("before 1970") && said.contains("set the clock"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    world.set_clock(0);
    world.server = Server::start_on(world.folder.clone(), &world.runner).unwrap();
    assert!(has_date(&world));
    let (_, status) = world.server.get("/v1/status");
    assert_eq!(status["tasks"]["COMPLETED"], 1, "nothing is lost");
    world.clean_up();
}

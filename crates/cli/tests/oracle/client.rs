//! Clients that do everything a user can, and observers that follow. They end with the server.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Oracle, Outcome, Position, Read, Wish};
use crate::server::{JSON, agent, url};

/// How many leases one client holds at a time.
const HELD_MAX: usize = 8;
/// How many ids one client remembers.
const KNOWN_MAX: usize = 64;
/// Something that is due is done within this, leases and backoffs included.
const PROGRESS_WITHIN: Duration = Duration::from_secs(120);
/// A lease for who has much to do on a slow machine.
const LONG_LEASE_MS: u64 = 600_000;

/// One client. It is a worker too.
pub(crate) struct Client<'o> {
    pub(super) oracle: &'o Oracle,
    name: String,
    random: u64,
    held: Vec<(u64, u64)>,
    known: Vec<u64>,
    pub(super) known_runs: Vec<u64>,
    /// Submits and starts with a key that got no answer.
    unsure: Vec<(Wish, String, Value)>,
    does: Does,
    is_let_down: bool,
    pub(super) agent: ureq::Agent,
    pub(super) address: String,
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// Tasks, and no more.
    Tasks,
    /// Runs too.
    Runs,
    /// And tasks for a worker that runs programs.
    Everything,
}

/// The server is gone.
pub(super) struct Gone;

impl<'o> Client<'o> {
    pub(crate) fn new(oracle: &'o Oracle, name: &str, seed: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let (held, known, known_runs, unsure) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (name, agent, address) = (name.to_owned(), agent(), String::new());
        let (does, is_let_down) = (Does::Tasks, false);
        Self {
            oracle,
            name,
            random,
            held,
            known,
            known_runs,
            unsure,
            does,
            is_let_down,
            agent,
            address,
        }
    }

    /// Whether its last act got no answer.
    pub(crate) fn was_let_down(&self) -> bool {
        self.is_let_down
    }

    /// One that does more.
    pub(crate) fn who_does(mut self, does: Does) -> Self {
        self.does = does;
        self
    }

    /// Acts until the server is gone, or so often.
    pub(crate) fn work(&mut self, address: &str, stop: &AtomicBool, acts_max: usize) {
        (self.address, self.agent) = (address.to_owned(), agent());
        if self.does != Does::Tasks && self.put_workflow().is_err() {
            return;
        }
        for _ in 0..acts_max {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            self.is_let_down = self.act().is_err();
            if self.is_let_down {
                return;
            }
        }
    }

    pub(super) fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn act(&mut self) -> Result<(), Gone> {
        if let Some((wish, path, body)) = self.unsure.pop() {
            // The same key gives the one true answer.
            return self.submit(wish, &path, &body);
        }
        match (self.does, self.does != Does::Tasks && self.draw(5) == 0) {
            (Does::Tasks, _) | (_, false) => {}
            (Does::Everything, _) if self.draw(3) == 0 => return self.submit_program(),
            _ => return self.act_on_runs(),
        }
        match self.draw(20) {
            0..4 => self.submit_one(),
            4..6 => self.submit_batch(),
            6 => self.submit_badly(),
            7..11 => self.lease(),
            11..16 => self.report(),
            16 => self.change("cancel", |task| Wish::Cancel { task }),
            17 => self.change("retry", |task| Wish::Retry { task }),
            _ => self.read(),
        }
    }

    pub(super) fn task(&mut self, nonce: u64) -> Value {
        let mut task = json!({
            "queue": format!("q{}", self.draw(3)),
            "payload": {"nonce": nonce, "fill": "x".repeat(self.draw(300) as usize)},
            "priority": self.draw(5) as i64 - 2,
            "lease_ms": 500 + self.draw(1_500),
            "max_failures": 2,
            "backoff": {"kind": "fixed", "initial_ms": 10},
        });
        if self.draw(2) == 0 {
            task["key"] = json!(format!("key-{nonce}"));
        }
        task
    }

    fn submit_one(&mut self) -> Result<(), Gone> {
        let nonce = self.oracle.nonce();
        let body = self.task(nonce);
        self.submit(Wish::Submit { nonces: vec![nonce] }, "/v1/tasks", &body)
    }

    fn submit_batch(&mut self) -> Result<(), Gone> {
        let nonces: Vec<_> = (0..2 + self.draw(4)).map(|_| self.oracle.nonce()).collect();
        let tasks: Vec<_> = nonces.iter().map(|nonce| self.task(*nonce)).collect();
        self.submit(Wish::Submit { nonces }, "/v1/tasks/batch", &json!({"tasks": tasks}))
    }

    pub(super) fn submit(&mut self, wish: Wish, path: &str, body: &Value) -> Result<(), Gone> {
        let outcome = self.send(wish.clone(), path, body);
        match &outcome {
            Outcome::Ok(answer) => {
                let known = match wish {
                    Wish::Start { .. } => &mut self.known_runs,
                    _ => &mut self.known,
                };
                let ids = answer["ids"].as_array().cloned().unwrap_or_default();
                known.extend(answer["id"].as_u64());
                known.extend(ids.iter().filter_map(Value::as_u64));
                let more = known.len().saturating_sub(KNOWN_MAX);
                known.drain(..more);
            }
            Outcome::Unknown if body["key"].is_string() => {
                self.unsure.push((wish, path.to_owned(), body.clone()));
            }
            Outcome::Unknown | Outcome::Refused(_) => {}
        }
        alive(&outcome)
    }

    fn submit_badly(&mut self) -> Result<(), Gone> {
        let nonce = self.oracle.nonce();
        let mut bad = self.task(nonce);
        bad["priority"] = json!(101);
        let good = self.oracle.nonce();
        let tasks = json!({"tasks": [self.task(good), bad]});
        let wish = Wish::BadSubmit { nonces: vec![nonce, good] };
        alive(&self.send(wish, "/v1/tasks/batch", &tasks))
    }

    fn lease(&mut self) -> Result<(), Gone> {
        if self.held.len() >= HELD_MAX {
            return self.report();
        }
        let (max, wait_ms) = (1 + self.draw(3), self.draw(50));
        self.lease_with(&json!({"max": max, "wait_ms": wait_ms}))
    }

    fn lease_with(&mut self, terms: &Value) -> Result<(), Gone> {
        let mut body = json!({"worker": self.name, "queues": ["q0", "q1", "q2"]});
        body.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
        let outcome = self.send(Wish::Lease { worker: self.name.clone() }, "/v1/leases", &body);
        if let Outcome::Ok(answer) = &outcome {
            let lease =
                |lease: &Value| Some((lease["task_id"].as_u64()?, lease["lease_id"].as_u64()?));
            self.held.extend(answer["leases"].as_array().into_iter().flatten().filter_map(lease));
        }
        alive(&outcome)
    }

    fn report(&mut self) -> Result<(), Gone> {
        if self.held.is_empty() {
            return self.read();
        }
        let at = self.draw(self.held.len() as u64) as usize;
        let (task, lease) = self.held[at];
        let path = |verb: &str| format!("/v1/tasks/{task}/{verb}");
        let verb = self.draw(8);
        if verb < 2 {
            let body = json!({"lease_id": lease});
            return alive(&self.send(Wish::Heartbeat { task, lease }, &path("heartbeat"), &body));
        }
        // Now and then it is forgotten that this was reported, and it is reported again.
        if self.draw(4) > 0 {
            self.held.swap_remove(at);
        }
        let outcome = match verb {
            2 => {
                let body = json!({"lease_id": lease, "reason": "no luck"});
                self.send(Wish::Fail { task, lease }, &path("fail"), &body)
            }
            3 => {
                let body = json!({"lease_id": lease});
                self.send(Wish::Release { task, lease }, &path("release"), &body)
            }
            _ => self.complete(task, lease),
        };
        alive(&outcome)
    }

    fn complete(&mut self, task: u64, lease: u64) -> Outcome {
        let output = json!({"by": self.name, "lease": lease});
        let body = json!({"lease_id": lease, "output": output});
        let path = format!("/v1/tasks/{task}/complete");
        self.send(Wish::Complete { task, lease, output }, &path, &body)
    }

    /// Does all that is left to do, until nothing waits and nothing is leased.
    pub(crate) fn drain(&mut self, address: &str) {
        (self.address, self.agent) = (address.to_owned(), agent());
        let terms = json!({"max": HELD_MAX, "wait_ms": 50, "lease_ms": LONG_LEASE_MS});
        let (mut fewest, mut progress_at) = (u64::MAX, Instant::now());
        loop {
            assert!(self.lease_with(&terms).is_ok(), "the server stays");
            for (task, lease) in std::mem::take(&mut self.held) {
                self.complete(task, lease);
            }
            let news = self.signal_all();
            let marks = self.show("/v1/queues/mark")["depth"].as_u64().unwrap_or(0);
            let tasks = &self.show("/v1/status")["tasks"];
            let open = tasks["WAITING"].as_u64().unwrap() + tasks["LEASED"].as_u64().unwrap();
            if open <= marks && news == 0 {
                return;
            }
            if open < fewest {
                (fewest, progress_at) = (open, Instant::now());
            }
            let waited = progress_at.elapsed();
            assert!(
                waited < PROGRESS_WITHIN,
                "what is due is done some day; {tasks} for {waited:?}"
            );
        }
    }

    /// What a path shows.
    pub(super) fn show(&self, path: &str) -> Value {
        let answer = self.agent.get(url(&self.address, path)).call();
        let text = answer.and_then(|mut answer| answer.body_mut().read_to_string());
        let shown = text.ok().and_then(|text| serde_json::from_str(&text).ok());
        shown.unwrap_or(Value::Null)
    }

    fn change(&mut self, verb: &str, wish: impl Fn(u64) -> Wish) -> Result<(), Gone> {
        let Some(task) = self.some_task() else { return Ok(()) };
        alive(&self.send(wish(task), &format!("/v1/tasks/{task}/{verb}"), &json!({})))
    }

    fn some_task(&mut self) -> Option<u64> {
        if self.known.is_empty() {
            return None;
        }
        let at = self.draw(self.known.len() as u64) as usize;
        self.known.get(at).copied()
    }

    fn read(&mut self) -> Result<(), Gone> {
        let Some(task) = self.some_task() else { return Ok(()) };
        let wait_ms = self.draw(30);
        let shown = self.show(&format!("/v1/tasks/{task}?wait_ms={wait_ms}"));
        if shown.is_null() {
            return Err(Gone);
        }
        if let (Some(state), Some(attempt)) = (shown["state"].as_str(), shown["attempt"].as_u64()) {
            self.oracle.saw(Read { task, state: state.to_owned(), attempt });
        }
        Ok(())
    }

    /// Writes the intent down, sends it, and writes down what came of it.
    pub(super) fn send(&mut self, wish: Wish, path: &str, body: &Value) -> Outcome {
        let number = self.oracle.intend(wish);
        let post = self.agent.post(url(&self.address, path)).content_type(JSON);
        let answer = post.send(body.to_string());
        let answer = answer.and_then(|mut answer| {
            let status = answer.status().as_u16();
            answer.body_mut().read_to_string().map(|text| (status, text))
        });
        let outcome = match answer {
            Ok((status @ 200..300, text)) => match serde_json::from_str(&text) {
                Ok(answer) => Outcome::Ok(answer),
                Err(_) => panic!("{path} was answered {status} with {text:?}"),
            },
            // Nothing can be known of what a dying server did.
            Ok((500.., _)) | Err(_) => Outcome::Unknown,
            Ok((status, _)) => Outcome::Refused(status),
        };
        self.oracle.learn(number, outcome.clone());
        outcome
    }
}

pub(super) fn alive(outcome: &Outcome) -> Result<(), Gone> {
    match outcome {
        Outcome::Unknown => Err(Gone),
        Outcome::Ok(_) | Outcome::Refused(_) => Ok(()),
    }
}

/// Follows live updates, and goes on where it was cut off.
pub(crate) struct Watcher<'o> {
    pub(crate) oracle: &'o Oracle,
    pub(crate) number: usize,
}

impl Watcher<'_> {
    /// Follows until the server is gone.
    pub(crate) fn follow(&self, address: &str) {
        let after = self.oracle.last_told(self.number);
        for_each_event(address, after, |position, event| {
            self.oracle.was_told(self.number, position, event);
            true
        });
    }
}

/// Reads events until it is told to stop or the server is gone.
pub(super) fn for_each_event(
    address: &str,
    after: Option<Position>,
    mut visit: impl FnMut(Position, Value) -> bool,
) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let after = after.map_or("0".to_owned(), |(lsn, index)| format!("{lsn}.{index}"));
    let request = format!("GET /v1/events?after={after} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if stream.write_all(request.as_bytes()).is_err() {
        return;
    }
    let mut id = None;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        if let Some(text) = line.strip_prefix("id: ") {
            let (lsn, index) = text.split_once('.').unwrap();
            id = Some((lsn.parse().unwrap(), index.parse().unwrap()));
        } else if let Some(data) = line.strip_prefix("data: ") {
            // A line may be cut off where the server was killed.
            let (Some(id), Ok(event)) = (id.take(), serde_json::from_str(data)) else { continue };
            if !visit(id, event) {
                return;
            }
        }
    }
}

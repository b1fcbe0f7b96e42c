//! A server that knows the samples, and a worker that does their tasks.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::Server;

/// Nothing in these tests takes so long.
const LONG: Duration = Duration::from_secs(120);
const TENURE: &str = env!("CARGO_BIN_EXE_tenure");
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workflows");

pub(crate) const ALL: [&str; 4] = ["order", "invoices", "race", "agent"];

pub(crate) struct Shop {
    pub(crate) server: Server,
    pub(crate) books: PathBuf,
    worker: Child,
}

impl Shop {
    pub(crate) fn open(name: &str) -> Self {
        let server = Server::start(&format!("samples-{name}"));
        let books = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("books-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&books);
        let mut worker = Command::new(TENURE);
        worker.args(["worker", "exec", "--queue", "samples", "--slots", "4", "--quiet"]);
        // A lease that was granted and not told of when the server died has to run out.
        worker.args(["--lease", "2s", "--cwd", SAMPLES]).env("BOOKS", &books);
        worker.env("TENURE_SERVER", format!("http://{}", server.address));
        let worker = worker.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let shop = Self { server, books, worker };
        for name in ALL {
            let file = format!("{SAMPLES}/{name}.yaml");
            let put = shop.tenure(&["workflow", "put", &file]);
            assert_eq!(text(&put.stdout), format!("{name} is now version 1\n"), "{put:?}");
        }
        shop
    }

    /// The binary as somebody at a shell calls it.
    pub(crate) fn tenure(&self, args: &[&str]) -> Output {
        let mut command = Command::new(TENURE);
        command.args(args).env("TENURE_SERVER", format!("http://{}", self.server.address));
        command.env_remove("TENURE_API_KEY").stdin(Stdio::null()).output().unwrap()
    }

    /// Begins a run, and gives its number.
    pub(crate) fn start(&self, workflow: &str, input: &Value) -> u64 {
        let began = self.tenure(&["run", "start", workflow, "--input", &input.to_string()]);
        assert_eq!(began.status.code(), Some(0), "{began:?}");
        text(&began.stdout).trim().parse().unwrap()
    }

    pub(crate) fn run(&self, id: u64) -> Value {
        self.server.get(&format!("/v1/runs/{id}")).1
    }

    pub(crate) fn approve(&self, id: u64, payload: &Value) {
        let (id, payload) = (id.to_string(), payload.to_string());
        let args = ["run", "signal", &id, "approval", "--payload", &payload, "--signal-id", "once"];
        let signaled = self.tenure(&args);
        assert_eq!(signaled.status.code(), Some(0), "{signaled:?}");
    }

    /// Waits until a run is in a state.
    pub(crate) fn until(&self, id: u64, state: &str) {
        eventually(&format!("run {id} is {state}"), || {
            (self.run(id)["state"] == state).then_some(())
        });
    }

    /// A run that has ended.
    pub(crate) fn ended(&self, id: u64) -> Value {
        eventually(&format!("the end of run {id}"), || {
            let (status, run) = self.server.get(&format!("/v1/runs/{id}?wait_ms=10000"));
            assert_eq!(status, 200, "{run}");
            (!run["finished_at"].is_null()).then_some(run)
        })
    }

    /// What came out of a run that came to a good end.
    pub(crate) fn output(&self, id: u64) -> Value {
        let mut run = self.ended(id);
        assert_eq!(run["state"], "COMPLETED", "{run:#}");
        run["output"].take()
    }

    /// How many records the log has.
    pub(crate) fn lsn(&self) -> u64 {
        self.server.get("/v1/status").1["lsn"].as_u64().unwrap()
    }

    /// The steps of an order that have left something, by name.
    pub(crate) fn steps(&self, order: &str) -> Vec<String> {
        let entries = std::fs::read_dir(&self.books).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let prefix = format!("{order}.");
        let mut steps: Vec<_> =
            names.filter_map(|name| name.strip_prefix(&prefix).map(str::to_owned)).collect();
        steps.sort();
        steps
    }

    /// The log keeps every law.
    pub(crate) fn verify(mut self) {
        assert_eq!(self.server.terminate(), Some(0));
        let verified = self.server.tenure(&["wal", "verify"]);
        assert!(verified.status.success(), "{}", text(&verified.stderr));
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.worker.kill();
        let _ = self.worker.wait();
        let _ = std::fs::remove_dir_all(&self.books);
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(SAMPLES).join(name)
}

/// Waits for something that must come.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < LONG, "this never came: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn order(number: &str, amount: u64, to: &str) -> Value {
    json!({"order": number, "amount": amount, "to": to})
}

/// What each sample is given in these tests, but for the order, and what must come out.
pub(crate) fn plain_samples() -> [(&'static str, Value, Value); 3] {
    [
        (
            "invoices",
            json!({"folder": "invoices"}),
            json!({
                "sums": {
                    "january.txt": 215, "february.txt": 400, "march.txt": 130, "april.txt": 780,
                    "may.txt": 140,
                },
                "total": 1665,
            }),
        ),
        ("race", json!({"key": "owl"}), json!({"from": "replica", "value": "the value of owl"})),
        (
            "agent",
            json!({"goal": "a short title for our report on owls", "max": 24}),
            json!({
                "title": "for our report on owls",
                "passed": true,
                "drafts": [
                    "a short title for our report on owls",
                    "short title for our report on owls",
                    "title for our report on owls",
                    "for our report on owls",
                ],
            }),
        ),
    ]
}

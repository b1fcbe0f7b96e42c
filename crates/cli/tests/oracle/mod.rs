//! One who remembers what a server promised, in another process than the server's. Each act is
//! written down and synced before it is sent, and again when its outcome is known. A request
//! without an answer is *unknown*, never a loss.
#![allow(dead_code, unused_imports, reason = "each test file uses a part of it")]

mod check;
mod client;
mod programs;
mod runs;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

pub(crate) use client::{Client, Does, Watcher};
pub(crate) use programs::{EXEC_QUEUE, EXEC_WORKER};

/// What was wanted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wish {
    /// New tasks, each with a number that no other task has.
    Submit {
        nonces: Vec<u64>,
    },
    /// The same that must not be taken.
    BadSubmit {
        nonces: Vec<u64>,
    },
    Lease {
        worker: String,
    },
    Heartbeat {
        task: u64,
        lease: u64,
    },
    Complete {
        task: u64,
        lease: u64,
        output: Value,
    },
    Fail {
        task: u64,
        lease: u64,
    },
    Release {
        task: u64,
        lease: u64,
    },
    Cancel {
        task: u64,
    },
    Retry {
        task: u64,
    },
    /// A new run; its first task has the number.
    Start {
        nonce: u64,
    },
    /// News for a run, with a number that no other has.
    Signal {
        run: u64,
        nonce: u64,
    },
}

/// What became of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// It was acknowledged, with this.
    Ok(Value),
    /// It was refused, with this status.
    Refused(u16),
    /// There was no answer.
    Unknown,
}

#[derive(Clone, Debug)]
struct Act {
    wish: Wish,
    outcome: Outcome,
}

/// A state of a task that somebody was shown.
#[derive(Clone, Debug)]
struct Read {
    task: u64,
    state: String,
    attempt: u64,
}

/// A state of a run that somebody was shown.
#[derive(Clone, Debug)]
struct ReadRun {
    run: u64,
    state: String,
}

/// An event's id.
type Position = (u64, u64);

#[derive(Debug, Default)]
struct Book {
    acts: Vec<Act>,
    /// Acts and reads before these were checked.
    acts_checked: usize,
    reads: Vec<Read>,
    reads_checked: usize,
    run_reads: Vec<ReadRun>,
    /// What each observer was told, in its order.
    told: BTreeMap<usize, Vec<(Position, Value)>>,
    /// Everything that happened, as the server told it after its last restart.
    truth: BTreeMap<Position, Value>,
    /// The truth by task.
    of_task: HashMap<u64, Vec<Position>>,
    /// The truth by run, what is told of its tasks left out.
    of_run: HashMap<u64, Vec<Position>>,
    /// Which task has which number.
    ids: HashMap<u64, Vec<u64>>,
    /// What a check found out about unknown submits; it must stay so.
    settled: HashMap<u64, bool>,
    checks: usize,
    /// Runs whose end, and tasks whose program, was checked.
    ended: HashSet<u64>,
    ran: HashSet<u64>,
    /// Faults that checks found.
    lost: usize,
    undone: usize,
    other: usize,
}

/// The one who remembers.
pub(crate) struct Oracle {
    journal: Mutex<File>,
    path: PathBuf,
    /// Programs of tasks say here that they ran.
    ran: PathBuf,
    book: Mutex<Book>,
    nonces: AtomicU64,
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) ok: usize,
    pub(crate) refused: usize,
    pub(crate) unknown: usize,
    pub(crate) reads: usize,
    pub(crate) events: usize,
    pub(crate) runs_completed: usize,
    pub(crate) programs_completed: usize,
    /// Faults, by what they say.
    pub(crate) lost: usize,
    pub(crate) undone: usize,
    pub(crate) other: usize,
}

impl Oracle {
    /// Whether every run that was begun has ended.
    pub(crate) fn open_runs(&self) -> usize {
        let book = self.book();
        book.of_run.len() - book.ended.len()
    }

    /// Begins with an empty book; its journal is beside the folder.
    pub(crate) fn begin(folder: &Path) -> Self {
        let (path, ran) = (folder.with_extension("oracle"), folder.with_extension("ran"));
        let _ = std::fs::remove_file(&ran);
        let journal = Mutex::new(File::create(&path).unwrap());
        let (book, nonces) = (Mutex::default(), AtomicU64::new(1));
        Self { journal, path, ran, book, nonces }
    }

    fn nonce(&self) -> u64 {
        self.nonces.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes an intent down. Until its outcome is known, it is unknown.
    fn intend(&self, wish: Wish) -> usize {
        let mut book = self.book();
        let number = book.acts.len();
        self.write(&format!("{number} wants {wish:?}\n"));
        book.acts.push(Act { wish, outcome: Outcome::Unknown });
        number
    }

    fn learn(&self, number: usize, outcome: Outcome) {
        let mut book = self.book();
        self.write(&format!("{number} got {outcome:?}\n"));
        book.acts[number].outcome = outcome;
    }

    fn saw(&self, read: Read) {
        self.write(&format!("saw {read:?}\n"));
        self.book().reads.push(read);
    }

    fn saw_run(&self, read: ReadRun) {
        self.write(&format!("saw {read:?}\n"));
        self.book().run_reads.push(read);
    }

    fn was_told(&self, observer: usize, position: Position, event: Value) {
        self.book().told.entry(observer).or_default().push((position, event));
    }

    /// The last event that an observer was told.
    fn last_told(&self, observer: usize) -> Option<Position> {
        self.book().told.get(&observer)?.last().map(|(position, _)| *position)
    }

    fn write(&self, line: &str) {
        let mut journal = self.journal.lock().unwrap();
        journal.write_all(line.as_bytes()).unwrap();
        journal.sync_data().unwrap();
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    pub(crate) fn tally(&self) -> Tally {
        let book = self.book();
        let mut tally = Tally { reads: book.reads.len(), ..Tally::default() };
        tally.events = book.told.values().map(Vec::len).sum();
        (tally.lost, tally.undone, tally.other) = (book.lost, book.undone, book.other);
        tally.runs_completed = book.runs_completed();
        tally.programs_completed = book.programs_completed().count();
        for act in &book.acts {
            match act.outcome {
                Outcome::Ok(_) => tally.ok += 1,
                Outcome::Refused(_) => tally.refused += 1,
                Outcome::Unknown => tally.unknown += 1,
            }
        }
        tally
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // Who fails wants to read it.
        if !std::thread::panicking() {
            let _ = std::fs::remove_file(&self.path);
            let _ = std::fs::remove_file(&self.ran);
        }
    }
}

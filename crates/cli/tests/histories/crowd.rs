//! Clients that all want something of the same few tasks, and the book that has every call.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::line::{Ask, Granted, Heard, Line};
use crate::register::{Answer, Call, Deed};

/// Tasks that are talked about at a time.
const RECENT: usize = 6;
/// Calls about one task, at the most; then it is left alone.
const CALLS_OF_TASK: usize = 60;

/// Which task a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Task(u64),
    /// The one that was submitted with this number.
    Nonce(u64),
    /// Any.
    Any,
}

/// Everything that was asked and heard in one history.
pub(crate) struct Book {
    began_at: Instant,
    queue: String,
    calls: Mutex<Vec<(About, Call)>>,
    tasks: Mutex<Vec<u64>>,
    leases: Mutex<Vec<Granted>>,
    nonces: AtomicU64,
}

/// A client of one history.
pub(crate) struct Client<'b> {
    book: &'b Book,
    name: String,
    random: u64,
    /// A submit that got no answer.
    unsure: Option<u64>,
}

/// The server is gone.
pub(crate) struct Gone;

impl Book {
    pub(crate) fn begin(queue: String) -> Self {
        Self {
            began_at: Instant::now(),
            queue,
            calls: Mutex::default(),
            tasks: Mutex::default(),
            leases: Mutex::default(),
            nonces: AtomicU64::new(1),
        }
    }

    fn now_us(&self) -> u64 {
        self.began_at.elapsed().as_micros() as u64
    }

    /// The server that got these calls is dead: what was not answered has happened by now, or never.
    pub(crate) fn server_died(&self) {
        let now_us = self.now_us();
        for (_, call) in self.calls.lock().unwrap().iter_mut() {
            if call.answer == Answer::Nothing && call.until_us == u64::MAX {
                call.until_us = now_us;
            }
        }
    }

    fn add(&self, about: About, call: Call) {
        let mut calls = self.calls.lock().unwrap();
        calls.push((about, call));
        let count = calls.iter().filter(|(of, _)| *of == about).count();
        drop(calls);
        if let About::Task(task) = about
            && count >= CALLS_OF_TASK
        {
            self.tasks.lock().unwrap().retain(|known| *known != task);
            self.leases.lock().unwrap().retain(|lease| lease.task != task);
        }
    }

    /// Calls in all, and those without an answer.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let calls = self.calls.lock().unwrap();
        let unknown = calls.iter().filter(|(_, call)| call.answer == Answer::Nothing).count();
        (calls.len() as u64, unknown as u64)
    }

    /// The calls of each task, given which number is which task.
    pub(crate) fn by_task(&self, ids: &BTreeMap<u64, u64>) -> BTreeMap<u64, Vec<Call>> {
        let calls = self.calls.lock().unwrap();
        let mut found: BTreeMap<u64, Vec<Call>> = BTreeMap::new();
        for (about, call) in calls.iter() {
            let task = match about {
                About::Task(task) => Some(*task),
                About::Nonce(nonce) => ids.get(nonce).copied(),
                About::Any => None,
            };
            if let Some(task) = task {
                found.entry(task).or_default().push(call.clone());
            }
        }
        for of_task in found.values_mut() {
            let begun = of_task.iter().map(|call| call.from_us).min().unwrap_or(0);
            let unheard = calls.iter().filter(|(about, _)| *about == About::Any);
            let unheard = unheard.filter(|(_, call)| call.until_us >= begun);
            of_task.extend(unheard.map(|(_, call)| call.clone()));
        }
        found
    }

    /// A lease that began after another one was heard of has a larger id; no id is given twice.
    pub(crate) fn check_leases(&self) -> Result<(), String> {
        let calls = self.calls.lock().unwrap();
        let mut grants: Vec<_> = calls
            .iter()
            .filter_map(|(_, call)| match call.deed {
                Deed::Grant { lease, .. } => Some((lease, call.from_us, call.until_us)),
                _ => None,
            })
            .collect();
        grants.sort_unstable();
        for pair in grants.windows(2) {
            let [(lease, from_us, _), (next, _, until_us)] = [pair[0], pair[1]];
            if lease == next || until_us < from_us {
                return Err(format!("lease {next} was given no later than lease {lease}"));
            }
        }
        Ok(())
    }
}

impl<'b> Client<'b> {
    pub(crate) fn new(book: &'b Book, name: String, seed: u64) -> Self {
        Self { book, name, random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, unsure: None }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// One call, drawn from all that there are.
    pub(crate) fn act(&mut self, line: &Line) -> Result<(), Gone> {
        let queue = self.book.queue.clone();
        if let Some(nonce) = self.unsure.take() {
            return self.call(line, &Ask::Submit { queue, nonce });
        }
        let ask = match self.draw(20) {
            0 | 1 => {
                let nonce = self.book.nonces.fetch_add(1, Ordering::Relaxed);
                Some(Ask::Submit { queue, nonce })
            }
            2..6 => Some(Ask::Lease { queue, worker: self.name.clone(), max: 2 }),
            6..12 => self.report(),
            12 => self.some_task().map(|task| Ask::Cancel { task }),
            13 | 14 => self.some_task().map(|task| Ask::Retry { task }),
            _ => self.some_task().map(|task| Ask::Read { task }),
        };
        ask.map_or(Ok(()), |ask| self.call(line, &ask))
    }

    fn some_task(&mut self) -> Option<u64> {
        let at = self.draw(RECENT as u64) as usize;
        self.book.tasks.lock().unwrap().iter().rev().nth(at).copied()
    }

    /// On a lease of anybody: a lease is known by its number alone.
    fn report(&mut self) -> Option<Ask> {
        let (at, verb) = (self.draw(RECENT as u64) as usize, self.draw(8));
        let Granted { task, lease, .. } = *self.book.leases.lock().unwrap().iter().rev().nth(at)?;
        Some(match verb {
            0..3 => Ask::Heartbeat { task, lease },
            3 | 4 => Ask::Fail { task, lease },
            5 => Ask::Release { task, lease },
            _ => Ask::Complete { task, lease },
        })
    }

    pub(crate) fn call(&mut self, line: &Line, ask: &Ask) -> Result<(), Gone> {
        let (about, deed) = match *ask {
            Ask::Submit { nonce, .. } => (About::Nonce(nonce), Deed::Submit),
            Ask::Lease { .. } => (About::Any, Deed::GrantUnheard),
            Ask::Heartbeat { task, lease } => (About::Task(task), Deed::Heartbeat { lease }),
            Ask::Complete { task, lease } => (About::Task(task), Deed::Complete { lease }),
            Ask::Fail { task, lease } => (About::Task(task), Deed::Fail { lease }),
            Ask::Release { task, lease } => (About::Task(task), Deed::Release { lease }),
            Ask::Cancel { task } => (About::Task(task), Deed::Cancel),
            Ask::Retry { task } => (About::Task(task), Deed::Retry),
            Ask::Read { task } => (About::Task(task), Deed::Read),
        };
        let from_us = self.book.now_us();
        let heard = line.ask(ask);
        let until_us = self.book.now_us();
        let call = |deed, answer| Call { from_us, until_us, deed, answer };
        match heard {
            Heard::Task(task, shown) => {
                if let Ask::Submit { .. } = ask {
                    self.book.tasks.lock().unwrap().push(task);
                }
                self.book.add(about, call(deed, Answer::Shown(shown)));
            }
            Heard::Leases(leases) => {
                for granted in leases {
                    let Granted { task, lease, attempt } = granted;
                    let deed = Deed::Grant { lease, attempt };
                    self.book.add(About::Task(task), call(deed, Answer::Granted));
                    self.book.leases.lock().unwrap().push(granted);
                }
            }
            Heard::Extended { cancel_requested } => {
                self.book.add(about, call(deed, Answer::Extended { cancel_requested }));
            }
            Heard::Refused(code) => self.book.add(about, call(deed, Answer::Refused(code))),
            Heard::Nothing => {
                if let Ask::Submit { nonce, .. } = ask {
                    self.unsure = Some(*nonce);
                }
                let unknown = Call { until_us: u64::MAX, ..call(deed, Answer::Nothing) };
                self.book.add(about, unknown);
                return Err(Gone);
            }
        }
        Ok(())
    }
}

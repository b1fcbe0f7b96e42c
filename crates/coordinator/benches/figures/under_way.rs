//! A snapshot of ten million tasks while others work: what it costs them, and how long anybody
//! waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tenure_coordinator::request::{CompleteTask, SubmitTasks, TakeSnapshot};
use tenure_coordinator::{Engine, EngineOptions, Upkeep};
use tenure_record::terms::Payload;

use crate::calls::{self, new_task};
use crate::disk::{Folder, syncs_per_s};
use crate::standstill::{Machine, Span};
use crate::start;

const WAITING: u64 = 10_000_000;
const SPAN: Duration = Duration::from_secs(20);
const ROUNDS: usize = 3;
/// Callers with one request at a time.
const CALLERS: usize = 16;

const LONG: Duration = Duration::from_millis(20);

/// What callers saw.
#[derive(Default)]
struct Seen {
    done: u64,
    longest: Duration,
    /// Waits that were longer than they should be.
    long: Vec<Span>,
}

impl Seen {
    fn waited(&mut self, span: Span) {
        self.longest = self.longest.max(span.took());
        if span.took() > LONG {
            self.long.push(span);
        }
    }
}

pub(crate) fn snapshot() {
    let folder = Folder::new("snapshot");
    println!("bare disk: {:.0} syncs/s", syncs_per_s(&folder, Duration::from_secs(2)));
    let data = folder.path().join("data");
    start::fill(&data, WAITING, 0);
    // It is taken when it is asked for, and at no other time.
    let upkeep = Upkeep { snapshot_log_bytes: u64::MAX, ..Upkeep::default() };
    let tenure = EngineOptions::default().upkeep(upkeep).open(&data, |_| {}).expect("it is sound");
    // The first seconds touch much for the first time.
    work_for(&tenure, SPAN / 2, || {});
    for _ in 0..ROUNDS {
        let alone = work_for(&tenure, SPAN, || std::thread::sleep(SPAN));
        alone.print("alone");
        let mut took_ms = 0;
        let beside = work_for(&tenure, Duration::ZERO, || {
            took_ms = tenure.ask(TakeSnapshot).wait().expect("it is written").took_ms;
        });
        beside.print(&format!("beside a snapshot of {took_ms} ms"));
        println!("  {:+.1} %", (beside.rate() / alone.rate() - 1.0) * 100.0);
    }
    tenure.close().expect("it ends well");
}

/// What callers and the machine did for a while.
struct While {
    begin: Instant,
    seen: Seen,
    took: Duration,
    still: Vec<Span>,
}

impl While {
    fn rate(&self) -> f64 {
        self.seen.done as f64 / self.took.as_secs_f64()
    }

    /// The long waits that are long even less what the machine stood still in them, longest first,
    /// each with when it began.
    fn own(&self) -> Vec<(Duration, Duration)> {
        let own = |wait: &Span| {
            let still = self.still.iter().map(|still| still.overlap(wait)).sum();
            (wait.took().saturating_sub(still), wait.begin - self.begin)
        };
        let mut own: Vec<_> = self.seen.long.iter().map(own).filter(|own| own.0 > LONG).collect();
        own.sort_unstable_by(|a, b| b.cmp(a));
        own
    }

    fn print(&self, name: &str) {
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        let own = self.own();
        println!(
            "{name}: {:.0} lifecycles/s, longest wait {:.1} ms, {} of more than 20 ms; less what the machine stood still: {:.1} ms, {} of more than 20 ms; it stood still for {:.0} ms in all, {:.1} ms at most",
            self.rate(),
            ms(self.seen.longest),
            self.seen.long.len(),
            ms(own.first().map_or(self.seen.longest.min(LONG), |longest| longest.0)),
            own.len(),
            ms(self.still.iter().map(Span::took).sum()),
            ms(self.still.iter().map(Span::took).max().unwrap_or_default()),
        );
        for (wait, at) in own.iter().take(5) {
            println!("  {:.1} ms, {:.3} s after the beginning", ms(*wait), at.as_secs_f64());
        }
    }
}

/// Lifecycles by several callers for as long as the other work takes, and at least so long.
fn work_for(tenure: &Engine, at_least: Duration, other: impl FnOnce()) -> While {
    let stop = Arc::new(AtomicBool::new(false));
    let (begin, machine) = (Instant::now(), Machine::watch());
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (tenure, stop) = (tenure.clone(), Arc::clone(&stop));
            std::thread::spawn(move || work(&tenure, &format!("queue-{caller}"), &stop))
        })
        .collect();
    other();
    std::thread::sleep(at_least.saturating_sub(begin.elapsed()));
    stop.store(true, Ordering::Relaxed);
    let took = begin.elapsed();
    let mut seen = Seen::default();
    for caller in callers {
        let one = caller.join().expect("a caller does not panic");
        seen.done += one.done;
        seen.longest = seen.longest.max(one.longest);
        seen.long.extend(one.long);
    }
    While { begin, seen, took, still: machine.stood_still() }
}

fn work(tenure: &Engine, queue: &str, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    while !stop.load(Ordering::Relaxed) {
        let mut lap = Instant::now();
        let mut waited = |seen: &mut Seen| {
            let now = Instant::now();
            seen.waited(Span { begin: lap, end: now });
            lap = now;
        };
        let tasks = vec![new_task(queue, [b'x'; 100]).expect("it is small")];
        tenure.ask(SubmitTasks { tasks }).wait().expect("it is taken");
        waited(&mut seen);
        let grants = calls::lease(tenure, queue, queue, 1).expect("it runs");
        waited(&mut seen);
        for grant in grants {
            let output = Payload::parse("output", b"null".to_vec()).expect("it is small");
            tenure.ask(CompleteTask::plain(grant.lease(), output)).wait().expect("it is in time");
            waited(&mut seen);
            seen.done += 1;
        }
    }
    seen
}

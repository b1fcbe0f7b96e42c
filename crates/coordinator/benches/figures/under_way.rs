//! A snapshot of ten million tasks while others work: what it costs them, and how long anybody
//! waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tenure_coordinator::{Opening, Tenure, Upkeep, new_task};

use crate::disk::{Folder, syncs_per_s};
use crate::start;

const WAITING: u64 = 10_000_000;
const SPAN: Duration = Duration::from_secs(10);
/// Callers with one request at a time.
const CALLERS: usize = 16;

/// What callers saw.
#[derive(Default)]
struct Seen {
    done: u64,
    longest: Duration,
    over_20_ms: u64,
}

pub(crate) fn snapshot() {
    let folder = Folder::new("snapshot");
    println!("bare disk: {:.0} syncs/s", syncs_per_s(&folder, Duration::from_secs(2)));
    let data = folder.path().join("data");
    start::fill(&data, WAITING, 0);
    // It is taken when it is asked for, and at no other time.
    let upkeep = Upkeep { snapshot_log_bytes: u64::MAX, ..Upkeep::default() };
    let tenure = Opening::default().upkeep(upkeep).open(&data, |_| {}).expect("it is sound");
    // The first seconds touch much for the first time.
    work_for(&tenure, SPAN / 2, || {});
    for _ in 0..3 {
        let alone = work_for(&tenure, SPAN, || std::thread::sleep(SPAN));
        let mut took_ms = 0;
        let beside = work_for(&tenure, Duration::ZERO, || {
            took_ms = tenure.snapshot().expect("it is written").took_ms;
        });
        let rate = |seen: &(Seen, Duration)| seen.0.done as f64 / seen.1.as_secs_f64();
        println!(
            "alone {:.0} lifecycles/s, longest wait {:.1} ms, {} over 20 ms; beside a snapshot of {took_ms} ms {:.0} ({:+.1} %), longest wait {:.1} ms, {} over 20 ms",
            rate(&alone),
            alone.0.longest.as_secs_f64() * 1e3,
            alone.0.over_20_ms,
            rate(&beside),
            (rate(&beside) / rate(&alone) - 1.0) * 100.0,
            beside.0.longest.as_secs_f64() * 1e3,
            beside.0.over_20_ms,
        );
    }
    tenure.close().expect("it ends well");
}

/// Lifecycles by several callers for as long as the other work takes, and at least so long.
fn work_for(tenure: &Tenure, at_least: Duration, other: impl FnOnce()) -> (Seen, Duration) {
    let stop = Arc::new(AtomicBool::new(false));
    let begin = Instant::now();
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
    let mut all = Seen::default();
    for caller in callers {
        let seen = caller.join().expect("a caller does not panic");
        all.done += seen.done;
        all.longest = all.longest.max(seen.longest);
        all.over_20_ms += seen.over_20_ms;
    }
    (all, took)
}

fn work(tenure: &Tenure, queue: &str, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    while !stop.load(Ordering::Relaxed) {
        let mut lap = Instant::now();
        let mut waited = |seen: &mut Seen| {
            let took = lap.elapsed();
            seen.longest = seen.longest.max(took);
            seen.over_20_ms += u64::from(took > Duration::from_millis(20));
            lap = Instant::now();
        };
        tenure.submit(new_task(queue, [b'x'; 100]).expect("it is small")).expect("it is taken");
        waited(&mut seen);
        let grants = tenure.lease(queue, &[queue], 1, Duration::ZERO).expect("it runs");
        waited(&mut seen);
        for grant in grants {
            tenure.complete(grant.lease(), "null").expect("it is in time");
            waited(&mut seen);
            seen.done += 1;
        }
    }
    seen
}

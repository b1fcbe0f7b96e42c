//! Lifecycles (submit, lease, complete) by one caller, by many threads, and by as many callers on
//! two threads.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use tenure_coordinator::request::Lease;
use tenure_coordinator::{Engine, Grant, Pending, Refusal};
use tenure_core::command::{CompleteTask, LeaseRef, LeaseTasks, SubmitTasks};
use tenure_record::name::{QueueName, WorkerName};
use tenure_record::terms::Payload;

use crate::calls::{self, new_task};
use crate::disk::{Folder, syncs_per_s};

const PAYLOAD: [u8; 100] = [b'x'; 100];
const SPAN: Duration = Duration::from_secs(3);
const MANY: usize = 1_000;

/// Each caller has a queue of its own, so that it gets what it submitted.
#[derive(Clone)]
struct Asks {
    queue: QueueName,
    worker: WorkerName,
}

impl Asks {
    fn of(caller: usize) -> Self {
        let queue = QueueName::parse(&format!("queue-{}", caller % 16)).expect("a name");
        let worker = WorkerName::parse(&format!("worker-{caller}")).expect("a name");
        Self { queue, worker }
    }

    fn submit(&self) -> SubmitTasks {
        let task = new_task(self.queue.as_str(), PAYLOAD).expect("it is small");
        SubmitTasks { tasks: vec![task] }
    }

    fn lease(&self, wait_ms: u64) -> Lease {
        let request = LeaseTasks {
            worker: self.worker.clone(),
            queues: vec![self.queue.clone()],
            tasks_max: NonZeroU32::MIN,
            lease_ms: None,
        };
        Lease { request, wait_ms }
    }

    fn complete(lease: LeaseRef) -> CompleteTask {
        let output = Payload::parse("output", b"null".to_vec()).expect("it is small");
        CompleteTask { lease, output, artifacts: Vec::new(), worker: None }
    }
}

fn leased(outcome: Result<Vec<Grant>, Refusal>) -> Option<LeaseRef> {
    outcome.ok()?.first().map(Grant::lease)
}

/// One caller: a worker is parked, so that submit and grant are one frame and the completion
/// another: two syncs for a lifecycle.
pub(crate) fn one() {
    let folder = Folder::new("one");
    let tenure = Engine::open(folder.path().join("data")).expect("a new folder opens");
    let asks = Asks::of(0);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (start, mut done) = (Instant::now(), 0_u64);
        while start.elapsed() < SPAN / 4 {
            let work = tenure.ask(asks.lease(10_000));
            tenure.ask(asks.submit()).wait().expect("it is taken");
            let lease = leased(work.wait()).expect("it was submitted");
            tenure.ask(Asks::complete(lease)).wait().expect("it is in time");
            done += 1;
        }
        ours.push(done as f64 / start.elapsed().as_secs_f64());
        bare.push(syncs_per_s(&folder, SPAN / 4));
    }
    let (ours, bare) = (median(ours), median(bare));
    println!(
        "one caller: {ours:.0} lifecycles/s of 2 frames; bare disk {bare:.0} syncs/s; {:.2} of half of it",
        ours / (bare / 2.0)
    );
}

/// A thousand threads, each with one request at a time.
pub(crate) fn threads() {
    let folder = Folder::new("threads");
    let tenure = Engine::open(folder.path().join("data")).expect("a new folder opens");
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let threads: Vec<_> = (0..MANY)
        .map(|caller| {
            let (tenure, stop, done) = (tenure.clone(), Arc::clone(&stop), Arc::clone(&done));
            let asks = Asks::of(caller);
            let thread = std::thread::Builder::new().stack_size(128 << 10);
            let work = move || {
                while !stop.load(Ordering::Relaxed) {
                    tenure.ask(asks.submit()).wait().expect("it is taken");
                    if let Some(lease) = leased(tenure.ask(asks.lease(100)).wait()) {
                        tenure.ask(Asks::complete(lease)).wait().expect("it is in time");
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            };
            thread.spawn(work).expect("a thread can be made")
        })
        .collect();
    report(&folder, &tenure, "threads", || done.load(Ordering::Relaxed));
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("a caller does not panic");
    }
}

/// A thousand callers, each with one request at a time, on one thread of a tiny executor.
pub(crate) fn tasks() {
    let folder = Folder::new("tasks");
    let tenure = Engine::open(folder.path().join("data")).expect("a new folder opens");
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let driver = {
        let (tenure, stop, done) = (tenure.clone(), Arc::clone(&stop), Arc::clone(&done));
        std::thread::spawn(move || drive(&tenure, &stop, &done))
    };
    report(&folder, &tenure, "tasks", || done.load(Ordering::Relaxed));
    stop.store(true, Ordering::Relaxed);
    driver.join().expect("a caller does not panic");
}

/// Counts what is done in a second, several times.
fn report(folder: &Folder, tenure: &Engine, name: &str, done: impl Fn() -> u64) {
    // A thousand threads touch much memory before they have all they need.
    std::thread::sleep(SPAN);
    let before = calls::status(tenure).work;
    let mut rates = Vec::new();
    for _ in 0..5 {
        let (start, from) = (Instant::now(), done());
        std::thread::sleep(SPAN / 3);
        rates.push((done() - from) as f64 / start.elapsed().as_secs_f64());
    }
    let after = calls::status(tenure).work;
    let (frames, records) = (after.frames - before.frames, after.records - before.records);
    println!(
        "{MANY} callers as {name}: {:.0} lifecycles/s (of {:.0?}), {} records a frame, {} bytes a record",
        median(rates.clone()),
        rates,
        records / frames.max(1),
        (after.bytes - before.bytes) / records.max(1),
    );
    let _ = folder;
}

struct Shared {
    ready: Mutex<Vec<usize>>,
    driver: std::thread::Thread,
}

struct CallerWaker {
    caller: usize,
    shared: Arc<Shared>,
}

impl Wake for CallerWaker {
    fn wake(self: Arc<Self>) {
        let mut ready = self.shared.ready.lock().expect("nobody panics with it");
        ready.push(self.caller);
        if ready.len() == 1 {
            drop(ready);
            self.shared.driver.unpark();
        }
    }
}

enum Doing {
    Submit(Pending<SubmitTasks>),
    Lease(Pending<Lease>),
    Complete(Pending<CompleteTask>),
}

fn drive(tenure: &Engine, stop: &AtomicBool, done: &AtomicU64) {
    let shared = Arc::new(Shared { ready: Mutex::new(Vec::new()), driver: std::thread::current() });
    let asks: Vec<_> = (0..MANY).map(Asks::of).collect();
    let wakers: Vec<Waker> = (0..MANY)
        .map(|caller| Arc::new(CallerWaker { caller, shared: Arc::clone(&shared) }).into())
        .collect();
    let mut callers: Vec<Doing> =
        asks.iter().map(|asks| Doing::Submit(tenure.ask(asks.submit()))).collect();
    let mut ready: Vec<usize> = (0..MANY).collect();
    while !stop.load(Ordering::Relaxed) {
        for caller in ready.drain(..) {
            let mut context = Context::from_waker(&wakers[caller]);
            loop {
                let doing = &mut callers[caller];
                *doing = match doing {
                    Doing::Submit(pending) => match Pin::new(pending).poll(&mut context) {
                        Poll::Ready(_) => Doing::Lease(tenure.ask(asks[caller].lease(100))),
                        Poll::Pending => break,
                    },
                    Doing::Lease(pending) => match Pin::new(pending).poll(&mut context) {
                        Poll::Ready(outcome) => match leased(outcome) {
                            Some(lease) => Doing::Complete(tenure.ask(Asks::complete(lease))),
                            None => Doing::Submit(tenure.ask(asks[caller].submit())),
                        },
                        Poll::Pending => break,
                    },
                    Doing::Complete(pending) => match Pin::new(pending).poll(&mut context) {
                        Poll::Ready(outcome) => {
                            outcome.expect("it is in time");
                            done.fetch_add(1, Ordering::Relaxed);
                            Doing::Submit(tenure.ask(asks[caller].submit()))
                        }
                        Poll::Pending => break,
                    },
                };
            }
        }
        std::mem::swap(&mut ready, &mut *shared.ready.lock().expect("nobody panics with it"));
        if ready.is_empty() {
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

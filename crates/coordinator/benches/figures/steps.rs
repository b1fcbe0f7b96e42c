//! The longest step while a hundred thousand leases end at once and ten thousand workers wait.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_coordinator::request::{GetStatus, Lease};
use tenure_coordinator::{
    Coordinator, Inbox, Next, Reading, Refusal, Request, Respond, Responder, WakesFor, recover,
};
use tenure_core::command::{LeaseTasks, SubmitTasks};
use tenure_record::name::{QueueName, WorkerName};
use tenure_record::terms::LeaseMs;
use tenure_wal::disk::real::RealDisk;
use tenure_wal::{Claim, LogThread, Options};

use crate::calls::new_task;
use crate::disk::Folder;

const LEASES: usize = 100_000;
const PARKED: usize = 10_000;

/// A caller that does not listen, and is not gone either.
#[derive(Debug)]
struct Quiet;

impl<R: Request> Respond<R> for Quiet {
    fn is_gone(&self) -> bool {
        false
    }

    fn respond(&self, _: Result<R::Response, Refusal>) -> Result<(), Result<R::Response, Refusal>> {
        Ok(())
    }
}

fn ask<R: Request>(inbox: &Inbox, request: R) {
    inbox.push(request.seal(Responder::new(Arc::new(Quiet))));
}

pub(crate) fn expiry() {
    let folder = Folder::new("steps");
    let disk = RealDisk::open(folder.path().join("data")).expect("a folder can be made");
    let inbox = Inbox::default();
    let bell = inbox.clone();
    let options = Options::new(7);
    let recovery = recover(Claim::new(&disk, options).expect("it is free"), 1, |_| {})
        .expect("a new log opens")
        .map_log(|wal| LogThread::start(wal, move || bell.ring()))
        .expect("a thread can be made");
    let at = |ms| Reading { monotonic_ms: ms, wall_ms: 1_700_000_000_000 + ms };
    let mut coordinator = Coordinator::new(recovery, inbox.clone(), at(0), 3);
    let queue = QueueName::parse("mail").expect("a name");
    let lease = |worker: usize, max: u32| LeaseTasks {
        worker: WorkerName::parse(&format!("worker-{worker}")).expect("a name"),
        queues: vec![queue.clone()],
        tasks_max: NonZeroU32::new(max).expect("more than none"),
        lease_ms: Some(LeaseMs::parse(50_000).expect("in range")),
    };
    for _ in 0..LEASES / 1_000 {
        let tasks = vec![new_task("mail", [b'x'; 100]).expect("it is small"); 1_000];
        ask(&inbox, SubmitTasks { tasks });
        ask(&inbox, Lease { request: lease(0, 1_000), wait_ms: 0 });
        settle(&mut coordinator, &inbox, at(1));
    }
    for worker in 0..PARKED {
        ask(&inbox, Lease { request: lease(worker, 1), wait_ms: 60_000 });
    }
    settle(&mut coordinator, &inbox, at(2));
    // Everything ends in this very millisecond.
    let (mut longest, mut steps, start) = (Duration::ZERO, 0, Instant::now());
    loop {
        ask(&inbox, GetStatus);
        let begin = Instant::now();
        let next = coordinator.step(at(50_002)).expect("the disk works");
        longest = longest.max(begin.elapsed());
        steps += 1;
        if next != Next::Now && coordinator.is_settled() && !coordinator.has_due(at(50_002)) {
            break;
        }
        if next != Next::Now {
            inbox.wait(WakesFor::TheBell, Some(Duration::from_millis(50)));
        }
    }
    println!(
        "{LEASES} leases end with {PARKED} parked: longest of {steps} steps {:.1} ms, all in {:.0} ms",
        longest.as_secs_f64() * 1e3,
        start.elapsed().as_secs_f64() * 1e3
    );
}

fn settle(coordinator: &mut Coordinator<LogThread<RealDisk>>, inbox: &Inbox, reading: Reading) {
    loop {
        let next = coordinator.step(reading).expect("the disk works");
        if next != Next::Now {
            if coordinator.is_settled() {
                return;
            }
            inbox.wait(WakesFor::TheBell, Some(Duration::from_millis(50)));
        }
    }
}

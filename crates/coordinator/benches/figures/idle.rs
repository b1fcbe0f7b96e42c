//! What waiting costs: ten thousand parked lease requests and a million delayed tasks.

use std::num::NonZeroU32;
use std::time::Duration;

use tenure_coordinator::request::{Lease, SubmitTasks};
use tenure_coordinator::{Engine, Pending};
use tenure_core::command::{LeaseTasks, Start};
use tenure_record::name::{QueueName, WorkerName};
use tenure_record::terms::SpanMs;

use crate::calls::{self, new_task};
use crate::disk::Folder;

pub(crate) fn idle() {
    let folder = Folder::new("idle");
    let tenure = Engine::open(folder.path().join("data")).expect("a new folder opens");
    for _ in 0..100 {
        let mut task = new_task("later", [b'x'; 100]).expect("it is small");
        task.start = Start::After(SpanMs::parse("delay_ms", 86_400_000).expect("in range"));
        tenure.ask(SubmitTasks { tasks: vec![task; 10_000] }).wait().expect("it is taken");
    }
    let parked: Vec<Pending<Lease>> = (0..10_000)
        .map(|worker| {
            let request = LeaseTasks {
                worker: WorkerName::parse(&format!("worker-{worker}")).expect("a name"),
                queues: vec![QueueName::parse("mail").expect("a name")],
                tasks_max: NonZeroU32::MIN,
                lease_ms: None,
            };
            tenure.ask(Lease { request, wait_ms: 60_000 })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(3));
    let status = calls::status(&tenure);
    let span = Duration::from_secs(20);
    let before = cpu_ticks();
    std::thread::sleep(span);
    let spent = (cpu_ticks() - before) as f64 / 100.0;
    println!(
        "idle with {} parked and {} delayed: {:.3} % of a core over {span:?}",
        status.parked_leases,
        status.tasks.of(tenure_record::state::TaskState::Waiting),
        spent / span.as_secs_f64() * 100.0
    );
    drop(parked);
}

/// Hundredths of a second that this process has used so far.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("this is Linux");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let field = |n: usize| after_name.split_whitespace().nth(n).and_then(|f| f.parse::<u64>().ok());
    field(11).unwrap_or(0) + field(12).unwrap_or(0)
}

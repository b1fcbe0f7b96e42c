//! What the disk and the memory hold at full load, while finished tasks are forgotten: it has to
//! come to a level, and stay there.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tenure_coordinator::{Engine, EngineOptions, Keep, Upkeep};
use tenure_core::command::{CompleteTask, ReportTasks, Retention, SubmitTasks};
use tenure_record::terms::Payload;

use crate::calls::{self, new_task};
use crate::disk::{Folder, syncs_per_s};

/// So long finished tasks are kept, or until there are as many as are kept at all: at full load
/// that is sooner.
const KEPT: Duration = Duration::from_secs(3_600);
const SPAN: Duration = Duration::from_secs(480);
const SAMPLE: Duration = Duration::from_secs(10);
const CALLERS: usize = 4;
const BATCH: u32 = 100;

pub(crate) fn curve() {
    let folder = Folder::new("curve");
    println!("bare disk: {:.0} syncs/s", syncs_per_s(&folder, Duration::from_secs(2)));
    let data = folder.path().join("data");
    let age_ms = u64::try_from(KEPT.as_millis()).expect("it is short");
    let retention = Retention { age_ms, ..Retention::default() };
    let upkeep = Upkeep { log_keep: Keep::Bytes(1 << 30), retention, ..Upkeep::default() };
    let tenure = EngineOptions::default().upkeep(upkeep).open(&data, |_| {}).expect("it opens");
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (tenure, stop) = (tenure.clone(), Arc::clone(&stop));
            std::thread::spawn(move || work(&tenure, &format!("queue-{caller}"), &stop))
        })
        .collect();
    let begin = Instant::now();
    println!("finished tasks are kept for {} s or up to {}", KEPT.as_secs(), retention.tasks_max);
    println!("1 GiB of the log is kept beside what the snapshots need");
    println!("{:>6} {:>10} {:>10} {:>10} {:>12}", "s", "disk MB", "memory MB", "tasks", "ended");
    while begin.elapsed() < SPAN {
        std::thread::sleep(SAMPLE);
        let status = calls::status(&tenure);
        println!(
            "{:>6} {:>10} {:>10} {:>10} {:>12}",
            begin.elapsed().as_secs(),
            bytes_of(&data) >> 20,
            crate::start::kib("VmRSS") >> 10,
            status.tasks.terminal(),
            status.work.purged + status.tasks.terminal(),
        );
    }
    stop.store(true, Ordering::Relaxed);
    callers.into_iter().for_each(|caller| caller.join().expect("a caller does not panic"));
    tenure.close().expect("it ends well");
}

fn work(tenure: &Engine, queue: &str, stop: &AtomicBool) {
    let output = || Payload::parse("output", b"null".to_vec()).expect("it is small");
    while !stop.load(Ordering::Relaxed) {
        let tasks = vec![new_task(queue, [b'x'; 100]).expect("it is small"); BATCH as usize];
        tenure.ask(SubmitTasks { tasks }).wait().expect("room");
        let grants = calls::lease(tenure, queue, queue, BATCH).expect("it runs");
        let completes =
            grants.iter().map(|grant| CompleteTask::plain(grant.lease(), output())).collect();
        let reports = ReportTasks { completes, ..ReportTasks::default() };
        tenure.ask(reports).wait().expect("in time");
    }
}

fn bytes_of(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

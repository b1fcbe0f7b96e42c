//! A start: ten million records are read, checked and applied.

use std::time::Instant;

use tenure_core::command::{CompleteTask, SubmitTasks};
use tenure_record::terms::Payload;
use tenure_wal::Durability;

use crate::calls::{self, new_task};
use crate::disk::Folder;

const RECORDS: u64 = 10_000_000;

pub(crate) fn replay() {
    let folder = Folder::new("replay");
    let data = folder.path().join("data");
    fill(&data);
    for round in 0..3 {
        let start = Instant::now();
        let mut records = 0;
        let tenure = tenure_coordinator::EngineOptions::default()
            .open(&data, |progress| records = progress.records)
            .expect("it is sound");
        let took = start.elapsed().as_secs_f64();
        let last = tenure.last_lsn().0;
        println!(
            "replay {round}: {last} records in {took:.2} s, {:.2} million/s (last progress at {records}), {} tasks",
            last as f64 / took / 1e6,
            calls::status(&tenure).tasks.terminal(),
        );
        tenure.close().expect("it ends well");
    }
    let bytes: u64 = std::fs::read_dir(&data)
        .expect("it is there")
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .map(|metadata| metadata.len())
        .sum();
    println!("the log has {} MB", bytes >> 20);
}

/// Single submits, grants and completions, as most logs have them.
fn fill(data: &std::path::Path) {
    let relaxed = tenure_coordinator::EngineOptions::default().durability(Durability::Os);
    let tenure = relaxed.open(data, |_| {}).expect("a new folder opens");
    let output = || Payload::parse("output", b"null".to_vec()).expect("it is small");
    while tenure.last_lsn().0 < RECORDS {
        let submits: Vec<_> = (0..4_000)
            .map(|_| {
                let tasks = vec![new_task("mail", [b'x'; 100]).expect("it is small")];
                tenure.ask(SubmitTasks { tasks })
            })
            .collect();
        for submit in submits {
            submit.wait().expect("it is taken");
        }
        let mut leases = Vec::new();
        for _ in 0..4 {
            let grants = calls::lease(&tenure, "worker", "mail", 1_000);
            leases.extend(grants.expect("there is work").iter().map(|grant| grant.lease()));
        }
        let completes: Vec<_> = leases
            .into_iter()
            .map(|lease| {
                let complete =
                    CompleteTask { lease, output: output(), artifacts: Vec::new(), worker: None };
                tenure.ask(complete)
            })
            .collect();
        for complete in completes {
            complete.wait().expect("it is in time");
        }
    }
    tenure.close().expect("it ends well");
}

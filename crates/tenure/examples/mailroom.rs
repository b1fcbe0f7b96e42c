//! Tenure inside a program: a folder, a worker with two slots, and every change as it happens.
//!
//! `cargo run -p tenure --example mailroom -- some-folder`, as often as you like; kill it in between
//! and start it again.

use std::time::Duration;

use tenure::{Failure, NewTask, Tenure};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name the folder in which the tasks are kept")?;
    let tenure = Tenure::builder(&folder).on_warning(|warning| eprintln!("{warning}")).open()?;
    let start = tenure.position();
    println!("{folder} is open; it has {} records\n", start.lsn);

    let mails = ["ada", "grace", "nobody", "barbara"].map(|to| NewTask::new("mail").payload(to));
    let submitted = tenure.submit_batch(mails).wait()?;

    let worker =
        tenure.worker("mailroom").slots(2).handle("mail", |task| match task.payload_bytes() {
            b"nobody" => Err(Failure::permanent("there is nobody of that name")),
            name => Ok(format!("delivered to {}", String::from_utf8_lossy(name))),
        });
    let drain = worker.drain();
    let running = std::thread::spawn(move || worker.run());
    for task in submitted {
        tenure.wait(task.task_id, Duration::from_secs(10)).wait()?;
    }
    drain.start();
    running.join().expect("a worker does not panic")?;

    let mut watch = tenure.watch(start);
    while let Some(change) = watch.next(Duration::ZERO)? {
        let Some(task) = change.task() else { continue };
        let from = task.step.from.map_or("-", |state| state.as_str());
        let worker = task.step.worker.as_deref().unwrap_or_default();
        println!("task {}: {from} -> {} {worker}", task.task_id, task.step.to);
    }
    tenure.close()?;
    Ok(())
}

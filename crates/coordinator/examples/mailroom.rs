//! Tenure inside a program: a folder, two workers, and everything that happens as it happens.
//!
//! `cargo run -p tenure-coordinator --example mailroom -- some-folder`, as often as you like; kill
//! it in between and start it again.

use std::time::Duration;

use tenure_coordinator::{Error, Position, Tenure, new_task};
use tenure_core::command::Retry;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("say in which folder the tasks are to be kept")?;
    let tenure = Tenure::open(&folder)?;
    let from = tenure.last_lsn();
    println!("{folder} is open; {from} records were in it\n");

    let ids: Vec<_> = ["ada", "grace", "nobody", "barbara"]
        .iter()
        .map(|name| tenure.submit(new_task("mail", format!(r#"{{"to":"{name}"}}"#))?))
        .collect::<Result<_, Error>>()?;

    std::thread::scope(|scope| -> Result<(), Error> {
        for worker in ["anna", "ben"] {
            let tenure = tenure.clone();
            scope.spawn(move || deliver(&tenure, worker));
        }
        for id in ids {
            tenure.wait(id, Duration::from_secs(10))?;
        }
        Ok(())
    })?;

    let mut watch = tenure.watch(Position::after(from));
    while let Some(change) = watch.next(Duration::ZERO)? {
        let step = change.step;
        let from = step.from.map_or("-", |state| state.as_str());
        let worker = step.worker.as_deref().unwrap_or("");
        println!("task {}: {from} -> {} {worker}", change.task_id, step.to);
    }
    tenure.close()?;
    Ok(())
}

/// Takes what there is until nothing comes for a while. Whatever goes wrong here, no task is lost.
fn deliver(tenure: &Tenure, worker: &str) -> Result<(), Error> {
    loop {
        let grants = tenure.lease(worker, &["mail"], 1, Duration::from_millis(300))?;
        if grants.is_empty() {
            return Ok(());
        }
        for grant in grants {
            match grant
                .payload
                .read()
                .expect("the spill file can be read")
                .windows(6)
                .any(|part| part == b"nobody")
            {
                true => tenure.fail(grant.lease(), "there is nobody of that name", Retry::Never)?,
                false => tenure.complete(grant.lease(), r#""delivered""#)?,
            };
        }
    }
}

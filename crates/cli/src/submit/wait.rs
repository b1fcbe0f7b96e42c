//! `tenure submit --wait`: following a task to its end, also over a restart of the server.

use std::io::{self, IsTerminal};
use std::time::Duration;

use tenure_sdk::{Client, Error, Task, TaskState};
use tokio::time::Instant;

use crate::Format;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::output::{self, Lines};

/// One question; the task is asked for again and again.
const ASK: Duration = Duration::from_secs(60);
/// How long a server may be away.
const AWAY_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

/// Waits, and prints what came of it. A task that did not come to a good end is a failure.
pub(super) async fn print_end(client: &Client, id: u64, format: Format) -> Result<(), Failure> {
    if io::stderr().is_terminal() {
        output::complain(&format!("task {id} is submitted; waiting for its end"));
    }
    let task = end(client, id).await.inspect_err(|_| {
        output::complain(&format!("task {id} was submitted; `tenure task get {id}` shows it"));
    })?;
    let mut out = Lines::new();
    let is_good = task.state == TaskState::Completed;
    match format {
        Format::Json => json::print(&mut out, &task),
        Format::Table if is_good => json::print(&mut out, &task.output),
        Format::Table => {}
    }
    out.finish();
    match is_good {
        true => Ok(()),
        false => {
            let (task_id, state) = (task.id, task.state);
            Err(Failure::Ended { task_id, state, error: task.error })
        }
    }
}

async fn end(client: &Client, id: u64) -> Result<Task, Error> {
    let mut heard = Instant::now();
    loop {
        match client.tasks().wait(id, ASK).await {
            Ok(task) if task.finished_at.is_some() => return Ok(task),
            Ok(_) => heard = Instant::now(),
            Err(error) if error.is_retryable() && heard.elapsed() < AWAY_MAX => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

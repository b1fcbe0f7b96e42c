//! Sample tasks: commands for a worker that runs programs. Their keys keep them from being submitted
//! twice.

use std::time::Duration;

use tenure_sdk::{Backoff, BackoffKind, Client, Code, Error, NewTask};

/// Where they wait.
pub(super) const QUEUE: &str = "samples";

/// Fails at the first two attempts, and says so.
const THIRD_TIME_LUCKY: &str = "\
    test \"$TENURE_ATTEMPT\" -ge 3 && exec echo \"done at attempt $TENURE_ATTEMPT\"; \
    echo \"attempt $TENURE_ATTEMPT fails on purpose\" >&2; exit 1";

pub(super) async fn submit(client: &Client) -> Result<(), Error> {
    for task in tasks() {
        match client.tasks().submit(task).await {
            Ok(_) => {}
            // An earlier version had another task under this key, which is as good.
            Err(error) if *error.code() == Code::Conflict => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn tasks() -> [NewTask; 5] {
    let second = Duration::from_secs(1);
    let fixed =
        Backoff { kind: Some(BackoffKind::Fixed), initial_ms: Some(1_000), ..Backoff::default() };
    [
        command("echo", &["echo", "hello from Tenure"]),
        command("date", &["date"]),
        command("third-time-lucky", &["sh", "-c", THIRD_TIME_LUCKY])
            .backoff(fixed)
            .tag("sample", "fails twice"),
        command("later", &["echo", "ten seconds later"]).delay(10 * second),
        command("slow", &["sleep", "3"]).priority(10),
    ]
}

fn command(name: &str, argv: &[&str]) -> NewTask {
    let payload = serde_json::json!({ "argv": argv }).to_string();
    NewTask::new(QUEUE, payload).key(format!("sample/{name}"))
}

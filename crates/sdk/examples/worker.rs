//! A worker for the queue `mail`, and somebody who submits to it.
//!
//! Start a server with `tenure serve --data ./tenure-data`, then this with
//! `cargo run -p tenure-sdk --example worker`.

use std::time::Duration;

use tenure_sdk::{Client, Error, Failure, NewTask, Output, Task, Worker};

async fn send(task: Task) -> Result<Output, Failure> {
    let payload = String::from_utf8_lossy(task.payload()).into_owned();
    println!("attempt {} of task {}: {payload}", task.attempt(), task.id());
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(200)) => Ok(Output::from(r#""sent""#)),
        () = task.canceled() => Err(Failure::new("somebody changed their mind")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let server = std::env::var("TENURE_SERVER");
    let client = Client::connect(server.as_deref().unwrap_or("http://127.0.0.1:7070")).await?;
    let worker = Worker::new(client.clone()).queue("mail", send).slots(8).drain_on_ctrl_c();
    let drain = worker.drain_handle();
    let running = tokio::spawn(worker.run());

    let ids = client.submit_batch((1..=20).map(|n| NewTask::new("mail", n.to_string()))).await?;
    for id in ids {
        let task = client.wait(id, Duration::from_secs(60)).await?;
        println!("task {id} is {}", task.state().as_str_name().trim_start_matches("TASK_STATE_"));
    }
    drain.drain();
    running.await.unwrap_or(Ok(()))
}

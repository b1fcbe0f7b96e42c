//! A worker for the queue `mail`, and a client that submits to it.
//!
//! Start a server with `tenure serve --data ./tenure-data`, then this with
//! `cargo run -p tenure-sdk --example worker`.

use std::time::Duration;

use tenure_sdk::{Client, Error, Failure, LeasedTask, NewTask, Output, Worker};

async fn send(task: LeasedTask) -> Result<Output, Failure> {
    let letter: u32 = task.payload()?;
    println!("attempt {} of task {}: letter {letter}", task.attempt(), task.id());
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(200)) => Output::json(&"sent"),
        () = task.canceled() => Err(Failure::new("the task was canceled")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let server = std::env::var("TENURE_SERVER");
    let client = Client::connect(server.as_deref().unwrap_or("http://127.0.0.1:7070")).await?;
    let worker = Worker::new(client.clone()).handle("mail", send).slots(8).drain_on_ctrl_c();
    let drain = worker.drain_handle();
    let running = tokio::spawn(worker.run());

    let tasks = client.tasks();
    let ids = tasks.submit_batch((1..=20).map(|n| NewTask::new("mail", n.to_string()))).await?;
    for id in ids {
        let task = tasks.wait(id, Duration::from_secs(60)).await?;
        println!("task {id} is {}", task.state);
    }
    drain.drain();
    running.await.unwrap_or(Ok(()))
}

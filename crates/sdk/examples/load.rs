//! How many lifecycles (submit, lease, complete) a server does in a second over streams:
//! `cargo run --release -p tenure-sdk --example load -- [address] [lifecycles] [batch] [streams]`.
//! With `worker` as the last word, the work is done by the SDK's workers and not by hand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tenure_sdk::wire as v1;
use tenure_sdk::{Client, Error, Output, Task, Worker};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Batches that may be without an acknowledgement, and the credit of a worker, in batches.
const AHEAD: usize = 4;
const PAYLOAD: [u8; 100] = [b'x'; 100];

#[tokio::main]
async fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: u64| args.get(at).and_then(|n| n.parse().ok()).unwrap_or(usual);
    let address = args.first().map_or("http://127.0.0.1:7070", String::as_str).to_owned();
    let (total, batch, streams) = (number(1, 1_000_000), number(2, 100), number(3, 2));
    let each = total / streams / batch * batch;
    let start = Instant::now();
    let mut running = Vec::new();
    for stream in 0..streams {
        let client = Client::connect(&address).await?;
        let queue = format!("load-{}-{stream}", std::process::id());
        running.push(tokio::spawn(submit(client.clone(), queue.clone(), each, batch)));
        running.push(match args.last().is_some_and(|last| last == "worker") {
            true => tokio::spawn(work_in_slots(client, queue, each, batch)),
            false => tokio::spawn(work(client, queue, each, batch)),
        });
    }
    for one in running {
        one.await.map_err(|_| tonic::Status::internal("a stream ended"))??;
    }
    let (count, spent) = (each * streams, start.elapsed());
    let per_s = count as f64 / spent.as_secs_f64();
    println!("{count} lifecycles in {:.2} s: {per_s:.0} a second", spent.as_secs_f64());
    Ok(())
}

async fn submit(client: Client, queue: String, count: u64, batch: u64) -> Result<(), Error> {
    let (send, batches) = mpsc::channel(AHEAD);
    let mut tasks = client.tasks();
    let stream = tasks.submit_stream(ReceiverStream::new(batches));
    let task = v1::NewTask { queue, payload: PAYLOAD.to_vec(), ..Default::default() };
    let sending = async {
        for sequence in 0..count / batch {
            let tasks = vec![task.clone(); batch as usize];
            if send.send(v1::SubmitStreamRequest { sequence, tasks }).await.is_err() {
                break;
            }
        }
        drop(send);
    };
    let receiving = async {
        let mut stream = stream.await?.into_inner();
        while let Some(one) = stream.message().await? {
            if let Some(problem) = one.problem {
                return Err(tonic::Status::aborted(problem.message));
            }
        }
        Ok(())
    };
    let ((), received) = tokio::join!(sending, receiving);
    Ok(received?)
}

async fn work_in_slots(client: Client, queue: String, count: u64, batch: u64) -> Result<(), Error> {
    let worker = Worker::new(client).slots((AHEAD as u64 * batch) as u32);
    let (drain, begun) = (worker.drain_handle(), AtomicU64::new(0));
    let handler = move |_: Task| {
        if begun.fetch_add(1, Ordering::Relaxed) + 1 == count {
            drain.drain();
        }
        std::future::ready(Ok(Output::from("1")))
    };
    worker.queue(queue, handler).run().await
}

async fn work(client: Client, queue: String, count: u64, batch: u64) -> Result<(), Error> {
    let (send, outgoing) = mpsc::channel(64);
    let gone = |_| tonic::Status::aborted("the stream ended");
    let hello = v1::Hello { worker: queue.clone(), queues: vec![queue], ..Default::default() };
    let credit = AHEAD as u32 * batch as u32;
    let first = v1::WorkRequest { hello: Some(hello), credit, ..Default::default() };
    send.send(first).await.map_err(gone)?;
    let mut incoming = client.workers().work(ReceiverStream::new(outgoing)).await?.into_inner();
    let (mut done, mut sequence) = (0, 0);
    while done < count {
        let next = tokio::time::timeout(Duration::from_secs(60), incoming.message()).await;
        let next = next.map_err(|_| tonic::Status::aborted("nothing comes"))??;
        let next = next.unwrap_or_default();
        for results in next.results {
            done += results.results.iter().filter(|result| result.code.is_empty()).count() as u64;
        }
        if next.leases.is_empty() {
            continue;
        }
        let complete = |lease: v1::Lease| v1::CompleteReport {
            task_id: lease.task_id,
            lease_id: lease.lease_id,
            output: b"1".to_vec(),
        };
        let credit = next.leases.len() as u32;
        let completes = next.leases.into_iter().map(complete).collect();
        sequence += 1;
        let reports = Some(v1::Reports { sequence, completes, ..Default::default() });
        let message = v1::WorkRequest { credit, reports, ..Default::default() };
        send.send(message).await.map_err(gone)?;
    }
    Ok(())
}

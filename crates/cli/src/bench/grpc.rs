//! The load over streams: each connection has one on which it submits and one on which it works.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_proto::v1;
use tenure_sdk::Error;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use v1::tasks_client::TasksClient;
use v1::workers_client::WorkersClient;

use super::Load;
use super::tally::{Tally, collect};
use super::wire::{Connection, connect, refused};
use crate::client::Server;
use crate::failure::Failure;

/// Batches that may be without an acknowledgement, and the credit of a worker, in batches.
const AHEAD: u32 = 4;
/// Messages of a worker that wait to be sent.
const OUTGOING_MAX: usize = 64;
/// How often a worker that gets nothing looks whether all is done.
const GLANCE: Duration = Duration::from_millis(50);
/// How long nothing may come before it is given up.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(
    server: &Server,
    load: &Arc<Load>,
    connections: u32,
) -> Result<Tally, Failure> {
    let mut running = Vec::new();
    for number in 0..connections {
        let connection = connect(server).await?;
        running.push(tokio::spawn(submit(connection.clone(), Arc::clone(load))));
        running.push(tokio::spawn(work(connection, Arc::clone(load), number)));
    }
    collect(running).await
}

async fn submit(connection: Connection, load: Arc<Load>) -> Result<Tally, Failure> {
    let (send, batches) = mpsc::channel(AHEAD as usize);
    let (sent, mut waiting) = mpsc::channel(AHEAD as usize);
    let task = v1::NewTask {
        queue: load.queue.clone(),
        payload: load.payload.clone(),
        ..Default::default()
    };
    let sending = async {
        while let Some(tasks) = load.take() {
            // Nobody listens any more: the other half says why.
            if sent.send((Instant::now(), tasks)).await.is_err() {
                break;
            }
            let tasks = vec![task.clone(); tasks as usize];
            if send.send(v1::SubmitStreamRequest { sequence: 0, tasks }).await.is_err() {
                break;
            }
        }
        drop((send, sent));
    };
    let receiving = async {
        let mut tally = Tally::default();
        let mut client = TasksClient::new(connection).max_decoding_message_size(usize::MAX);
        let answers = client.submit_stream(ReceiverStream::new(batches)).await;
        let mut answers = answers.map_err(|status| refused(&status))?.into_inner();
        while let Some(answer) = answers.message().await.map_err(|status| refused(&status))? {
            // Acknowledgements come in the order of the batches.
            let Some((start, tasks)) = waiting.recv().await else { break };
            tally.took(start.elapsed());
            if let Some(problem) = answer.problem {
                let wait = Duration::from_millis(problem.retry_after_ms.unwrap_or(0));
                tally.refused(|| problem.message);
                load.give_back(tasks);
                tokio::time::sleep(wait).await;
            }
        }
        Ok(tally)
    };
    tokio::join!(sending, receiving).1
}

async fn work(connection: Connection, load: Arc<Load>, number: u32) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let mut stream = Stream::open(connection, &load, &format!("bench-{number}"), AHEAD).await?;
    let mut last = Instant::now();
    while !load.is_done() {
        let Some(news) = stream.next(GLANCE).await? else {
            if last.elapsed() > PATIENCE {
                return Err(Error::unavailable("no task and no answer came for a minute").into());
            }
            continue;
        };
        last = Instant::now();
        tally.requests += 1;
        let results = news.results.iter().flat_map(|results| &results.results);
        let done = results.filter(|result| result.code.is_empty()).count() as u64;
        tally.lifecycles += done;
        load.complete(done);
        stream.complete(news.leases).await?;
    }
    Ok(tally)
}

/// A worker's stream.
pub(super) struct Stream {
    outgoing: mpsc::Sender<v1::WorkRequest>,
    incoming: tonic::Streaming<v1::WorkResponse>,
    sequence: u64,
}

impl Stream {
    pub(super) async fn open(
        connection: Connection,
        load: &Load,
        worker: &str,
        batches: u32,
    ) -> Result<Self, Failure> {
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let hello = v1::Hello {
            worker: worker.to_owned(),
            queues: vec![load.queue.clone()],
            ..Default::default()
        };
        let credit = batches * load.batch;
        let first = v1::WorkRequest { hello: Some(hello), credit, ..Default::default() };
        outgoing.send(first).await.map_err(|_| gone())?;
        let mut workers = WorkersClient::new(connection).max_decoding_message_size(usize::MAX);
        let incoming = workers.work(ReceiverStream::new(messages)).await;
        let incoming = incoming.map_err(|status| refused(&status))?.into_inner();
        Ok(Self { outgoing, incoming, sequence: 0 })
    }

    /// The next message; nothing if none came in time.
    pub(super) async fn next(
        &mut self,
        within: Duration,
    ) -> Result<Option<v1::WorkResponse>, Failure> {
        match tokio::time::timeout(within, self.incoming.message()).await {
            Err(_) => Ok(None),
            Ok(message) => {
                let message = message.map_err(|status| refused(&status))?;
                Ok(Some(message.ok_or_else(gone)?))
            }
        }
    }

    /// Completes what is held, and can take as many more.
    pub(super) async fn complete(&mut self, leases: Vec<v1::Lease>) -> Result<(), Failure> {
        if leases.is_empty() {
            return Ok(());
        }
        let credit = leases.len() as u32;
        let complete = |lease: v1::Lease| v1::CompleteReport {
            task_id: lease.task_id,
            lease_id: lease.lease_id,
            output: b"1".to_vec(),
            artifacts: Vec::new(),
            worker: None,
        };
        let completes = leases.into_iter().map(complete).collect();
        self.sequence += 1;
        let reports = v1::Reports { sequence: self.sequence, completes, ..Default::default() };
        let message = v1::WorkRequest { credit, reports: Some(reports), ..Default::default() };
        Ok(self.outgoing.send(message).await.map_err(|_| gone())?)
    }
}

fn gone() -> Error {
    Error::unavailable("the stream ended")
}

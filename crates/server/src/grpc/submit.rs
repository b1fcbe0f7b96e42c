//! Submitting over a stream: batch after batch, each acknowledged once it is durable. The next one
//! need not wait for that.

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tenure_code::Code;
use tenure_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::Door;
use super::status::{next_message, shown};
use crate::limits::STREAM_REQUESTS_MAX;
use crate::problem::Problem;
use crate::wire::request;

type Acknowledgement = v1::SubmitStreamResponse;

/// Acknowledgements, in the order of the batches.
pub(super) type Acknowledged = ReceiverStream<Result<Acknowledgement, Status>>;

/// Takes batches until the client has no more, or the server stops.
pub(super) fn acknowledge(
    door: Door,
    mut batches: Streaming<v1::SubmitStreamRequest>,
) -> Acknowledged {
    let (send, receive) = mpsc::channel(STREAM_REQUESTS_MAX);
    tokio::spawn(async move {
        let mut stop = door.app.stopping();
        let mut under_way = FuturesOrdered::new();
        let (mut is_open, mut failed) = (true, None);
        while is_open || !under_way.is_empty() {
            tokio::select! {
                Some(acknowledgement) = under_way.next(), if !under_way.is_empty() => {
                    if send.send(Ok(acknowledgement)).await.is_err() {
                        return;
                    }
                }
                batch = next_message(&mut batches),
                    if is_open && under_way.len() < STREAM_REQUESTS_MAX =>
                {
                    match batch {
                        Ok(Some(batch)) => under_way.push_back(submit(&door, batch)),
                        Ok(None) => is_open = false,
                        Err(status) => (is_open, failed) = (false, Some(status)),
                    }
                }
                () = stop.told(), if is_open => is_open = false,
            }
        }
        if stop.is_told() {
            let why = Problem::new(Code::Unavailable, "the server is stopping; try again later");
            failed = Some(why.into());
        }
        if let Some(status) = failed {
            // A client that is gone does not hear it.
            let _ = send.send(Err(status)).await;
        }
    });
    ReceiverStream::new(receive)
}

/// Asks at once, and waits when it is polled.
fn submit(
    door: &Door,
    batch: v1::SubmitStreamRequest,
) -> impl Future<Output = Acknowledgement> + use<> {
    let sequence = batch.sequence;
    let pending = request::new_tasks(batch.tasks.into_iter().map(Into::into))
        .map(|submit| door.app.tenure.ask(submit));
    async move {
        let submitted = match pending {
            Ok(pending) => pending.await.map_err(Problem::from),
            Err(problem) => Err(problem),
        };
        match submitted {
            Ok(tasks) => {
                let ids = tasks.iter().map(|task| task.task_id.0).collect();
                Acknowledgement { sequence, ids, problem: None }
            }
            Err(problem) => {
                Acknowledgement { sequence, ids: Vec::new(), problem: Some(shown(problem)) }
            }
        }
    }
}

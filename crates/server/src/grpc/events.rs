//! Live updates over gRPC, from any record that is still in the log. A reader that is slow is not
//! waited for: it holds a bounded number of events, and the log has the rest.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tenure_coordinator::{Followed, Follower, Position, ReadLog, Refusal};
use tenure_core::event::Record;
use tenure_core::transition::Transition;
use tenure_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{Door, Outcome, show};
use crate::app::{App, Subscription};
use crate::http::events::parse_position;
use crate::limits::SUBSCRIBER_EVENTS_MAX;
use crate::problem::Problem;

/// Which transitions a reader wants.
#[derive(Clone, Debug)]
struct Wanted {
    task_id: Option<u64>,
    queue: Option<String>,
}

impl Wanted {
    fn takes(&self, step: &Transition<'_>) -> bool {
        self.task_id.is_none_or(|task| task == step.task_id.0)
            && self.queue.as_deref().is_none_or(|queue| queue == step.queue)
    }
}

type Sent = Result<v1::Event, Status>;

#[tonic::async_trait]
impl v1::events_server::Events for Door {
    type WatchStream = ReceiverStream<Sent>;

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Outcome<Self::WatchStream> {
        let v1::WatchRequest { after, task_id, queue } = request.into_inner();
        let last = self.app.tenure.last_lsn();
        let after = match after.as_deref() {
            Some(text) => parse_position(text)?,
            None => Position::after(last),
        };
        if after.lsn > last {
            let detail = format!("after is {}, but the last record is {last}", after.lsn);
            return Err(Problem::invalid(detail).into());
        }
        let subscription = self.app.subscribe()?;
        let (send, receive) = mpsc::channel(SUBSCRIBER_EVENTS_MAX);
        let follower = self.app.tenure.follow(after);
        let wanted = Wanted { task_id, queue };
        tokio::spawn(follow(Arc::clone(&self.app), subscription, follower, wanted, send));
        Ok(Response::new(ReceiverStream::new(receive)))
    }
}

/// Reads for one subscriber until it is gone or everything has ended.
async fn follow<R: ReadLog + Send + 'static>(
    app: Arc<App>,
    _subscription: Subscription,
    mut follower: Follower<R>,
    wanted: Wanted,
    send: mpsc::Sender<Sent>,
) {
    let mut stop = app.stopping();
    let last = loop {
        let ready = poll_fn(|context| match follower.is_ready(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        tokio::select! {
            () = ready => {}
            () = send.closed() => return,
            () = stop.told() => break Problem::new("unavailable", "the server is stopping"),
        }
        let filter = wanted.clone();
        // It may read files.
        let read = tokio::task::spawn_blocking(move || {
            let mut events = Vec::new();
            let found = follower.next(|record, step| {
                if filter.takes(step) {
                    events.push(event(record, step));
                }
            });
            (follower, found, events)
        });
        let Ok((back, found, events)) = read.await else { return };
        follower = back;
        for event in events {
            app.metrics.events_sent.inc();
            if send.send(Ok(event)).await.is_err() {
                return;
            }
        }
        match found {
            Ok(Followed::Frame | Followed::UpToDate) => {}
            Ok(Followed::Closed) => break Problem::new("unavailable", "the server is stopping"),
            // The reader was too slow for the log itself. It can come back and is told so.
            Ok(Followed::Trimmed(oldest)) => break Refusal::Trimmed { oldest }.into(),
            Err(failure) => break Problem::new("unavailable", failure.to_string()),
        }
    };
    // Whoever is gone need not hear why.
    let _ = send.send(Err(last.into())).await;
}

fn event(record: &Record<'_>, step: &Transition<'_>) -> v1::Event {
    let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
    v1::Event {
        id: format!("{}.{}", record.lsn, step.index),
        lsn: record.lsn.0,
        at: record.at.0,
        event: step.event.to_owned(),
        task_id: step.task_id.0,
        queue: step.queue.to_owned(),
        from: show::maybe_state(step.from),
        to: show::state(step.to).into(),
        worker: step.worker.map(str::to_owned),
        lease_id: step.lease_id.map(|lease| lease.0),
        attempt: step.attempt,
        priority: step.priority.get().into(),
        code: text(step.code),
        reason: text(step.reason),
    }
}

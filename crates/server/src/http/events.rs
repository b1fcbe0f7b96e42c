//! Live updates: server-sent events, from any record that is still in the log. A reader that is
//! slow is not waited for: it holds a bounded number of events, and the log has the rest.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tenure_coordinator::{Followed, Follower, Position, ReadLog};
use tenure_core::event::Record;
use tenure_core::id::Lsn;
use tenure_core::transition::Transition;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::app::{App, Subscription};
use crate::json as parse;
use crate::limits::SUBSCRIBER_EVENTS_MAX;
use crate::problem::Problem;
use crate::wire::shown::moment;

/// A comment is sent so often, so that both sides notice when the other is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventsQuery {
    after: Option<String>,
    task: Option<u64>,
    run: Option<u64>,
    queue: Option<String>,
}

/// Which transitions a reader wants.
#[derive(Clone, Debug)]
struct Wanted {
    task: Option<u64>,
    queue: Option<String>,
}

impl Wanted {
    fn takes(&self, step: &Transition<'_>) -> bool {
        self.task.is_none_or(|task| task == step.task_id.0)
            && self.queue.as_deref().is_none_or(|queue| queue == step.queue)
    }
}

#[derive(Serialize, utoipa::ToSchema)]
struct ShownEvent<'a> {
    lsn: u64,
    at: String,
    event: &'a str,
    task_id: u64,
    queue: &'a str,
    from: Option<&'static str>,
    to: &'static str,
    worker: Option<&'a str>,
    lease_id: Option<u64>,
    attempt: u32,
    priority: i8,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[utoipa::path(get, path = "/v1/events", tag = "events", summary = "Live updates: server-sent events from any record", params(EventsQuery, ("last-event-id" = Option<String>, Header)), responses((status = 200, description = "One event per transition; its id is LSN.index", body = String), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn events(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query: EventsQuery = parse::query(query.as_deref())?;
    if query.run.is_some() {
        return Err(Problem::invalid("run is given, but there are no workflows yet; leave it out"));
    }
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = match query.after.as_deref().or(resumed) {
        Some(text) => parse_position(text)?,
        None => Position::after(app.tenure.last_lsn()),
    };
    if after.lsn > app.tenure.last_lsn() {
        return Err(Problem::invalid(format!(
            "after is {}, but the last record is {}",
            after.lsn,
            app.tenure.last_lsn()
        )));
    }
    let subscription = app.subscribe()?;
    let mut follower = app.tenure.follow(after);
    // Whether it is still there is known now, while the status can still say so.
    if let Followed::Trimmed(oldest) = probe(&mut follower)? {
        return Err(tenure_coordinator::Refusal::Trimmed { oldest }.into());
    }
    let follower = app.tenure.follow(after);
    let wanted = Wanted { task: query.task, queue: query.queue };
    let (send, receive) = mpsc::channel(SUBSCRIBER_EVENTS_MAX);
    tokio::spawn(follow(app, subscription, follower, wanted, send));
    let stream = ReceiverStream::new(receive);
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

fn probe(follower: &mut Follower<impl ReadLog>) -> Result<Followed, Problem> {
    follower.next(|_, _| {}).map_err(|failure| Problem::new("unavailable", failure.to_string()))
}

/// `LSN` or `LSN.index`.
pub(crate) fn parse_position(text: &str) -> Result<Position, Problem> {
    let wrong =
        || Problem::invalid(format!("after is {text:?}; it must be an LSN or the id of an event"));
    let (lsn, index) = match text.split_once('.') {
        Some((lsn, index)) => (lsn, Some(index.parse().map_err(|_| wrong())?)),
        None => (text, None),
    };
    Ok(Position { lsn: Lsn(lsn.parse().map_err(|_| wrong())?), index })
}

type Sent = Result<Event, std::convert::Infallible>;

/// Reads for one subscriber until it is gone or everything has ended.
async fn follow<R: ReadLog + Send + 'static>(
    app: Arc<App>,
    _subscription: Subscription,
    mut follower: Follower<R>,
    wanted: Wanted,
    send: mpsc::Sender<Sent>,
) {
    loop {
        let ready = poll_fn(|context| match follower.is_ready(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        tokio::select! {
            () = ready => {}
            () = send.closed() => return,
        }
        let filter = wanted.clone();
        // It may read files.
        let read = tokio::task::spawn_blocking(move || {
            let mut events = Vec::new();
            let found = follower.next(|record, step| {
                if filter.takes(step) {
                    events.push(show(record, step));
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
            Ok(Followed::Closed) | Err(_) => return,
            Ok(Followed::Trimmed(oldest)) => {
                // The reader was too slow for the log itself. It can come back and is told so.
                let gone = Event::default().event("log_trimmed").data(oldest.to_string());
                let _ = send.send(Ok(gone)).await;
                return;
            }
        }
    }
}

fn show(record: &Record<'_>, step: &Transition<'_>) -> Event {
    let shown = ShownEvent {
        lsn: record.lsn.0,
        at: moment(record.at),
        event: step.event,
        task_id: step.task_id.0,
        queue: step.queue,
        from: step.from.map(|state| state.as_str()),
        to: step.to.as_str(),
        worker: step.worker,
        lease_id: step.lease_id.map(|lease| lease.0),
        attempt: step.attempt,
        priority: step.priority.get(),
        code: step.code.filter(|code| !code.is_empty()),
        reason: step.reason.filter(|reason| !reason.is_empty()),
    };
    let text = serde_json::to_string(&shown).unwrap_or_default();
    Event::default().id(format!("{}.{}", record.lsn, step.index)).data(text)
}

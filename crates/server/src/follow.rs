//! What both doors do for those who follow live updates. A reader that is slow is not waited for:
//! it holds a bounded number of events, and the log has the rest. One that does not read at all is
//! let go; it can come back with the last id that it saw.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tenure_coordinator::{Followed, Follower, Position, ReadLog, Refusal};
use tenure_core::event::Record;
use tenure_core::id::Lsn;
use tenure_core::transition::Told;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::app::{App, Subscription};
use crate::limits::{SUBSCRIBER_EVENTS_MAX, SUBSCRIBER_TIMEOUT};
use crate::problem::Problem;

/// Which transitions a reader wants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Of this task.
    pub(crate) task: Option<u64>,
    /// Of this queue.
    pub(crate) queue: Option<String>,
    /// Of this run, and of its tasks.
    pub(crate) run: Option<u64>,
}

impl Wanted {
    fn takes(&self, told: &Told<'_>) -> bool {
        let (task, queue, run) = match told {
            Told::Task(step) => (Some(step.task_id.0), Some(step.queue), step.run_id),
            Told::Run(step) => (None, None, Some(step.run_id)),
        };
        self.task.is_none_or(|wanted| task == Some(wanted))
            && self.queue.as_deref().is_none_or(|wanted| queue == Some(wanted))
            && self.run.is_none_or(|wanted| run.is_some_and(|run| run.0 == wanted))
    }
}

/// How a door shows a transition, and why nothing more comes.
pub(crate) trait Shown: Send + Sized + 'static {
    /// A transition of a task or of a run.
    fn event(record: &Record<'_>, told: &Told<'_>) -> Self;

    /// The end, if this door has a word for it.
    fn end(why: End) -> Option<Self>;
}

/// Why nothing more comes.
#[derive(Debug)]
pub(crate) enum End {
    /// The reader was too slow for the log itself. This is the oldest record that is there.
    Trimmed(Lsn),
    /// Anything else.
    Over(Problem),
}

impl From<End> for Problem {
    fn from(end: End) -> Self {
        match end {
            End::Trimmed(oldest) => Refusal::Trimmed { oldest }.into(),
            End::Over(problem) => problem,
        }
    }
}

/// Where a reader begins: after a record or an event, or now.
pub(crate) fn parse_after(app: &App, after: Option<&str>) -> Result<Position, Problem> {
    let last = app.tenure.last_lsn();
    let after = match after {
        Some(text) => parse_position(text)?,
        None => Position::after(last),
    };
    match after.lsn > last {
        true => {
            Err(Problem::invalid(format!("after is {}, but the last record is {last}", after.lsn)))
        }
        false => Ok(after),
    }
}

/// `LSN` or `LSN.index`.
fn parse_position(text: &str) -> Result<Position, Problem> {
    let wrong =
        || Problem::invalid(format!("after is {text:?}; it must be an LSN or the id of an event"));
    let (lsn, index) = match text.split_once('.') {
        Some((lsn, index)) => (lsn, Some(index.parse().map_err(|_| wrong())?)),
        None => (text, None),
    };
    Ok(Position { lsn: Lsn(lsn.parse().map_err(|_| wrong())?), index })
}

/// Begins to follow. Whether the first record is still there is known now, while a refusal can
/// still say so.
pub(crate) async fn subscribe<E: Shown>(
    app: &Arc<App>,
    after: Position,
    wanted: Wanted,
) -> Result<ReceiverStream<E>, Problem> {
    let subscription = app.subscribe()?;
    let mut follower = app.tenure.follow(after);
    let probed = tokio::task::spawn_blocking(move || follower.next(|_, _| {})).await;
    match probed.map_err(|_| stopping())? {
        Ok(Followed::Trimmed(oldest)) => return Err(Refusal::Trimmed { oldest }.into()),
        Ok(Followed::Frame | Followed::UpToDate | Followed::Closed) => {}
        Err(failure) => return Err(Problem::new("unavailable", failure.to_string())),
    }
    let (send, receive) = mpsc::channel(SUBSCRIBER_EVENTS_MAX);
    tokio::spawn(follow(Arc::clone(app), subscription, after, wanted, send));
    Ok(ReceiverStream::new(receive))
}

fn stopping() -> Problem {
    Problem::new("unavailable", "the server is stopping")
}

/// Reads for one subscriber until it is gone or everything has ended.
async fn follow<E: Shown>(
    app: Arc<App>,
    _subscription: Subscription,
    after: Position,
    wanted: Wanted,
    send: mpsc::Sender<E>,
) {
    let mut stop = app.stopping();
    let mut follower = app.tenure.follow(after);
    let end = loop {
        let ready = poll_fn(|context| match follower.is_ready(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        tokio::select! {
            () = ready => {}
            () = send.closed() => return,
            () = stop.told() => break End::Over(stopping()),
        }
        let filter = wanted.clone();
        // It may read files.
        let read = tokio::task::spawn_blocking(move || {
            let some = read_some(&mut follower, &filter);
            (follower, some)
        });
        let Ok((back, some)) = read.await else { return };
        follower = back;
        for event in some.events {
            app.metrics.events_sent.inc();
            match tokio::time::timeout(SUBSCRIBER_TIMEOUT, send.send(event)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => {
                    app.metrics.subscribers_dropped.inc();
                    return;
                }
            }
        }
        if let Some(seen) = some.cut {
            follower = app.tenure.follow(seen);
            continue;
        }
        match some.found {
            Ok(Followed::Frame | Followed::UpToDate) => {}
            Ok(Followed::Closed) => break End::Over(stopping()),
            Ok(Followed::Trimmed(oldest)) => break End::Trimmed(oldest),
            Err(problem) => break End::Over(problem),
        }
    };
    if let Some(last) = E::end(end) {
        // Whoever is gone need not hear why.
        let _ = tokio::time::timeout(SUBSCRIBER_TIMEOUT, send.send(last)).await;
    }
}

/// What was read at once.
struct Portion<E> {
    events: Vec<E>,
    found: Result<Followed, Problem>,
    /// There was more than one reader may hold; it was read up to here.
    cut: Option<Position>,
}

fn read_some<E: Shown>(follower: &mut Follower<impl ReadLog>, wanted: &Wanted) -> Portion<E> {
    let (mut events, mut last, mut cut) = (Vec::new(), None, None);
    let found = follower.next_told(|record, told| {
        if cut.is_some() || !wanted.takes(told) {
            return;
        }
        if events.len() == SUBSCRIBER_EVENTS_MAX {
            cut = last;
            return;
        }
        events.push(E::event(record, told));
        last = Some(Position { lsn: record.lsn, index: Some(told.index()) });
    });
    let found = found.map_err(|failure| Problem::new("unavailable", failure.to_string()));
    Portion { events, found, cut }
}

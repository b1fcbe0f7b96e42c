//! Live updates for subscribers. The log is decoded in portions of bounded size, and a portion is
//! shared by all subscribers that come to its place. A slow subscriber holds two portions, and the
//! log has the rest; one that does not read is let go and can resume after the last id that it saw.

mod portions;

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::body::Bytes;
use tenure_code::Echo;
use tenure_coordinator::{Position, Refusal};
use tenure_record::event::Record;
use tenure_record::id::Lsn;
use tenure_record::transition::Told;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::admission::response_budget::{Following, InFlight};
use crate::app::{App, Subscription};
use crate::limits::{PORTION_READS_MAX, SUBSCRIBER_PACE, SUBSCRIBER_TIMEOUT};
use crate::problem::Problem;
use crate::wire::list::decimal;

use self::portions::{NoPortion, portion};
pub(crate) use self::portions::{Portion, Portions, Shared};

/// A timer is not exact enough for less.
const PACE_MIN: Duration = Duration::from_millis(1);
/// How often the pump looks whether anybody still follows.
const SUBSCRIBERS_CHECK: Duration = Duration::from_secs(1);

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
    /// Whether it wants everything.
    fn is_all(&self) -> bool {
        self.task.is_none() && self.queue.is_none() && self.run.is_none()
    }

    fn takes<E>(&self, event: &Shared<E>) -> bool {
        self.task.is_none_or(|wanted| event.task == Some(wanted))
            && self.queue.as_deref().is_none_or(|wanted| event.queue.as_deref() == Some(wanted))
            && self.run.is_none_or(|wanted| event.run == Some(wanted))
    }
}

/// How an interface shows a transition.
pub(crate) trait Shown: Clone + Send + Sync + 'static {
    /// A transition of a task or of a run.
    fn event(record: &Record<'_>, told: &Told<'_>) -> Self;

    /// About how many bytes it has.
    fn bytes(&self) -> usize;

    /// All events of a portion as one text, if the interface sends texts.
    fn join(events: &[Shared<Self>]) -> Option<Bytes>;

    /// Where the portions of this interface are kept.
    fn portions(updates: &Updates) -> &Portions<Self>;
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
    let wrong = || {
        let text = Echo(text);
        Problem::invalid(format!("after is {text}; it must be an LSN or the id of an event"))
    };
    let (lsn, index) = match text.split_once('.') {
        Some((lsn, index)) => (lsn, Some(decimal(index).ok_or_else(wrong)? as usize)),
        None => (text, None),
    };
    let lsn = Lsn(decimal(lsn).ok_or_else(wrong)?);
    if index.is_some() && !lsn.is_some() {
        return Err(Problem::invalid(format!(
            "after is {}; the first record has LSN 1, so use 0 to read from the beginning",
            Echo(text)
        )));
    }
    Ok(Position { lsn, index })
}

/// What a subscriber is sent.
#[derive(Debug)]
pub(crate) enum Delivery<E> {
    /// Events, of which it wants at least one.
    Portion(Arc<Portion<E>>),
    /// Nothing more comes.
    End(End),
}

/// What one subscriber reads from.
#[derive(Debug)]
pub(crate) struct Subscribed<E> {
    pub(crate) wanted: Arc<Wanted>,
    receive: mpsc::Receiver<Delivery<E>>,
    /// The portion that is shown event by event, and the next event of it.
    current: Option<(Arc<Portion<E>>, usize)>,
}

impl<E: Shown> Subscribed<E> {
    /// The next portion, or the end.
    pub(crate) async fn next(&mut self) -> Option<Delivery<E>> {
        self.receive.recv().await
    }

    /// The next event, or the end.
    pub(crate) fn poll_event(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<E, End>>> {
        loop {
            if let Some((portion, at)) = &mut self.current {
                while *at < portion.events.len() {
                    *at += 1;
                    if let Some(event) = portion.event(*at - 1, &self.wanted) {
                        return Poll::Ready(Some(Ok(event.clone())));
                    }
                }
                self.current = None;
            }
            match std::task::ready!(self.receive.poll_recv(context)) {
                Some(Delivery::Portion(portion)) => self.current = Some((portion, 0)),
                Some(Delivery::End(end)) => return Poll::Ready(Some(Err(end))),
                None => return Poll::Ready(None),
            }
        }
    }
}

/// Begins to follow. Whether the first record is still there is known now, while a refusal can
/// still say so.
pub(crate) async fn subscribe<E: Shown>(
    app: &Arc<App>,
    after: Position,
    wanted: Wanted,
    connection: Option<&Arc<InFlight>>,
) -> Result<Subscribed<E>, Problem> {
    let subscription = app.subscribe()?;
    let news = app.updates.listen(app);
    match portion::<E>(app, after).await {
        Ok(_) | Err(NoPortion::UpToDate) => {}
        Err(NoPortion::End(end)) => return Err(end.into()),
    }
    let (send, receive) = mpsc::channel(1);
    let wanted = Arc::new(wanted);
    let reader = Reader {
        app: Arc::clone(app),
        after,
        wanted: Arc::clone(&wanted),
        news,
        _places: (subscription, connection.map(InFlight::follows)),
    };
    tokio::spawn(reader.run(send));
    Ok(Subscribed { wanted, receive, current: None })
}

/// Reads for one subscriber until it is gone or everything has ended.
struct Reader {
    app: Arc<App>,
    after: Position,
    wanted: Arc<Wanted>,
    news: watch::Receiver<()>,
    _places: (Subscription, Option<Following>),
}

impl Reader {
    async fn run<E: Shown>(mut self, send: mpsc::Sender<Delivery<E>>) {
        let app = Arc::clone(&self.app);
        let mut stop = app.stopping();
        loop {
            // Nothing is read for a subscriber that has not taken what it was sent.
            let place = tokio::time::timeout(SUBSCRIBER_TIMEOUT, send.reserve()).await;
            let place = match place {
                Ok(Ok(place)) => place,
                Ok(Err(_)) => return,
                Err(_) => {
                    app.metrics.subscribers_dropped.inc();
                    return;
                }
            };
            let found = tokio::select! {
                found = self.next() => found,
                () = send.closed() => return,
                () = stop.told() => Err(End::Over(Problem::stopping())),
            };
            match found {
                Ok(portion) => {
                    app.metrics.events_sent.inc_by(portion.count(&self.wanted) as u64);
                    place.send(Delivery::Portion(portion));
                }
                Err(end) => {
                    place.send(Delivery::End(end));
                    return;
                }
            }
        }
    }

    /// The next portion with something that the subscriber wants.
    async fn next<E: Shown>(&mut self) -> Result<Arc<Portion<E>>, End> {
        loop {
            self.news.mark_unchanged();
            match portion::<E>(&self.app, self.after).await {
                Ok(portion) => {
                    self.after = portion.next;
                    if portion.count(&self.wanted) > 0 {
                        return Ok(portion);
                    }
                }
                Err(NoPortion::UpToDate) => {
                    if self.news.changed().await.is_err() {
                        return Err(End::Over(Problem::stopping()));
                    }
                }
                Err(NoPortion::End(end)) => return Err(end),
            }
        }
    }
}

/// State shared by all subscribers: recent portions, the limit on concurrent reads of the log, and
/// the notification that there is more to read.
#[derive(Debug)]
pub(crate) struct Updates {
    pub(crate) texts: Portions<crate::http::EventText>,
    pub(crate) messages: Portions<tenure_proto::v1::Event>,
    reads: Semaphore,
    news: watch::Sender<()>,
    is_pumping: Mutex<bool>,
}

impl Default for Updates {
    fn default() -> Self {
        Self {
            texts: Portions::default(),
            messages: Portions::default(),
            reads: Semaphore::new(reads_max()),
            news: watch::Sender::default(),
            is_pumping: Mutex::default(),
        }
    }
}

/// Concurrent reads of the log: half of the processors, so that subscribers that catch up leave the
/// other half to the writer and to requests.
fn reads_max() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (processors / 2).clamp(1, PORTION_READS_MAX)
}

impl Updates {
    /// Hears from now on when there is more to read.
    fn listen(&self, app: &Arc<App>) -> watch::Receiver<()> {
        let mut is_pumping = self.is_pumping.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.news.subscribe();
        if !*is_pumping {
            *is_pumping = true;
            let last = Position::after(app.tenure.last_lsn());
            tokio::spawn(pump(Arc::clone(app), last));
        }
        receiver
    }

    /// Whether nobody follows any more.
    fn may_end(&self) -> bool {
        let mut is_pumping = self.is_pumping.lock().unwrap_or_else(PoisonError::into_inner);
        *is_pumping = self.news.receiver_count() > 0;
        !*is_pumping
    }
}

/// Wakes all subscribers when there is more to read. The writer wakes only this task, and the more
/// subscribers there are, the less often they are woken.
async fn pump(app: Arc<App>, last: Position) {
    let mut stop = app.stopping();
    let mut follower = app.tenure.follow(last);
    loop {
        let ready = poll_fn(|context| match follower.is_ready(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        let has_news = tokio::select! {
            () = ready => true,
            () = tokio::time::sleep(SUBSCRIBERS_CHECK) => false,
            () = stop.told() => return,
        };
        if has_news {
            let is_closed = follower.skip().is_none();
            app.updates.news.send_replace(());
            if is_closed {
                return;
            }
        }
        if app.updates.news.receiver_count() == 0 && app.updates.may_end() {
            return;
        }
        let pace = SUBSCRIBER_PACE * app.subscribers() as u32;
        if pace >= PACE_MIN {
            tokio::time::sleep(pace).await;
        }
    }
}

//! A worker: takes tasks from queues, runs their handlers, and reports.

mod book;
mod drain;
mod keeper;
mod said;
mod task;

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tenure_code::Code;
use tenure_proto::v1;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::book::Book;
use self::drain::{Phase, Signals};
use self::keeper::{Keeper, Word, until};
use self::task::Standing;
use crate::client::Client;
use crate::error::Error;
use crate::retry::random;

pub use self::drain::Drain;
pub use self::task::{Failure, Output, Stop, Task};

/// How long a worker that leaves tries to tell the server what came of its last tasks.
const LAST_WORDS_MAX: Duration = Duration::from_secs(5);

type Done = Option<Result<Output, Failure>>;
type Running = Pin<Box<dyn Future<Output = Done> + Send>>;
type Handler = Arc<dyn Fn(Task) -> Running + Send + Sync>;

/// Takes tasks and runs their handlers until it is told to drain.
///
/// Heartbeats come from a thread of their own, so handlers may keep the runtime busy. A handler
/// whose lease is lost is stopped, and what it gave is dropped.
#[must_use]
pub struct Worker {
    client: Client,
    name: String,
    handlers: HashMap<String, Handler>,
    slots: u32,
    lease: Option<Duration>,
    disconnect_grace: Option<Duration>,
    labels: BTreeMap<String, String>,
    drain: Drain,
    drain_timeout: Option<Duration>,
    signals: Signals,
}

impl Worker {
    /// A worker with one slot and a name that nobody else has.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            name: format!("worker-{}-{:08x}", std::process::id(), random() as u32),
            handlers: HashMap::new(),
            slots: 1,
            lease: None,
            disconnect_grace: None,
            labels: BTreeMap::new(),
            drain: Drain::new(),
            drain_timeout: None,
            signals: Signals::None,
        }
    }

    /// Its name. Two workers with one name may take over each other's leases.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Does the tasks of a queue with this function.
    pub fn queue<F, R>(mut self, queue: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Task) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |task| {
            let signal = task.signal();
            let work = caught(handler(task));
            Box::pin(async move {
                let result = tokio::select! {
                    biased;
                    () = signal.reached(Standing::Leaving) => None,
                    result = work => Some(result),
                };
                // To give up because the worker leaves is no failure.
                result.filter(|result| result.is_ok() || signal.get() < Standing::Leaving)
            })
        });
        self.handlers.insert(queue.into(), handler);
        self
    }

    /// The same with a function that has something to clean up. It is told to stop by
    /// [`Task::stop`], and its slot is free when it returns. Nobody drops it, but a worker that
    /// leaves at once.
    pub fn queue_with_cleanup<F, R>(mut self, queue: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Task) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        let drain = self.drain.clone();
        let handler: Handler = Arc::new(move |task| {
            let (work, drain) = (caught(handler(task)), drain.clone());
            Box::pin(async move {
                tokio::select! {
                    biased;
                    () = drain.reached(Phase::AtOnce) => None,
                    result = work => Some(result),
                }
            })
        });
        self.handlers.insert(queue.into(), handler);
        self
    }

    /// The same with a function that blocks. It is told when the lease is lost, but nobody can stop
    /// it; its slot is free when it returns. A worker that leaves does not wait for it.
    pub fn blocking_queue<F>(mut self, queue: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Task) -> Result<Output, Failure> + Send + Sync + 'static,
    {
        let (handler, drain) = (Arc::new(handler), self.drain.clone());
        let handler: Handler = Arc::new(move |task| {
            let (handler, drain) = (Arc::clone(&handler), drain.clone());
            let work = tokio::task::spawn_blocking(move || handler(task));
            Box::pin(async move {
                tokio::select! {
                    biased;
                    result = work => Some(result.unwrap_or_else(|_| Err(panicked()))),
                    () = drain.reached(Phase::Leaving) => None,
                }
            })
        });
        self.handlers.insert(queue.into(), handler);
        self
    }

    /// How many tasks it does at a time.
    pub fn slots(self, slots: u32) -> Self {
        Self { slots: slots.max(1), ..self }
    }

    /// How long its leases last, if not as each task says.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// How long its leases outlive a connection that is cut. If it is not back by then, others get
    /// its tasks.
    pub fn disconnect_grace(self, grace: Duration) -> Self {
        Self { disconnect_grace: Some(grace), ..self }
    }

    /// What it is like.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Drains when the process is interrupted, and leaves at once when it is again.
    pub fn drain_on_ctrl_c(self) -> Self {
        Self { signals: Signals::Interrupt, ..self }
    }

    /// Drains when the process is interrupted or told to end (SIGINT, SIGTERM), and leaves at once
    /// when it is told again.
    pub fn drain_on_signals(self) -> Self {
        Self { signals: Signals::InterruptAndTerminate, ..self }
    }

    /// How long a drain may take. What is not finished by then is stopped, and its lease is given
    /// back. Without this a drain takes as long as the handlers do.
    pub fn drain_timeout(self, timeout: Duration) -> Self {
        Self { drain_timeout: Some(timeout), ..self }
    }

    /// What drains it.
    #[must_use]
    pub fn drain_handle(&self) -> Drain {
        self.drain.clone()
    }

    fn hello(&self) -> v1::Hello {
        let mut queues: Vec<_> = self.handlers.keys().cloned().collect();
        queues.sort();
        v1::Hello {
            worker: self.name.clone(),
            queues,
            lease_ms: self.lease.map(|lease| lease.as_millis().try_into().unwrap_or(u32::MAX)),
            labels: self.labels.clone(),
            slots: self.slots,
            disconnect_grace_ms: self.disconnect_grace.map(|grace| grace.as_millis() as u64),
            held: Vec::new(),
        }
    }

    /// Works until it has drained. A server that is away is waited for; an error is one that
    /// waiting does not mend. If this future is dropped, handlers are stopped and all leases are
    /// given back.
    pub async fn run(self) -> Result<(), Error> {
        let (begun, mut tasks) = mpsc::unbounded_channel();
        let (ended, ends) = mpsc::unbounded_channel();
        let keeper = Keeper {
            server: self.client.server.clone(),
            hello: self.hello(),
            book: Book::new(self.slots),
            begun,
            words: ends,
            known: Phase::Working,
            phase: self.drain.subscribe(),
        };
        let mut keeper = start(keeper)?;
        let mut handlers = JoinSet::new();
        let mut heed = std::pin::pin!(self.drain.heed(self.signals));
        let mut leave_after = std::pin::pin!(self.drain.leave_after(self.drain_timeout));
        let mut phase = Phase::Working;
        let mut give_up_at = None;
        loop {
            if phase == Phase::Leaving && handlers.is_empty() && give_up_at.is_none() {
                give_up_at = Some(Instant::now() + LAST_WORDS_MAX);
            }
            tokio::select! {
                biased;
                () = &mut heed => {}
                () = &mut leave_after => {}
                end = &mut keeper => {
                    let gone = Err(Error::local(Code::Unavailable, "the lease keeper is gone"));
                    return end.unwrap_or(gone);
                }
                Some(batch) = tasks.recv() => {
                    for task in batch {
                        handlers.spawn(self.handle(task, ended.clone()));
                    }
                }
                Some(_) = handlers.join_next(), if !handlers.is_empty() => {
                    while handlers.try_join_next().is_some() {}
                }
                () = self.drain.reached(Phase::Leaving), if phase < Phase::Leaving => {
                    phase = Phase::Leaving;
                }
                () = until(give_up_at) => {
                    tracing::warn!("the worker left without a word: the server does not answer");
                    return Ok(());
                }
            }
        }
    }

    fn handle(
        &self,
        mut task: Task,
        ended: mpsc::UnboundedSender<Word>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let lease_id = task.lease_id();
        let handler = self.handlers.get(task.queue()).cloned();
        task.connect(ended.clone());
        async move {
            let result = match handler {
                Some(handler) => handler(task).await,
                // The server offers only what the hello named.
                None => Some(Err(Failure::give_back())),
            };
            // If the lease keeper is gone, so is the worker.
            let _ = ended.send(Word::Ended { lease_id, result });
        }
    }
}

/// Starts a lease keeper on a thread of its own, and tells when it has ended.
fn start(keeper: Keeper) -> Result<oneshot::Receiver<Result<(), Error>>, Error> {
    let (tell, told) = oneshot::channel();
    let failed = |error: std::io::Error| {
        Error::local(Code::Unavailable, format!("no lease keeper: {error}"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    std::thread::Builder::new()
        .name("lease-keeper".to_owned())
        .spawn(move || {
            // If nobody listens any more, the worker was dropped.
            let _ = tell.send(runtime.block_on(keeper.run()));
        })
        .map_err(failed)?;
    Ok(told)
}

fn panicked() -> Failure {
    Failure::new("the handler panicked").code("panic")
}

/// Turns a panic into a failure: one bad task must not take the others with it.
async fn caught(
    work: impl Future<Output = Result<Output, Failure>> + Send,
) -> Result<Output, Failure> {
    let mut work = Box::pin(work);
    std::future::poll_fn(move |context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    })
    .await
}

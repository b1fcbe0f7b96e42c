//! A worker: takes tasks from queues, runs their handlers, and reports.

mod book;
mod keeper;
mod task;

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tenure_proto::v1;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use self::book::Book;
use self::keeper::{Ended, Keeper};
use self::task::Standing;
use crate::client::Client;
use crate::error::Error;
use crate::retry::random;

pub use self::task::{Failure, Output, Task};

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
    drains_on_ctrl_c: bool,
}

/// Tells a worker to finish what it has begun, take nothing new, and leave.
#[derive(Clone, Debug)]
pub struct Drain(Arc<watch::Sender<bool>>);

impl Drain {
    /// Tells it.
    pub fn drain(&self) {
        self.0.send_replace(true);
    }
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
            drain: Drain(Arc::new(watch::Sender::new(false))),
            drains_on_ctrl_c: false,
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
                tokio::select! {
                    biased;
                    result = work => Some(result),
                    () = signal.reached(Standing::Lost) => None,
                }
            })
        });
        self.handlers.insert(queue.into(), handler);
        self
    }

    /// The same with a function that blocks. It is told when the lease is lost, but nobody can stop
    /// it; its slot is free when it returns.
    pub fn blocking_queue<F>(mut self, queue: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Task) -> Result<Output, Failure> + Send + Sync + 'static,
    {
        let handler = Arc::new(handler);
        let handler: Handler = Arc::new(move |task| {
            let handler = Arc::clone(&handler);
            let work = tokio::task::spawn_blocking(move || handler(task));
            Box::pin(async move { Some(work.await.unwrap_or_else(|_| Err(panicked()))) })
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

    /// Drains when the process is interrupted.
    pub fn drain_on_ctrl_c(self) -> Self {
        Self { drains_on_ctrl_c: true, ..self }
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
            ended: ends,
            drain: self.drain.0.subscribe(),
        };
        let mut keeper = start(keeper)?;
        let mut handlers = JoinSet::new();
        let mut interrupted = std::pin::pin!(interrupted(self.drains_on_ctrl_c));
        loop {
            tokio::select! {
                biased;
                end = &mut keeper => {
                    let gone = Err(Error::local("unavailable", "the lease keeper is gone"));
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
                () = &mut interrupted, if !*self.drain.0.borrow() => self.drain.drain(),
            }
        }
    }

    fn handle(
        &self,
        task: Task,
        ended: mpsc::UnboundedSender<Ended>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let lease_id = task.lease_id();
        let handler = self.handlers.get(task.queue()).cloned();
        async move {
            let result = match handler {
                Some(handler) => handler(task).await,
                // The server offers only what the hello named.
                None => Some(Err(Failure::give_back())),
            };
            // If the lease keeper is gone, so is the worker.
            let _ = ended.send(Ended { lease_id, result });
        }
    }
}

/// Starts a lease keeper on a thread of its own, and tells when it has ended.
fn start(keeper: Keeper) -> Result<oneshot::Receiver<Result<(), Error>>, Error> {
    let (tell, told) = oneshot::channel();
    let failed =
        |error: std::io::Error| Error::local("unavailable", format!("no lease keeper: {error}"));
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

async fn interrupted(is_wanted: bool) {
    match is_wanted {
        // Without a handler for it the process would end.
        true if tokio::signal::ctrl_c().await.is_ok() => {}
        _ => std::future::pending().await,
    }
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

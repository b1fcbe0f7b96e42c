//! The worker runtime: leases tasks from queues, runs their handlers, and reports the results.

mod drain;
mod lease_keeper;
mod lease_table;
mod outcome;
mod progress;
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

use self::drain::{Phase, Signals};
use self::lease_keeper::{HandlerEvent, LeaseKeeper, until};
use self::lease_table::LeaseTable;
use self::task::LeaseStatus;
use crate::client::Client;
use crate::delays::random;
use crate::error::Error;

pub use self::drain::Drain;
pub use self::outcome::{Failure, Output};
pub use self::task::{LeasedTask, Stop};

/// The time in which a worker that leaves tries to send its last reports.
const LAST_REPORTS_TIMEOUT: Duration = Duration::from_secs(5);

type Done = Option<Result<Output, Failure>>;
type Running = Pin<Box<dyn Future<Output = Done> + Send>>;
type Handler = Arc<dyn Fn(LeasedTask) -> Running + Send + Sync>;

/// Leases tasks and runs their handlers until it drains.
///
/// A thread of its own sends heartbeats, so handlers may keep the runtime busy. A handler whose lease
/// is lost is stopped, and its result is dropped.
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
    /// A worker with one slot and a unique name.
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

    /// Sets the name of the worker. Two workers with one name may take over each other's leases.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Handles the tasks of a queue with an async function, which is dropped when the lease is lost or
    /// the worker leaves.
    pub fn handle<F, R>(mut self, queue: impl Into<String>, handler: F) -> Self
    where
        F: Fn(LeasedTask) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |task| {
            let signal = task.signal();
            let work = caught(handler(task));
            Box::pin(async move {
                let result = tokio::select! {
                    biased;
                    () = signal.reached(LeaseStatus::Leaving) => None,
                    result = work => Some(result),
                };
                // A handler that fails because the worker leaves has not failed.
                result.filter(|result| result.is_ok() || signal.get() < LeaseStatus::Leaving)
            })
        });
        self.handlers.insert(queue.into(), handler);
        self
    }

    /// Handles the tasks of a queue with an async function that has something to clean up. It learns
    /// from [`LeasedTask::stop`] that it should stop, and its slot is free when it returns. Only a
    /// worker that leaves at once drops it.
    pub fn handle_with_cleanup<F, R>(mut self, queue: impl Into<String>, handler: F) -> Self
    where
        F: Fn(LeasedTask) -> R + Send + Sync + 'static,
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

    /// Handles the tasks of a queue with a function that blocks, on the runtime's blocking threads. It
    /// learns from [`LeasedTask::stop`] that it should stop, and its slot is free when it returns. A
    /// worker that leaves does not wait for it.
    pub fn handle_blocking<F>(mut self, queue: impl Into<String>, handler: F) -> Self
    where
        F: Fn(LeasedTask) -> Result<Output, Failure> + Send + Sync + 'static,
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

    /// Sets the number of tasks that are handled at a time: 1 unless set. [`Worker::run`] rejects 0.
    pub fn slots(self, slots: u32) -> Self {
        Self { slots, ..self }
    }

    /// Sets the length of the worker's leases, instead of the length that each task has.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Sets how long the leases outlive a lost connection. Other workers get the tasks of a worker that
    /// has not reconnected by then.
    pub fn disconnect_grace(self, grace: Duration) -> Self {
        Self { disconnect_grace: Some(grace), ..self }
    }

    /// Adds a label, which the server shows with the worker.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Drains at the first SIGINT of the process, and leaves at once at the second.
    pub fn drain_on_ctrl_c(self) -> Self {
        Self { signals: Signals::Interrupt, ..self }
    }

    /// Drains at the first SIGINT or SIGTERM of the process, and leaves at once at the second.
    pub fn drain_on_signals(self) -> Self {
        Self { signals: Signals::InterruptAndTerminate, ..self }
    }

    /// Limits the time of a drain. Handlers that run longer are stopped, and their leases are released.
    /// Without a limit a drain takes as long as the handlers do.
    pub fn drain_timeout(self, timeout: Duration) -> Self {
        Self { drain_timeout: Some(timeout), ..self }
    }

    /// A handle that drains the worker.
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

    /// Runs until the worker has drained. The worker reconnects to a server that is away; an error is
    /// one that a retry does not mend. Dropping this future stops the handlers and releases all leases.
    pub async fn run(self) -> Result<(), Error> {
        if self.slots == 0 {
            let message = "a worker needs at least one slot; set more than 0 with `Worker::slots`";
            return Err(Error::new(Code::InvalidRequest, message));
        }
        let (new_tasks, mut tasks) = mpsc::unbounded_channel();
        let (sender, events) = mpsc::unbounded_channel();
        let keeper = LeaseKeeper {
            server: self.client.server.clone(),
            hello: self.hello(),
            table: LeaseTable::new(self.slots),
            tasks: new_tasks,
            events,
            known: Phase::Working,
            phase: self.drain.subscribe(),
        };
        let mut keeper = spawn(keeper)?;
        let mut handlers = JoinSet::new();
        let mut heed = std::pin::pin!(self.drain.heed(self.signals));
        let mut leave_after = std::pin::pin!(self.drain.leave_after(self.drain_timeout));
        let mut phase = Phase::Working;
        let mut give_up_at = None;
        loop {
            if phase == Phase::Leaving && handlers.is_empty() && give_up_at.is_none() {
                give_up_at = Some(Instant::now() + LAST_REPORTS_TIMEOUT);
            }
            tokio::select! {
                biased;
                () = &mut heed => {}
                () = &mut leave_after => {}
                end = &mut keeper => {
                    let gone = Err(Error::new(Code::Unavailable, "the lease keeper has ended unexpectedly"));
                    return end.unwrap_or(gone);
                }
                Some(batch) = tasks.recv() => {
                    for task in batch {
                        handlers.spawn(self.start(task, sender.clone()));
                    }
                }
                Some(_) = handlers.join_next(), if !handlers.is_empty() => {
                    while handlers.try_join_next().is_some() {}
                }
                () = self.drain.reached(Phase::Leaving), if phase < Phase::Leaving => {
                    phase = Phase::Leaving;
                }
                () = until(give_up_at) => {
                    tracing::warn!("the worker leaves without its last reports: the server does not answer");
                    return Ok(());
                }
            }
        }
    }

    fn start(
        &self,
        mut task: LeasedTask,
        sender: mpsc::UnboundedSender<HandlerEvent>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let lease_id = task.lease_id();
        let handler = self.handlers.get(task.queue()).cloned();
        task.connect(sender.clone());
        async move {
            let result = match handler {
                Some(handler) => handler(task).await,
                // The server pushes only tasks of the queues in the hello.
                None => Some(Err(Failure::release())),
            };
            // If the lease keeper is gone, so is the worker.
            let _ = sender.send(HandlerEvent::Ended { lease_id, result });
        }
    }
}

/// Starts a lease keeper on a thread of its own. The receiver gets its result.
fn spawn(keeper: LeaseKeeper) -> Result<oneshot::Receiver<Result<(), Error>>, Error> {
    let (sender, result) = oneshot::channel();
    let failed = |error: std::io::Error| {
        let message = format!("the lease keeper cannot be started: {error}");
        Error::new(Code::Unavailable, message).with_source(error)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    std::thread::Builder::new()
        .name("lease-keeper".to_owned())
        .spawn(move || {
            // If the receiver is gone, the worker was dropped.
            let _ = sender.send(runtime.block_on(keeper.run()));
        })
        .map_err(failed)?;
    Ok(result)
}

fn panicked() -> Failure {
    Failure::new("the handler panicked").code("panic")
}

/// Turns a panic of a handler into a failure, so that the worker survives it.
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

//! A worker: leases tasks, runs their handlers on threads or in an async task, and reports.

mod async_runner;
mod drain;
mod lease_keeper;
mod mailbox;
mod task;
mod threads;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::limits::{LEASE_QUEUES_MAX, LEASE_TASKS_MAX};
use tenure_record::name::{QueueName, WorkerName};

use self::async_runner::AsyncRunner;
use self::lease_keeper::{LeaseKeeper, LeaseTable};
use self::mailbox::Mailbox;
use self::threads::Threads;
use crate::error::Error;
use crate::handle::Tenure;
use crate::outcome::{Failure, Output};
use crate::terms;

pub use self::drain::Drain;
pub use self::task::{LeasedTask, Stop};

/// A payload that cannot be read now is tried again after this time, which costs the task nothing.
const UNREADABLE_DELAY: Duration = Duration::from_secs(1);

type Work = Pin<Box<dyn Future<Output = Result<Output, Failure>> + Send>>;

/// What runs the tasks of a queue.
#[derive(Clone)]
enum Handler {
    Blocking(Arc<dyn Fn(LeasedTask) -> Result<Output, Failure> + Send + Sync>),
    Async(Arc<dyn Fn(LeasedTask) -> Work + Send + Sync>),
}

/// A worker of this process; see [`Tenure::worker`].
///
/// Leases are kept by a thread of their own, so handlers may take longer than a lease and may keep
/// their threads or their executor busy. A handler that panics is a failure with the code `panic`.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("tenure-doc-worker-{}", std::process::id()));
/// # let tenure = tenure::Tenure::open(&folder)?;
/// use tenure::NewTask;
///
/// # let id =
/// tenure.submit(NewTask::new("mail").payload("ada")).wait()?
/// # .task_id
/// ;
/// let worker = tenure.worker("mailer").slots(8).handle("mail", |task| {
///     let to = String::from_utf8_lossy(task.payload_bytes()).into_owned();
///     // Any error becomes a failure by `?`, and is retried after a backoff.
///     Ok(format!("sent to {to}"))
/// });
/// let drain = worker.drain();
/// let running = std::thread::spawn(move || worker.run());
/// # let task = tenure.wait(id, std::time::Duration::from_secs(30)).wait()?;
/// # assert_eq!(&*task.output.read()?, b"sent to ada");
/// // On shutdown: handlers finish, then `run` returns.
/// drain.start();
/// running.join().expect("a worker does not panic")?;
/// # tenure.close()?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a worker does nothing before `run` or `run_async`"]
pub struct Worker {
    tenure: Tenure,
    name: String,
    handlers: BTreeMap<String, Handler>,
    slots: u32,
    lease: Option<Duration>,
    drain: Drain,
    drain_timeout: Option<Duration>,
}

impl Worker {
    pub(crate) fn new(tenure: Tenure, name: String) -> Self {
        Self {
            tenure,
            name,
            handlers: BTreeMap::new(),
            slots: 1,
            lease: None,
            drain: Drain::new(),
            drain_timeout: None,
        }
    }

    /// Runs the tasks of a queue with a function that blocks, on a thread of its own.
    pub fn handle<F, O>(mut self, queue: impl Into<String>, handler: F) -> Self
    where
        F: Fn(LeasedTask) -> Result<O, Failure> + Send + Sync + 'static,
        O: Into<Output>,
    {
        let handler = Arc::new(move |task| handler(task).map(Into::into));
        self.handlers.insert(queue.into(), Handler::Blocking(handler));
        self
    }

    /// Runs the tasks of a queue with an async function. [`Worker::run_async`] polls it in the
    /// caller's task, so any runtime will do; [`Worker::run`] polls it on a thread. A handler whose
    /// lease is lost is dropped.
    pub fn handle_async<F, R, O>(mut self, queue: impl Into<String>, handler: F) -> Self
    where
        F: Fn(LeasedTask) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, Failure>> + Send + 'static,
        O: Into<Output>,
    {
        let handler = Arc::new(move |task| {
            let work = handler(task);
            Box::pin(async move { work.await.map(Into::into) }) as Work
        });
        self.handlers.insert(queue.into(), Handler::Async(handler));
        self
    }

    /// The number of tasks that run at the same time, from 1 to 1,000; 1 by default.
    pub fn slots(self, slots: u32) -> Self {
        Self { slots, ..self }
    }

    /// The length of the leases, instead of what each task says. Heartbeats extend them.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// How long draining waits for handlers. After it, the leases of those that still run are
    /// released, and the worker ends without them. Without it, draining waits for all of them.
    pub fn drain_timeout(self, timeout: Duration) -> Self {
        Self { drain_timeout: Some(timeout), ..self }
    }

    /// Ends together with other workers, by one [`Drain`].
    pub fn drain_with(self, drain: &Drain) -> Self {
        Self { drain: drain.clone(), ..self }
    }

    /// The drain that ends this worker.
    #[must_use]
    pub fn drain(&self) -> Drain {
        self.drain.clone()
    }

    /// Works until the worker has drained. Handlers run on threads; this thread keeps the leases.
    ///
    /// # Errors
    /// A name or a number is not allowed, or the engine was closed or failed.
    pub fn run(self) -> Result<(), Error> {
        let keeper = self.keeper()?;
        let threads = Threads::new(self.handlers, self.slots, Arc::clone(&keeper.mailbox));
        keeper.run(|task| threads.start(task))
    }

    /// Works until the worker has drained. Async handlers run in the task that polls this future,
    /// concurrently; blocking ones run on threads, and a thread keeps the leases. A future that is
    /// dropped leaves at once, as by [`Drain::leave`].
    ///
    /// # Errors
    /// A name or a number is not allowed, or the engine was closed or failed.
    pub fn run_async(self) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let begun = self.keeper().and_then(|keeper| {
            let mailbox = Arc::clone(&keeper.mailbox);
            let threads = Threads::new(self.handlers.clone(), self.slots, Arc::clone(&mailbox));
            AsyncRunner::start(keeper, self.handlers, threads, self.drain)
        });
        async move { begun?.await }
    }

    fn keeper(&self) -> Result<LeaseKeeper, Error> {
        let slots = NonZeroU32::new(self.slots).filter(|slots| slots.get() <= LEASE_TASKS_MAX);
        let slots = slots.ok_or_else(|| {
            let slots = self.slots;
            Error::invalid(format!("slots is {slots}; it must be from 1 to {LEASE_TASKS_MAX}"))
        })?;
        let queues = self.handlers.len();
        if !(1..=LEASE_QUEUES_MAX).contains(&queues) {
            return Err(Error::invalid(format!(
                "the worker has handlers for {queues} queues; it must have from 1 to \
                 {LEASE_QUEUES_MAX}"
            )));
        }
        let queues = self.handlers.keys().map(|name| QueueName::parse(name));
        Ok(LeaseKeeper {
            engine: self.tenure.engine().clone(),
            worker: WorkerName::parse(&self.name)?,
            queues: queues.collect::<Result<_, _>>()?,
            slots,
            lease_ms: self.lease.map(terms::lease_ms).transpose()?,
            drain: self.drain.clone(),
            drain_timeout: self.drain_timeout,
            mailbox: Arc::new(Mailbox::default()),
            table: LeaseTable::default(),
        })
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queues: Vec<_> = self.handlers.keys().collect();
        let mut shown = f.debug_struct("Worker");
        shown.field("name", &self.name).field("queues", &queues).field("slots", &self.slots);
        shown.finish_non_exhaustive()
    }
}

/// The result of work that may panic: one bad task must not take the others with it.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.map(|text| format!(": {text}")).unwrap_or_default();
        Failure::new(format!("the handler panicked{text}")).code("panic")
    })
}

/// The failure of an attempt whose payload cannot be read from the spill file.
fn unreadable() -> Failure {
    Failure::release_for(UNREADABLE_DELAY)
}

//! Async handlers, polled in the task of whoever awaits the worker: no runtime is needed.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tenure_code::Code;
use tenure_record::id::LeaseId;

use super::lease_keeper::LeaseKeeper;
use super::mailbox::{Ended, Mailbox};
use super::task::LeaseSignal;
use super::threads::Threads;
use super::{Drain, Handler, LeasedTask, Work, caught, unreadable};
use crate::error::Error;
use crate::outcome::{Failure, Output};

/// A worker under way, whose async handlers run where it is polled.
pub(super) struct AsyncRunner {
    shared: Arc<Mutex<Shared>>,
    handlers: BTreeMap<String, Handler>,
    mailbox: Arc<Mailbox>,
    running: Vec<Running>,
    drain: Drain,
}

/// What the lease keeper's thread hands over.
#[derive(Default)]
struct Shared {
    tasks: Vec<LeasedTask>,
    ended: Option<Result<(), Error>>,
    waker: Option<Waker>,
}

/// A handler under way.
struct Running {
    lease_id: LeaseId,
    signal: LeaseSignal,
    work: Work,
    wakeup: Arc<Wakeup>,
}

/// Says which handler was woken, so that only that one is polled.
struct Wakeup {
    is_woken: AtomicBool,
    shared: Arc<Mutex<Shared>>,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        wake(&self.shared);
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wake(shared: &Mutex<Shared>) {
    let waker = lock(shared).waker.take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl AsyncRunner {
    /// Starts the lease keeper on a thread of its own.
    pub(super) fn start(
        keeper: LeaseKeeper,
        handlers: BTreeMap<String, Handler>,
        threads: Threads,
        drain: Drain,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let mailbox = Arc::clone(&keeper.mailbox);
        let is_async: BTreeMap<String, bool> = handlers
            .iter()
            .map(|(queue, handler)| (queue.clone(), matches!(handler, Handler::Async(_))))
            .collect();
        let (told, on_panic) = (Arc::clone(&shared), Arc::clone(&shared));
        let keep = move || {
            let ended = caught(|| {
                keeper.run(|task| match is_async.get(task.queue()) {
                    Some(true) => {
                        lock(&told).tasks.push(task);
                        wake(&told);
                    }
                    Some(false) | None => threads.start(task),
                })
            });
            let ended =
                ended.unwrap_or_else(|panic| Err(Error::new(Code::Unavailable, panic.to_string())));
            lock(&on_panic).ended = Some(ended);
            wake(&on_panic);
        };
        let spawned = std::thread::Builder::new().name("lease-keeper".to_owned()).spawn(keep);
        spawned.map_err(|error| {
            let message = format!("the lease keeper has no thread: {error}");
            Error::with_source(Code::Unavailable, message, error)
        })?;
        Ok(Self { shared, handlers, mailbox, running: Vec::new(), drain })
    }

    /// Begins the handlers of tasks that were leased. A handler may panic before its first await.
    fn begin(&mut self, tasks: Vec<LeasedTask>) {
        for mut task in tasks {
            let (lease_id, signal) = (task.lease_id(), task.signal());
            let work = match (task.fetch(), self.handlers.get(task.queue())) {
                (Ok(()), Some(Handler::Async(handler))) => caught(|| handler(task)),
                // Tasks of other queues do not come here.
                (Ok(()), _) => Err(Failure::release()),
                (Err(_), _) => Err(unreadable()),
            };
            let wakeup = Wakeup { is_woken: true.into(), shared: Arc::clone(&self.shared) };
            match work {
                Ok(work) => {
                    self.running.push(Running { lease_id, signal, work, wakeup: wakeup.into() });
                }
                Err(failure) => self.mailbox.send(Ended { lease_id, result: Err(failure) }),
            }
        }
    }
}

impl Running {
    /// Polls the handler if it was woken; its result once it has one. A handler whose worker leaves or
    /// whose lease is lost is over.
    fn poll(&mut self) -> Option<Result<Output, Failure>> {
        if !self.wakeup.is_woken.swap(false, Ordering::AcqRel) {
            return None;
        }
        let waker = Waker::from(Arc::clone(&self.wakeup));
        let mut context = Context::from_waker(&waker);
        if self.signal.is_over(&context) {
            return Some(Err(Failure::release()));
        }
        match caught(|| self.work.as_mut().poll(&mut context)) {
            Ok(Poll::Ready(result)) => Some(result),
            Ok(Poll::Pending) => None,
            Err(failure) => Some(Err(failure)),
        }
    }
}

impl Future for AsyncRunner {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (tasks, ended) = {
            let mut shared = lock(&this.shared);
            shared.waker = Some(context.waker().clone());
            (std::mem::take(&mut shared.tasks), shared.ended.take())
        };
        this.begin(tasks);
        let mailbox = &this.mailbox;
        this.running.retain_mut(|running| match running.poll() {
            Some(result) => {
                mailbox.send(Ended { lease_id: running.lease_id, result });
                false
            }
            None => true,
        });
        match ended {
            Some(ended) => Poll::Ready(ended),
            None => Poll::Pending,
        }
    }
}

impl Drop for AsyncRunner {
    fn drop(&mut self) {
        self.drain.leave();
    }
}

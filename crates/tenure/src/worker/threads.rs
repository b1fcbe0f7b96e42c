//! Threads for handlers that block. A thread is started when all others are busy.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_coordinator::block_on;

use super::mailbox::{Ended, Mailbox};
use super::{Handler, LeasedTask, caught, unreadable};
use crate::outcome::{Failure, Output};

/// Threads that run handlers. When it is dropped, each ends after the handler that it runs.
pub(super) struct Threads {
    shared: Arc<Shared>,
    tasks: Sender<LeasedTask>,
    threads_max: usize,
}

struct Shared {
    handlers: BTreeMap<String, Handler>,
    mailbox: Arc<Mailbox>,
    tasks: Mutex<Receiver<LeasedTask>>,
    /// Threads that were started.
    threads: AtomicUsize,
    /// Tasks that were started and have not ended.
    busy: AtomicUsize,
}

impl Threads {
    pub(super) fn new(
        handlers: BTreeMap<String, Handler>,
        slots: u32,
        mailbox: Arc<Mailbox>,
    ) -> Self {
        let (tasks, received) = channel();
        let shared = Shared {
            handlers,
            mailbox,
            tasks: Mutex::new(received),
            threads: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
        };
        Self { shared: Arc::new(shared), tasks, threads_max: slots as usize }
    }

    /// Runs the handler of a task. There are never more tasks than slots.
    pub(super) fn start(&self, task: LeasedTask) {
        let busy = self.shared.busy.fetch_add(1, Ordering::Relaxed) + 1;
        let threads = self.shared.threads.load(Ordering::Relaxed);
        if threads < busy.min(self.threads_max) {
            let shared = Arc::clone(&self.shared);
            let spawned = std::thread::Builder::new()
                .name("tenure-worker".to_owned())
                .spawn(move || shared.work());
            match spawned {
                Ok(_) => drop(self.shared.threads.fetch_add(1, Ordering::Relaxed)),
                // Other threads take the task when they are free.
                Err(_) if threads > 0 => {}
                Err(_) => {
                    self.shared.end(&task, Err(unreadable()));
                    return;
                }
            }
        }
        // The receiver is here, so it cannot be gone.
        let _ = self.tasks.send(task);
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let next = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(mut task) = next else { return };
            let lease_id = task.lease_id();
            let result = match (task.fetch(), self.handlers.get(task.queue())) {
                (Ok(()), Some(Handler::Blocking(handler))) => caught(|| handler(task)).flatten(),
                (Ok(()), Some(Handler::Async(handler))) => {
                    caught(|| block_on(handler(task))).flatten()
                }
                // Only tasks of the named queues are leased.
                (Ok(()), None) => Err(Failure::release()),
                (Err(_), _) => Err(unreadable()),
            };
            self.busy.fetch_sub(1, Ordering::Relaxed);
            self.mailbox.send(Ended { lease_id, result });
        }
    }

    fn end(&self, task: &LeasedTask, result: Result<Output, Failure>) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
        self.mailbox.send(Ended { lease_id: task.lease_id(), result });
    }
}

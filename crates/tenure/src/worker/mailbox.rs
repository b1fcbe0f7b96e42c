//! What handlers send to the lease keeper, and how they wake it.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::thread::Thread;

use tenure_record::id::LeaseId;

use crate::outcome::{Failure, Output};

/// A handler that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) lease_id: LeaseId,
    pub(super) result: Result<Output, Failure>,
}

/// The mailbox of a lease keeper.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ended: Vec<Ended>,
    keeper: Option<Thread>,
}

impl Mailbox {
    /// This thread is the keeper from here on.
    pub(super) fn open(&self) {
        self.lock().keeper = Some(std::thread::current());
    }

    /// Brings the result of a handler.
    pub(super) fn send(&self, ended: Ended) {
        self.lock().ended.push(ended);
        self.wake();
    }

    /// Takes all results.
    pub(super) fn take(&self) -> Vec<Ended> {
        std::mem::take(&mut self.lock().ended)
    }

    /// Wakes the keeper.
    pub(super) fn wake(&self) {
        if let Some(keeper) = &self.lock().keeper {
            keeper.unpark();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waker that unparks this thread.
pub(super) fn thread_waker() -> Waker {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    Arc::new(Unpark(std::thread::current())).into()
}

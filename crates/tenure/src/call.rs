//! Calls: typed futures for any executor, on which a thread can also wait.

use std::fmt;
use std::future::{Future, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tenure_code::Code;
use tenure_coordinator::block_on;

use crate::error::Error;

/// A call that was sent. `.await` it in any async runtime, or [`Call::wait`] for it on a thread.
///
/// The request is sent when the method is called, not when the call is first polled, so several calls
/// can be sent before the first is awaited; they are written to the log together.
///
/// A call that is dropped is not undone. Only leases that a dropped call would have returned are
/// released.
#[must_use = "a call says whether it succeeded: `.await` it, or `.wait()` for it"]
pub struct Call<T> {
    outcome: Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>,
}

impl<T: Send + 'static> Call<T> {
    pub(crate) fn new(outcome: impl Future<Output = Result<T, Error>> + Send + 'static) -> Self {
        Self { outcome: Box::pin(outcome) }
    }

    /// A call that was never sent.
    pub(crate) fn failed(error: Error) -> Self {
        Self::new(ready(Err(error)))
    }

    /// A call that reads files, which it does on a thread of its own.
    pub(crate) fn on_thread(read: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Self {
        let slot = Arc::new(Mutex::new((None, None::<Waker>)));
        let filled = Arc::clone(&slot);
        let work = move || {
            let outcome = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
                Err(Error::new(Code::Unavailable, "reading panicked, which is a bug in Tenure"))
            });
            let mut slot = filled.lock().unwrap_or_else(PoisonError::into_inner);
            slot.0 = Some(outcome);
            if let Some(waker) = slot.1.take() {
                waker.wake();
            }
        };
        if let Err(error) = std::thread::Builder::new().name("tenure-read".to_owned()).spawn(work) {
            let message = format!("no thread can be started: {error}");
            return Self::failed(Error::with_source(Code::Unavailable, message, error));
        }
        Self::new(poll_fn(move |context| {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            match slot.0.take() {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    slot.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        }))
    }

    /// Sleeps on this thread until the outcome is known. Not for threads of an async runtime.
    ///
    /// # Errors
    /// The call did nothing, for the reason given.
    pub fn wait(self) -> Result<T, Error> {
        block_on(self)
    }
}

impl<T> Future for Call<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.outcome.as_mut().poll(context)
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Call")
    }
}

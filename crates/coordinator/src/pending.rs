//! A pending response: a future, which a thread can also wait for.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tenure_core::command::ReportTasks;

use crate::inbox::Inbox;
use crate::refusal::Refusal;
use crate::request::{Request, Respond, Responder, Response};

/// The response to a request, once it is there. Dropping it tells the coordinator that the caller is
/// gone, and releases the leases of a response that was not taken.
#[derive(Debug)]
pub struct Pending<R: Request> {
    slot: Arc<Slot<R>>,
    inbox: Inbox,
}

#[derive(Debug)]
struct Slot<R: Request> {
    gone: AtomicBool,
    state: Mutex<SlotState<R>>,
}

#[derive(Debug)]
enum SlotState<R: Request> {
    Waiting(Option<Waker>),
    Told(Result<R::Response, Refusal>),
    Taken,
}

impl<R: Request> Pending<R> {
    /// Sends a request.
    #[must_use]
    pub fn ask(inbox: &Inbox, request: R) -> Self {
        let state = Mutex::new(SlotState::Waiting(None));
        let slot = Arc::new(Slot { gone: AtomicBool::new(false), state });
        let end: Arc<Slot<R>> = Arc::clone(&slot);
        inbox.push(request.seal(Responder::new(end)));
        Self { slot, inbox: inbox.clone() }
    }

    /// Sleeps until the response is there.
    pub fn wait(self) -> Result<R::Response, Refusal> {
        block_on(self)
    }
}

/// Sleeps until a future is ready. It needs no executor.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Sleeper::here().waker();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => std::thread::park(),
        }
    }
}

impl<R: Request> Future for Pending<R> {
    type Output = Result<R::Response, Refusal>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.slot.lock();
        match std::mem::replace(&mut *state, SlotState::Taken) {
            SlotState::Told(outcome) => Poll::Ready(outcome),
            SlotState::Waiting(_) => {
                *state = SlotState::Waiting(Some(context.waker().clone()));
                Poll::Pending
            }
            SlotState::Taken => unreachable!("a response is taken once"),
        }
    }
}

impl<R: Request> Drop for Pending<R> {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        self.slot.gone.store(true, Ordering::Release);
        let unclaimed = std::mem::replace(&mut *state, SlotState::Taken);
        drop(state);
        let SlotState::Told(Ok(unclaimed)) = unclaimed else { return };
        let leases = unclaimed.leases();
        if !leases.is_empty() {
            let releases = leases.into_iter().map(Into::into).collect();
            let report = ReportTasks { releases, ..ReportTasks::default() };
            // If the inbox has no room for it, the leases expire.
            drop(Pending::ask(&self.inbox, report));
        }
    }
}

impl<R: Request> Respond<R> for Slot<R> {
    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    fn respond(
        &self,
        outcome: Result<R::Response, Refusal>,
    ) -> Result<(), Result<R::Response, Refusal>> {
        let mut state = self.lock();
        if self.is_gone() {
            return Err(outcome);
        }
        let before = std::mem::replace(&mut *state, SlotState::Told(outcome));
        drop(state);
        if let SlotState::Waiting(Some(waker)) = before {
            waker.wake();
        }
        Ok(())
    }

    fn abandon(&self) {
        if !self.is_gone() {
            let why = Arc::from("the engine has stopped without an answer");
            // A caller that has left in this moment needs none.
            let _ = self.respond(Err(Refusal::Unavailable(why)));
        }
    }
}

impl<R: Request> Slot<R> {
    fn lock(&self) -> MutexGuard<'_, SlotState<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that sleeps until a waker is called.
pub(crate) struct Sleeper {
    waker: Arc<ThreadWaker>,
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Sleeper {
    /// This thread.
    pub(crate) fn here() -> Self {
        Self { waker: Arc::new(ThreadWaker(std::thread::current())) }
    }

    fn waker(&self) -> Waker {
        Arc::clone(&self.waker).into()
    }

    /// Sleeps until it is ready, or for so long. Says whether it is.
    pub(crate) fn sleep_until_ready(
        &self,
        timeout: Duration,
        is_ready: impl Fn(&Waker) -> bool,
    ) -> bool {
        let (waker, start) = (self.waker(), Instant::now());
        loop {
            if is_ready(&waker) {
                return true;
            }
            let Some(left) = timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero())
            else {
                return false;
            };
            std::thread::park_timeout(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tenure_code::Code;

    use super::*;
    use crate::memory::Memory;
    use crate::request::GetStatus;

    #[test]
    fn a_request_that_nobody_will_decide_is_refused_and_not_left_waiting() {
        let inbox = Inbox::new(Memory::default());
        let (first, second) = (Pending::ask(&inbox, GetStatus), Pending::ask(&inbox, GetStatus));
        let mut taken = VecDeque::new();
        inbox.take(&mut taken);
        let third = Pending::ask(&inbox, GetStatus);
        // As a coordinator does that panics: what it had is dropped, and its thread abandons the rest.
        taken.truncate(1);
        assert_eq!(second.wait().unwrap_err().code(), Code::Unavailable);
        drop(taken);
        assert_eq!(first.wait().unwrap_err().code(), Code::Unavailable);
        inbox.abandon("the engine has stopped");
        assert_eq!(third.wait().unwrap_err().code(), Code::Unavailable);
        let late = Pending::ask(&inbox, GetStatus);
        assert_eq!(late.wait().unwrap_err().code(), Code::Unavailable);
    }
}

//! A place to wait for an outcome: a future, and a thread can sleep on it too.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tenure_core::command::{Command, ReportTasks};

use crate::ask::{Answer, Ask, Caller, Outcome, Request};
use crate::inbox::Inbox;

/// The side that waits. Dropping it says that nobody does, and gives back a lease that is in it.
#[derive(Debug)]
pub struct Ticket {
    slot: Arc<Slot>,
    inbox: Inbox<TicketCaller>,
}

/// The side that tells.
#[derive(Debug)]
pub struct TicketCaller {
    slot: Arc<Slot>,
}

#[derive(Debug)]
struct Slot {
    gone: AtomicBool,
    state: Mutex<SlotState>,
}

#[derive(Debug)]
enum SlotState {
    Waiting(Option<Waker>),
    Told(Outcome),
    Taken,
}

impl Ticket {
    /// Asks, and waits for the outcome.
    #[must_use]
    pub fn ask(inbox: &Inbox<TicketCaller>, ask: Ask) -> Self {
        let state = Mutex::new(SlotState::Waiting(None));
        let slot = Arc::new(Slot { gone: AtomicBool::new(false), state });
        let caller = TicketCaller { slot: Arc::clone(&slot) };
        inbox.push(Request { ask, caller });
        Self { slot, inbox: inbox.clone() }
    }

    /// Sleeps until the outcome is there.
    pub fn wait(self) -> Outcome {
        let sleeper = Sleeper::here();
        let waker = sleeper.waker();
        let mut context = Context::from_waker(&waker);
        let mut this = pin!(self);
        loop {
            match this.as_mut().poll(&mut context) {
                Poll::Ready(outcome) => return outcome,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl Future for Ticket {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = self.slot.lock();
        match std::mem::replace(&mut *state, SlotState::Taken) {
            SlotState::Told(outcome) => Poll::Ready(outcome),
            SlotState::Waiting(_) => {
                *state = SlotState::Waiting(Some(context.waker().clone()));
                Poll::Pending
            }
            SlotState::Taken => unreachable!("an outcome is taken once"),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        self.slot.gone.store(true, Ordering::Release);
        let unclaimed = std::mem::replace(&mut *state, SlotState::Taken);
        drop(state);
        if let SlotState::Told(Ok(Answer::Leased(grants))) = unclaimed
            && !grants.is_empty()
        {
            let releases = grants.iter().map(|grant| grant.lease().into()).collect();
            let report = ReportTasks { releases, ..ReportTasks::default() };
            // If there is no room for it, time takes the lease back.
            drop(Ticket::ask(&self.inbox, Ask::Command(Command::ReportTasks(report))));
        }
    }
}

impl Caller for TicketCaller {
    fn is_gone(&self) -> bool {
        self.slot.gone.load(Ordering::Acquire)
    }

    fn tell(self, outcome: Outcome) -> Result<(), Outcome> {
        let mut state = self.slot.lock();
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
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, SlotState> {
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

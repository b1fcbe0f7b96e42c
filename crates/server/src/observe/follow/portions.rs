//! Portions of live updates: the log is decoded in portions of bounded size, and recent ones are
//! cached so that all subscribers that come to a place share them.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use tenure_code::Code;
use tenure_coordinator::{Followed, Permit, Pool, Position};
use tenure_record::transition::Told;
use tokio::sync::OnceCell;

use super::{End, Shown, Wanted};
use crate::app::App;
use crate::limits::{PORTION_BYTES, PORTIONS_MAX, PORTIONS_PER_READ_MAX};
use crate::problem::Problem;

/// What an event takes in memory beside its text, about.
const EVENT_BYTES: usize = 96;

/// An event, and what subscribers select it by.
#[derive(Debug)]
pub(crate) struct Shared<E> {
    pub(super) task: Option<u64>,
    pub(super) run: Option<u64>,
    pub(super) queue: Option<Arc<str>>,
    pub(crate) shown: E,
}

/// Events that follow each other, decoded once.
#[derive(Debug)]
pub(crate) struct Portion<E> {
    pub(super) events: Vec<Shared<E>>,
    joined: Option<Bytes>,
    /// Where the next one begins.
    pub(super) next: Position,
    _held: Permit,
}

impl<E: Shown> Portion<E> {
    /// The events that a subscriber wants.
    pub(crate) fn wanted<'a>(&'a self, wanted: &'a Wanted) -> impl Iterator<Item = &'a E> {
        self.events.iter().filter(|event| wanted.takes(event)).map(|event| &event.shown)
    }

    /// All events as one text, if a subscriber wants all of them.
    pub(crate) fn whole(&self, wanted: &Wanted) -> Option<&Bytes> {
        self.joined.as_ref().filter(|_| wanted.is_all())
    }

    /// How many events a subscriber wants.
    pub(super) fn count(&self, wanted: &Wanted) -> usize {
        if wanted.is_all() { self.events.len() } else { self.wanted(wanted).count() }
    }

    pub(super) fn event(&self, at: usize, wanted: &Wanted) -> Option<&E> {
        self.events.get(at).filter(|event| wanted.takes(event)).map(|event| &event.shown)
    }
}

/// A portion, as soon as it was read.
type Slot<E> = Arc<OnceCell<Arc<Portion<E>>>>;

/// Portions that were read lately, by the place that they begin after.
#[derive(Debug)]
pub(crate) struct Portions<E> {
    recent: Mutex<VecDeque<(Position, Slot<E>)>>,
}

impl<E> Default for Portions<E> {
    fn default() -> Self {
        Self { recent: Mutex::new(VecDeque::new()) }
    }
}

impl<E: Shown> Portions<E> {
    fn slot(&self, after: Position) -> Slot<E> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        // Most are at the end of the log.
        if let Some((_, slot)) = recent.iter().rev().find(|(begin, _)| *begin == after) {
            return Arc::clone(slot);
        }
        if recent.len() == PORTIONS_MAX {
            recent.pop_front();
        }
        let slot = Slot::<E>::default();
        recent.push_back((after, Arc::clone(&slot)));
        slot
    }

    /// Keeps a portion that was read ahead, unless one of that place is known or being read.
    fn keep(&self, after: Position, portion: Portion<E>) {
        let _ = self.slot(after).set(Arc::new(portion));
    }
}

/// Why there is no portion.
#[derive(Debug)]
pub(super) enum NoPortion {
    UpToDate,
    End(End),
}

/// Reads the portion after a place, or gets it from the subscriber that has read it.
pub(super) async fn portion<E: Shown>(
    app: &Arc<App>,
    after: Position,
) -> Result<Arc<Portion<E>>, NoPortion> {
    if after.index.is_none() && after.lsn >= app.tenure.last_lsn() {
        return Err(NoPortion::UpToDate);
    }
    let portions = E::portions(&app.updates);
    let slot = portions.slot(after);
    let read = slot.get_or_try_init(|| async {
        // The semaphore is never closed. While a permit is held a whole record may be decoded.
        let _permit = app.updates.reads.acquire().await;
        let reader = Arc::clone(app);
        // The read blocks where it needs files of the log.
        let read = tokio::task::spawn_blocking(move || read_portions(&reader, after)).await;
        let read = read.unwrap_or_else(|_| Err(NoPortion::End(End::Over(Problem::stopping()))))?;
        let mut read = read.into_iter();
        let first = Arc::new(read.next().ok_or(NoPortion::UpToDate)?);
        let mut begin = first.next;
        for portion in read {
            let next = portion.next;
            portions.keep(begin, portion);
            begin = next;
        }
        Ok(first)
    });
    read.await.map(Arc::clone)
}

/// Reads the portions that follow each other after a place: all of one frame, up to a limit. A record
/// that is larger than a portion is decoded once for many of its portions.
fn read_portions<E: Shown>(app: &App, after: Position) -> Result<Vec<Portion<E>>, NoPortion> {
    let mut follower = app.tenure.follow(after);
    let pool = app.tenure.memory().pool(Pool::Subscribers);
    let mut portions: Vec<Portion<E>> = Vec::new();
    let (mut events, mut bytes) = (Vec::<Shared<E>>::new(), 0);
    let close = |events: Vec<Shared<E>>, bytes: usize, next| {
        let _held = pool.take(bytes as u64);
        Portion { joined: E::join(&events), events, next, _held }
    };
    let found = follower.next_told_until(|record, told| {
        let (task, queue, run) = match told {
            Told::Task(step) => (Some(step.task_id.0), Some(step.queue), step.run_id),
            Told::Run(step) => (None, None, Some(step.run_id)),
        };
        // Neighbors are often of one queue.
        let last = events.last().and_then(|event| event.queue.as_ref());
        let queue = queue.map(|name| match last {
            Some(known) if **known == *name => Arc::clone(known),
            Some(_) | None => Arc::from(name),
        });
        let shown = E::event(record, told);
        bytes += EVENT_BYTES + shown.bytes();
        events.push(Shared { task, run: run.map(|run| run.0), queue, shown });
        if bytes < PORTION_BYTES {
            return ControlFlow::Continue(());
        }
        let next = Position { lsn: record.lsn, index: Some(told.index()) };
        portions.push(close(std::mem::take(&mut events), std::mem::take(&mut bytes), next));
        match portions.len() < PORTIONS_PER_READ_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    match found {
        Ok(Followed::Frame) => {}
        Ok(Followed::UpToDate) => return Err(NoPortion::UpToDate),
        Ok(Followed::Closed) => return Err(NoPortion::End(End::Over(Problem::stopping()))),
        Ok(Followed::Trimmed(oldest)) => return Err(NoPortion::End(End::Trimmed(oldest))),
        Err(failure) => {
            let problem = Problem::new(Code::Unavailable, failure.to_string());
            return Err(NoPortion::End(End::Over(problem)));
        }
    }
    // A frame may have nothing to show; its portion moves subscribers on.
    let end = follower.position();
    if portions.last().is_none_or(|portion| portion.next != end) {
        portions.push(close(events, bytes, end));
    }
    Ok(portions)
}

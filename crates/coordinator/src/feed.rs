//! What happened, for those who follow: recent frames from memory, older ones from the log. Only
//! what may be told gets here. A follower that is slow costs nothing; it reads the log again.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use tenure_log::{Batch, Read, ReadLog};
use tenure_record::codec;
use tenure_record::event::Record;
use tenure_record::id::Lsn;
use tenure_record::transition::{Told, Transition, told};

use crate::limits::FEED_FRAMES_MAX;
use crate::memory::Budget;
use crate::pending::Sleeper;
use crate::recover::Failure;

/// Recent frames. Clones are the same feed.
#[derive(Clone, Debug)]
pub struct Feed {
    shared: Arc<Mutex<Ring>>,
}

#[derive(Debug)]
struct Ring {
    frames: VecDeque<Published>,
    bytes: usize,
    /// The pool in which the frames count.
    memory: Budget,
    last: Lsn,
    wakers: Vec<Waker>,
    closed: bool,
}

#[derive(Debug)]
struct Published {
    first: Lsn,
    batch: Arc<Batch>,
}

/// The last transition that somebody saw: `LSN.index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Its record.
    pub lsn: Lsn,
    /// Its place among the transitions of that record; none for all of them.
    pub index: Option<usize>,
}

impl Position {
    /// Before everything.
    pub const START: Self = Self { lsn: Lsn::NONE, index: None };

    /// After a whole record.
    #[must_use]
    pub fn after(lsn: Lsn) -> Self {
        Self { lsn, index: None }
    }

    /// The first record in which there may be something new.
    fn wanted(self) -> Lsn {
        match self.index {
            Some(_) => self.lsn,
            None => self.lsn.next(),
        }
    }

    fn is_before(self, told: &Told<'_>, lsn: Lsn) -> bool {
        lsn > self.lsn || self.index.is_some_and(|index| told.index() > index)
    }
}

impl Feed {
    pub(crate) fn new(last: Lsn, memory: Budget) -> Self {
        let (frames, wakers) = (VecDeque::new(), Vec::new());
        let ring = Ring { frames, bytes: 0, memory, last, wakers, closed: false };
        Self { shared: Arc::new(Mutex::new(ring)) }
    }

    /// Shows a frame that may be told. Gives back an old one that nobody reads, for its room.
    pub(crate) fn publish(&self, first: Lsn, batch: Batch) -> Option<Batch> {
        let mut ring = self.lock();
        ring.last = Lsn(first.0 + u64::from(batch.records()) - 1);
        ring.bytes += batch.payload_bytes();
        ring.frames.push_back(Published { first, batch: Arc::new(batch) });
        let mut emptied = None;
        while ring.bytes as u64 > ring.memory.max() || ring.frames.len() > FEED_FRAMES_MAX {
            let Some(oldest) = ring.frames.pop_front() else { break };
            ring.bytes -= oldest.batch.payload_bytes();
            emptied = Arc::try_unwrap(oldest.batch).ok().or(emptied);
        }
        ring.memory.set(ring.bytes as u64);
        ring.wakers.drain(..).for_each(Waker::wake);
        if let Some(batch) = &mut emptied {
            batch.clear();
        }
        emptied
    }

    /// Nothing will follow.
    pub(crate) fn close(&self) {
        let mut ring = self.lock();
        ring.closed = true;
        ring.wakers.drain(..).for_each(Waker::wake);
    }

    /// Follows what happens after a place. `log` reads what is no longer in memory.
    pub fn follow<R: ReadLog>(&self, log: R, after: Position) -> Follower<R> {
        Follower { feed: self.clone(), log, after, in_log: None }
    }

    /// The last record that may be told.
    #[must_use]
    pub fn last(&self) -> Lsn {
        self.lock().last
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who follows.
#[derive(Debug)]
pub struct Follower<R> {
    feed: Feed,
    log: R,
    after: Position,
    /// Where the log's reader stands, if it was used last.
    in_log: Option<Lsn>,
}

/// What a follower found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// A frame; its transitions were handed over.
    Frame,
    /// Nothing new. [`Follower::is_ready`] or [`Follower::wait`] tells when there is.
    UpToDate,
    /// What comes next was trimmed; this is the oldest record that is there.
    Trimmed(Lsn),
    /// The coordinator has ended and everything was seen.
    Closed,
}

impl<R: ReadLog> Follower<R> {
    /// The last transition that was handed over.
    #[must_use]
    pub fn position(&self) -> Position {
        self.after
    }

    /// Hands over the transitions of tasks in the next frame, as far as they are new.
    pub fn next(
        &mut self,
        visit: impl FnMut(&Record<'_>, &Transition<'_>),
    ) -> Result<Followed, Failure> {
        self.next_where(|_| true, visit)
    }

    /// The same, but only of records whose bytes look as if they mattered; the others need not even
    /// be decoded.
    pub fn next_where(
        &mut self,
        matters: impl Fn(&[u8]) -> bool,
        mut visit: impl FnMut(&Record<'_>, &Transition<'_>),
    ) -> Result<Followed, Failure> {
        self.read(matters, |record, told| {
            if let Told::Task(step) = told {
                visit(record, step);
            }
        })
    }

    /// Hands over all that the next frame tells of tasks and runs, as far as it is new.
    pub fn next_told(
        &mut self,
        visit: impl FnMut(&Record<'_>, &Told<'_>),
    ) -> Result<Followed, Failure> {
        self.read(|_| true, visit)
    }

    /// Hands over what the next frame tells of tasks and runs, as far as it is new, until the
    /// visitor has enough. What comes after that is not decoded, and is handed over next time.
    pub fn next_told_until(
        &mut self,
        mut visit: impl FnMut(&Record<'_>, &Told<'_>) -> ControlFlow<()>,
    ) -> Result<Followed, Failure> {
        self.read_each(
            |_| true,
            |record, lsn, after| {
                for told in told(record).iter().filter(|told| after.is_before(told, lsn)) {
                    if visit(record, told).is_break() {
                        return ControlFlow::Break(Position { lsn, index: Some(told.index()) });
                    }
                }
                ControlFlow::Continue(())
            },
        )
    }

    /// Hands over the records in the next frame whose bytes look as if they mattered.
    pub fn next_record(
        &mut self,
        matters: impl Fn(&[u8]) -> bool,
        mut visit: impl FnMut(&Record<'_>),
    ) -> Result<Followed, Failure> {
        self.read_each(matters, |record, _, _| {
            visit(record);
            ControlFlow::Continue(())
        })
    }

    fn read(
        &mut self,
        matters: impl Fn(&[u8]) -> bool,
        mut visit: impl FnMut(&Record<'_>, &Told<'_>),
    ) -> Result<Followed, Failure> {
        self.read_each(matters, |record, lsn, after| {
            for told in told(record).iter().filter(|told| after.is_before(told, lsn)) {
                visit(record, told);
            }
            ControlFlow::Continue(())
        })
    }

    fn read_each(
        &mut self,
        matters: impl Fn(&[u8]) -> bool,
        mut visit: impl FnMut(&Record<'_>, Lsn, Position) -> ControlFlow<Position>,
    ) -> Result<Followed, Failure> {
        let wanted = self.after.wanted();
        let recent = {
            let ring = self.feed.lock();
            if wanted > ring.last {
                return Ok(if ring.closed { Followed::Closed } else { Followed::UpToDate });
            }
            let at = ring.frames.partition_point(|frame| frame.first <= wanted);
            let found = at.checked_sub(1).and_then(|at| ring.frames.get(at));
            found.map(|frame| (frame.first, Arc::clone(&frame.batch)))
        };
        if let Some((first, batch)) = recent {
            self.in_log = None;
            let records = batch.records_from(tenure_log::Lsn(first.0));
            self.after = hand_over(records, self.after, &matters, &mut visit)?;
            return Ok(Followed::Frame);
        }
        if self.in_log != Some(wanted) {
            self.log.seek(tenure_log::Lsn(wanted.0));
        }
        match self.log.read()? {
            Read::Frame(frame) => {
                self.after = hand_over(frame.records(), self.after, &matters, &mut visit)?;
                // A frame that was left in the middle is read again.
                self.in_log = self.after.index.is_none().then(|| self.after.wanted());
                Ok(Followed::Frame)
            }
            Read::UpToDate => Ok(Followed::UpToDate),
            Read::Trimmed(oldest) => Ok(Followed::Trimmed(Lsn(oldest.0))),
        }
    }

    /// Leaves out everything that is there already, and says from which record to which.
    pub fn skip(&mut self) -> Option<(Lsn, Lsn)> {
        let (first, last) = (self.after.wanted(), self.feed.last());
        self.after = Position::after(last.max(self.after.lsn));
        (first <= last).then_some((first, last))
    }

    /// Whether there may be something new. If not, `waker` is called when there is.
    #[must_use]
    pub fn is_ready(&self, waker: &Waker) -> bool {
        let mut ring = self.feed.lock();
        let is_ready = ring.closed || self.after.wanted() <= ring.last;
        if !is_ready && !ring.wakers.iter().any(|known| known.will_wake(waker)) {
            ring.wakers.push(waker.clone());
        }
        is_ready
    }

    /// Sleeps until there may be something new, or for so long. Says whether there is.
    pub fn wait(&self, timeout: Duration) -> bool {
        Sleeper::here().sleep_until_ready(timeout, |waker| self.is_ready(waker))
    }
}

/// Hands over what is new and says how far that goes.
fn hand_over<'b>(
    records: impl Iterator<Item = (tenure_log::Lsn, &'b [u8])>,
    after: Position,
    matters: &impl Fn(&[u8]) -> bool,
    visit: &mut impl FnMut(&Record<'_>, Lsn, Position) -> ControlFlow<Position>,
) -> Result<Position, Failure> {
    let mut position = after;
    for (lsn, bytes) in records {
        let lsn = Lsn(lsn.0);
        if lsn < after.wanted() {
            continue;
        }
        position = Position::after(lsn);
        if !matters(bytes) {
            continue;
        }
        let decoded = codec::decode(bytes);
        let record = decoded.map_err(|malformed| Failure::Record { lsn, malformed })?;
        if let ControlFlow::Break(position) = visit(&record, lsn, after) {
            return Ok(position);
        }
    }
    Ok(position)
}

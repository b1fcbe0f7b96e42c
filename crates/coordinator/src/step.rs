//! The single writer, one step at a time: take what came, decide it, hand the frame to the log,
//! and answer what the log has made durable. It looks at no clock and waits for nothing, so the
//! simulator runs this very code.

use std::collections::VecDeque;
use std::sync::Arc;

use tenure_core::State;
use tenure_core::command::{Command, Rest};
use tenure_core::id::Lsn;
use tenure_core::time::{Now, Timestamp};
use tenure_wal::{Batch, Committed, Fault, Log, MARK_BYTES, Place, Room};

use crate::ask::{Answer, Caller, Outcome, Request};
use crate::clock::{ClockJump, LogClock, Reading};
use crate::feed::Feed;
use crate::inbox::Inbox;
use crate::info::Work;
use crate::limits::{
    FRAME_BYTES, FULL_RETRY_MS, INLINE_RECORDS_MAX, MARK_AFTER_MS, PARKED_LEASES_MAX,
    PARKED_READERS_MAX, ROOM_CHECK_MS, STEP_REQUESTS_MAX,
};
use crate::planted::{self, Bug};
use crate::recover::Recovery;
use crate::respond::Outbox;
use crate::serve::{Awaited, ParkedLease, ParkedReader};
use crate::snapshot::Snapshots;
use crate::supply::LastLeases;
use crate::wait::Waiters;
use crate::workers::Workers;

/// The single writer. Whoever owns it calls [`Coordinator::step`].
#[derive(Debug)]
pub struct Coordinator<L: Log, C: Caller> {
    pub(crate) state: State,
    pub(crate) log: L,
    inbox: Inbox<C>,
    /// Requests that were taken and are not decided yet.
    taken: VecDeque<Request<C>>,
    /// Our own wishes, which nobody waits for.
    pub(crate) errands: VecDeque<Command>,
    /// Records that are decided and applied, for the next frame.
    pub(crate) batch: Batch,
    frame: FrameState,
    /// Empty batches with room.
    emptied: Vec<Batch>,
    pub(crate) outbox: Outbox<C>,
    /// Outcomes that nobody took.
    pub(crate) lost: Vec<Outcome>,
    pub(crate) parked: Waiters<Arc<str>, ParkedLease<C>>,
    /// Queues whose parked requests are still to be served.
    pub(crate) woken: Vec<Arc<str>>,
    pub(crate) readers: Waiters<Awaited, ParkedReader<C>>,
    pub(crate) workers: Workers,
    pub(crate) last_leases: LastLeases,
    clock: LogClock,
    feed: Feed,
    pub(crate) epoch: u64,
    seed: u64,
    pub(crate) work: Work,
    /// Log time of the last frame, as long as no mark has followed it.
    unmarked_since: Option<Timestamp>,
    jumped: Option<ClockJump>,
    /// Time still has to do what it could not do while nobody was here.
    is_starting: bool,
    /// Nobody is served before what is written is durable, whatever the log's durability.
    must_sync: bool,
    /// How much room the disk has for new work, and when that was looked at.
    pub(crate) room: Room,
    room_seen_at: Option<Timestamp>,
    pub(crate) snapshots: Snapshots<C>,
    /// Nothing is purged before this.
    pub(crate) purge_from: Timestamp,
}

/// Where the frame is that was sent last.
#[derive(Debug)]
enum FrameState {
    /// Nothing is under way.
    None,
    /// The log has it.
    UnderWay(Sent),
    /// The disk was full: it waits here to be sent again.
    Held { batch: Batch, sent: Sent, retry_at: Timestamp },
}

/// Where a frame is to stand, and its log time.
#[derive(Clone, Copy, Debug)]
struct Sent {
    place: Place,
    at: Timestamp,
}

/// When a step has to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once: there is more to do.
    Now,
    /// When somebody rings, or at the latest in so many milliseconds.
    WithinMs(u64),
    /// When somebody rings.
    WhenRung,
    /// When the log is done with what it has, which it says by ringing, or at the latest in so
    /// many milliseconds. Nothing can be decided before that.
    WhenLogged(Option<u64>),
}

impl<L: Log, C: Caller> Coordinator<L, C> {
    /// Goes on where the log left off. `seed` is any number, different at every start.
    #[must_use]
    pub fn new(recovery: Recovery<L>, inbox: Inbox<C>, reading: Reading, seed: u64) -> Self {
        let Recovery { mut state, log, at, may_lack, kept, .. } = recovery;
        let last = match planted::has(Bug::ClockFromTheWall) {
            true => Timestamp::ZERO,
            false => state.facts().last_at().max(at),
        };
        let clock = LogClock::start(last, reading);
        let now = clock.now(reading);
        state.serve(now);
        let released = state.last_lsn();
        Self {
            epoch: log.epoch(),
            feed: Feed::new(released),
            state,
            log,
            inbox,
            taken: VecDeque::new(),
            // Ids that were told and lost must never be given again.
            errands: may_lack.then_some(Command::SkipIds).into_iter().collect(),
            batch: Batch::default(),
            frame: FrameState::None,
            emptied: Vec::new(),
            outbox: Outbox::new(released),
            lost: Vec::new(),
            parked: Waiters::new(PARKED_LEASES_MAX),
            woken: Vec::new(),
            readers: Waiters::new(PARKED_READERS_MAX),
            workers: Workers::default(),
            last_leases: LastLeases::default(),
            clock,
            seed,
            work: Work::default(),
            unmarked_since: None,
            jumped: None,
            is_starting: true,
            must_sync: may_lack,
            room: Room::Plenty,
            room_seen_at: None,
            snapshots: Snapshots::new(kept, now.log),
            purge_from: Timestamp::ZERO,
        }
    }

    /// Does what there is to do, but no more than takes a few milliseconds.
    ///
    /// # Errors
    /// A fault of the log is the end: nobody is told anything any more, and this must not be
    /// called again.
    pub fn step(&mut self, reading: Reading) -> Result<Next, Fault> {
        let now = self.clock.now(reading);
        self.collect(now)?;
        self.do_chores(now)?;
        self.jumped = self.clock.jump(reading).or(self.jumped);
        let ticked = self.tick(now);
        let mut budget = STEP_REQUESTS_MAX;
        while self.has_room()
            && let Some(command) = self.errands.pop_front()
        {
            // Nobody waits for it; if it is refused, what it was about is over already.
            let _ = self.run(&command, now);
        }
        self.serve_woken(now);
        // What ended while nobody was here is on record before anybody is served.
        self.is_starting &= ticked == Rest::More || self.must_sync;
        if self.taken.is_empty() && !self.is_starting {
            self.inbox.take(&mut self.taken);
        }
        while budget > 0
            && self.has_room()
            && let Some(request) = self.taken.pop_front()
        {
            budget -= 1;
            self.receive(request, now);
            self.serve_woken(now);
        }
        self.inbox.left(self.taken.len());
        self.inbox.show_supply(self.last_leases.supply(now.log));
        self.send(now)?;
        self.tend_snapshots(now)?;
        self.give_back_lost();
        Ok(self.next(now, ticked))
    }

    /// A jump of the wall clock that was not asked for yet.
    pub fn take_jump(&mut self) -> Option<ClockJump> {
        self.jumped.take()
    }

    /// Where those who follow find what happened lately.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// The log, for readers.
    #[must_use]
    pub fn log(&self) -> &L {
        &self.log
    }

    /// The state. For checks and snapshots: what is in it may not be durable yet.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The last record that may be told.
    #[must_use]
    pub fn released(&self) -> Lsn {
        self.outbox.released()
    }

    /// The time by which this coordinator would decide now.
    #[must_use]
    pub fn now(&self, reading: Reading) -> Now {
        self.clock.now(reading)
    }

    /// Whether everything that was decided is with the log and everybody was told.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self.frame, FrameState::None) && self.batch.is_empty() && self.taken.is_empty()
    }

    /// Whether nothing is with the log that it has not committed.
    pub(crate) fn is_logged(&self) -> bool {
        matches!(self.frame, FrameState::None)
    }

    /// Whether time has something to do that it has not done yet.
    #[must_use]
    pub fn has_due(&self, reading: Reading) -> bool {
        let now = self.clock.now(reading);
        self.next_tick(now).is_some_and(|at| at <= now.log)
    }

    /// The orderly end, once nothing is let in and everything is settled: those who are parked
    /// are told, and the log is told that it is whole.
    pub fn close(mut self, reading: Reading) -> Result<(), Fault> {
        assert!(self.is_settled(), "an orderly end comes after the last frame");
        let nothing = |answer| Ok::<_, crate::ask::Refusal>(answer);
        for parked in self.parked.remove_if(|_| true) {
            let _ = parked.caller.tell(nothing(Answer::Leased(Vec::new())));
        }
        self.turn_away("the server is stopping; try again when it is back");
        self.feed.close();
        self.log.sync()?;
        match self.log.close(self.clock.now(reading).log.0) {
            // Everything is durable; only the mark finds no room.
            Err(Fault::Full) => Ok(()),
            marked => marked,
        }
    }

    /// Tells everybody who waits that it is over.
    pub fn turn_away(&mut self, why: &str) {
        self.inbox.close(why);
        let mut taken = std::mem::take(&mut self.taken);
        self.inbox.take(&mut self.taken);
        taken.append(&mut self.taken);
        let refusal = || Err(crate::ask::Refusal::Unavailable(Arc::from(why)));
        let callers = self.outbox.drain().chain(taken.into_iter().map(|request| request.caller));
        let parked = self.parked.remove_if(|_| true).into_iter().map(|parked| parked.caller);
        let readers = self.readers.remove_if(|_| true).into_iter().map(|reader| reader.caller);
        let waiting = self.snapshots.drain_callers();
        for caller in callers.chain(parked).chain(readers).chain(waiting) {
            let _ = caller.tell(refusal());
        }
    }

    /// Whether another record surely fits the frame, and another outcome may wait.
    pub(crate) fn has_room(&self) -> bool {
        self.batch.payload_bytes() < FRAME_BYTES && self.outbox.has_room()
    }

    /// A number that nobody can foretell, for jitter.
    pub(crate) fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.seed >> 11
    }

    /// Answers what the log has made durable.
    fn collect(&mut self, now: Now) -> Result<(), Fault> {
        if let FrameState::UnderWay(sent) = self.frame
            && let Some(committed) = self.log.poll()
        {
            self.frame = FrameState::None;
            self.committed(committed, sent, now)?;
        }
        self.collect_snapshot(now)
    }

    /// Hands the frame to the log. When nobody else waits there is nothing to do meanwhile, so it
    /// is committed right here, without a hand-over.
    fn send(&mut self, now: Now) -> Result<(), Fault> {
        if !matches!(self.frame, FrameState::None) || self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::replace(&mut self.batch, self.emptied.pop().unwrap_or_default());
        let first = self.state.last_lsn().0 + 1 - u64::from(batch.records());
        let place = Place { lsn: tenure_wal::Lsn(first), epoch: self.epoch };
        let sent = Sent { place, at: now.log };
        self.unmarked_since = Some(now.log);
        if batch.records() <= INLINE_RECORDS_MAX && self.taken.is_empty() && self.inbox.is_empty() {
            let committed = self.log.commit(batch, place, now.log.0);
            return self.committed(committed, sent, now);
        }
        self.frame = FrameState::UnderWay(sent);
        self.log.begin(batch, place, now.log.0);
        Ok(())
    }

    fn committed(&mut self, committed: Committed, sent: Sent, now: Now) -> Result<(), Fault> {
        let Committed { batch, result } = committed;
        let released = match result {
            Ok(released) => released,
            // Nothing was written and nobody was told, so the same frame can be sent again.
            Err(Fault::Full) => {
                let retry_at = now.log.plus_ms(FULL_RETRY_MS);
                self.frame = FrameState::Held { batch, sent, retry_at };
                return Ok(());
            }
            Err(fault) => return Err(fault),
        };
        self.work.frames += 1;
        self.work.records += u64::from(batch.records());
        self.work.bytes += batch.payload_bytes() as u64;
        self.snapshots.logged(batch.log_bytes());
        self.outbox.release(released, &mut self.lost);
        let first = Lsn(sent.place.lsn.0);
        self.emptied.extend(self.feed.publish(first, batch));
        // A view that waited for this frame may be written now.
        self.begin_snapshot()
    }

    /// Work that was granted to somebody who is gone goes back at once.
    fn give_back_lost(&mut self) {
        for outcome in self.lost.drain(..) {
            if let Ok(Answer::Leased(grants)) = outcome
                && !planted::has(Bug::LostGrantKept)
            {
                let releases = grants.iter().map(|grant| Command::ReleaseTask(grant.lease()));
                self.errands.extend(releases);
            }
        }
    }

    /// When to be called again.
    fn next(&self, now: Now, ticked: Rest) -> Next {
        let ms_until = |due: Timestamp| due.0.saturating_sub(now.log.0);
        if !self.has_room() && !matches!(self.frame, FrameState::None) {
            // Nothing can be decided before the log has taken what there is.
            return Next::WhenLogged(self.next_chore().map(ms_until));
        }
        let has_more = !self.taken.is_empty()
            // Those who came while others were being served.
            || (!self.is_starting && !self.inbox.is_empty())
            || !self.errands.is_empty()
            || !self.woken.is_empty()
            || ticked == Rest::More
            || (self.is_logged() && self.must_sync)
            || (self.is_logged() && self.has_upkeep())
            || (self.is_logged() && !self.batch.is_empty());
        if has_more {
            return Next::Now;
        }
        let due = [self.next_tick(now), self.next_chore(), self.next_snapshot()];
        let due = due.into_iter().flatten().min();
        due.map_or(Next::WhenRung, |due| Next::WithinMs(ms_until(due)))
    }

    /// What the log wants done when nothing else is.
    fn next_chore(&self) -> Option<Timestamp> {
        match &self.frame {
            FrameState::UnderWay(_) => None,
            FrameState::Held { retry_at, .. } => Some(*retry_at),
            FrameState::None => {
                let mark = self.unmarked_since.map(|since| since.plus_ms(MARK_AFTER_MS));
                let sync = self.log.sync_due_ms().map(Timestamp);
                [mark, sync].into_iter().flatten().min()
            }
        }
    }

    /// Does what the log wants done, if it is time.
    fn do_chores(&mut self, now: Now) -> Result<(), Fault> {
        if matches!(self.frame, FrameState::Held { retry_at, .. } if retry_at <= now.log)
            && let FrameState::Held { batch, sent, .. } =
                std::mem::replace(&mut self.frame, FrameState::None)
        {
            let committed = self.log.commit(batch, sent.place, sent.at.0);
            self.committed(committed, sent, now)?;
        }
        if !matches!(self.frame, FrameState::None) {
            return Ok(());
        }
        let must_sync = self.must_sync && self.batch.is_empty() && self.errands.is_empty();
        if must_sync || self.log.sync_due_ms().is_some_and(|due| due <= now.log.0) {
            self.log.sync()?;
            self.must_sync &= !must_sync;
        }
        if self.room_seen_at.is_none_or(|at| at.plus_ms(ROOM_CHECK_MS) <= now.log) {
            self.room_seen_at = Some(now.log);
            self.room = self.log.room();
            self.snapshots.kept.extent = self.log.extent();
        }
        self.tend_log(now)?;
        if self.batch.is_empty()
            && self.unmarked_since.is_some_and(|since| since.plus_ms(MARK_AFTER_MS) <= now.log)
        {
            self.unmarked_since = None;
            match self.log.mark(now.log.0) {
                Err(Fault::Full) => {}
                marked => {
                    marked?;
                    // Where little is done at a time, most of the log is marks.
                    if !planted::has(Bug::MarksUncounted) {
                        self.snapshots.logged(MARK_BYTES);
                    }
                }
            }
        }
        Ok(())
    }
}

//! The single writer, one step at a time: take what came, decide it, hand the frame to the log,
//! and answer what the log has made durable. It looks at no clock and waits for nothing, so the
//! simulator runs this very code.

use std::collections::VecDeque;
use std::sync::Arc;

use tenure_core::State;
use tenure_core::command::{Command, IdJump, LeaseRef, ParkRun, Rest};
use tenure_log::{Anchor, Batch, Fault, Log, Maintenance, Room};
use tenure_record::id::{Lsn, RunId};
use tenure_record::limits::RECORD_BYTES_MAX;
use tenure_record::time::{Now, Timestamp};

use crate::clock::{ClockJump, LogClock, Reading};
use crate::feed::Feed;
use crate::inbox::Inbox;
use crate::info::Work;
use crate::limits::{
    FRAME_BYTES, PARKED_LEASES_MAX, PARKED_READERS_MAX, STEP_REQUESTS_MAX, STEP_WORK_MAX,
    UNFINISHED_REPORTS_MAX,
};
use crate::memory::{Memory, Pool};
use crate::parking::{Awaited, ParkedLease, ParkedReader};
use crate::planted::{self, Bug};
use crate::progress::ProgressTable;
use crate::recover::Recovery;
use crate::refusal::Refusal;
use crate::report::UnfinishedReport;
use crate::request::{Envelope, Ready, Request, Responder};
use crate::respond::Outbox;
use crate::snapshot::Snapshots;
use crate::supply::LastLeases;
use crate::wait::Waiters;
use crate::window::Window;
use crate::workers::Workers;

/// The single writer. Its owner calls [`Coordinator::step`].
#[derive(Debug)]
pub struct Coordinator<L: Log> {
    pub(crate) state: State,
    pub(crate) log: L,
    pub(crate) inbox: Inbox,
    /// Requests that were taken and are not decided yet.
    pub(crate) taken: VecDeque<Envelope>,
    /// Batches of reports of which some are not decided yet.
    pub(crate) unfinished: VecDeque<UnfinishedReport>,
    /// Commands of the coordinator itself, for which no caller waits.
    pub(crate) errands: VecDeque<Command>,
    /// Records that are decided and applied, for the next frame.
    pub(crate) batch: Batch,
    /// Frames that were sent and are not committed yet.
    pub(crate) window: Window,
    /// The last frame that was committed.
    pub(crate) end: Anchor,
    /// Empty batches with room.
    pub(crate) emptied: Vec<Batch>,
    pub(crate) outbox: Outbox,
    /// Leases that were granted to callers that are gone.
    pub(crate) lost: Vec<LeaseRef>,
    pub(crate) parked: Waiters<Arc<str>, ParkedLease>,
    /// Queues whose parked requests are still to be served.
    pub(crate) woken: Vec<Arc<str>>,
    pub(crate) readers: Waiters<Awaited, ParkedReader>,
    pub(crate) workers: Workers,
    pub(crate) progress: ProgressTable,
    pub(crate) last_leases: LastLeases,
    pub(crate) clock: LogClock,
    pub(crate) feed: Feed,
    pub(crate) epoch: u64,
    seed: u64,
    pub(crate) work: Work,
    /// Log time of the last frame, as long as no mark has followed it.
    pub(crate) unmarked_since: Option<Timestamp>,
    jumped: Option<ClockJump>,
    /// Timers that fired while no process ran are still to be handled.
    is_starting: bool,
    /// No request is served before what is written is durable, whatever the log's durability.
    pub(crate) must_sync: bool,
    /// How much room the disk has for new work, and when that was looked at.
    pub(crate) room: Room,
    /// The memory budget, in which the state has a pool.
    pub(crate) memory: Memory,
    pub(crate) room_seen_at: Option<Timestamp>,
    pub(crate) snapshots: Snapshots,
    /// What the records of this step have cost.
    pub(crate) step_work: u64,
    /// A longer record is not written.
    pub(crate) record_bytes_max: usize,
    /// The run that a record was mostly about which was too long, and how long it was.
    pub(crate) oversized: Option<(RunId, usize)>,
    /// Nothing is purged before this.
    pub(crate) purge_from: Timestamp,
}

/// When a step has to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once: there is more to do.
    Now,
    /// When the bell rings, or at the latest after this number of milliseconds.
    WithinMs(u64),
    /// When the bell rings.
    WhenRung,
    /// When the log is done with what it has, which it says by ringing, or at the latest in so
    /// many milliseconds. Nothing can be decided before that.
    WhenLogged(Option<u64>),
}

impl<L: Log> Coordinator<L> {
    /// Goes on where the log left off. `seed` is any number, different at every start.
    #[must_use]
    pub fn new(recovery: Recovery<L>, inbox: Inbox, reading: Reading, seed: u64) -> Self {
        let Recovery { mut state, log, at, may_lack, kept, .. } = recovery;
        let last = match planted::has(Bug::ClockFromTheWall) {
            true => Timestamp::ZERO,
            false => state.facts().last_at().max(at),
        };
        let clock = LogClock::start(last, reading);
        let now = clock.now(reading);
        state.serve(now);
        // They stand still already; the record tells since when, and why.
        let broken = state.broken_runs().into_iter();
        let released = state.last_lsn();
        let memory = inbox.memory().clone();
        memory.pool(Pool::State).set(state.bytes().total());
        let (depth, end) = (log.depth(), log.end());
        Self {
            epoch: log.epoch(),
            feed: Feed::new(released, memory.pool(Pool::Feed).clone()),
            state,
            log,
            inbox,
            taken: VecDeque::new(),
            unfinished: VecDeque::new(),
            step_work: 0,
            record_bytes_max: RECORD_BYTES_MAX,
            oversized: None,
            // Ids that were told and lost must never be given again.
            errands: may_lack
                .then_some(Command::SkipIds(IdJump::UncleanStart))
                .into_iter()
                .chain(broken.map(|(run_id, reason)| Command::ParkRun(ParkRun { run_id, reason })))
                .collect(),
            batch: Batch::default(),
            window: Window::new(depth),
            end,
            emptied: Vec::new(),
            outbox: Outbox::new(released, memory.pool(Pool::Outbox).clone()),
            lost: Vec::new(),
            parked: Waiters::new(PARKED_LEASES_MAX),
            woken: Vec::new(),
            readers: Waiters::new(PARKED_READERS_MAX),
            workers: Workers::default(),
            progress: ProgressTable::default(),
            last_leases: LastLeases::default(),
            clock,
            seed,
            work: Work::default(),
            unmarked_since: None,
            jumped: None,
            is_starting: true,
            must_sync: may_lack,
            room: Room::Plenty,
            memory,
            room_seen_at: None,
            snapshots: Snapshots::new(kept, now.log),
            purge_from: Timestamp::ZERO,
        }
    }

    /// Does what there is to do, but no more than takes a few milliseconds.
    ///
    /// # Errors
    /// A fault of the log is the end: nothing is answered any more, and this must not be called
    /// again.
    pub fn step(&mut self, reading: Reading) -> Result<Next, Fault> {
        let now = self.clock.follow(reading);
        self.step_work = 0;
        self.collect(now)?;
        self.do_chores(now)?;
        self.jumped = self.clock.jump(reading).or(self.jumped);
        let ticked = self.tick(now);
        let mut budget = STEP_REQUESTS_MAX;
        while self.has_room()
            && let Some(command) = self.errands.pop_front()
        {
            // No caller waits for it; if it is refused, what it was about is over already.
            let _ = self.run(&command, now);
        }
        self.serve_woken(now);
        // What ended while no process ran is on record before any request is served.
        self.is_starting &= ticked == Rest::More || self.must_sync;
        self.continue_reports(now);
        let is_behind = self.unfinished.len() >= UNFINISHED_REPORTS_MAX;
        if self.taken.is_empty() && !self.is_starting && !is_behind {
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
        self.count_memory();
        self.send(now)?;
        self.tend_snapshots(now)?;
        self.give_back_lost();
        Ok(self.next(now, ticked))
    }

    /// Writes no record longer than this. Tests and the simulation set it low, to see what becomes
    /// of a record that is too long.
    pub fn limit_records(&mut self, bytes_max: usize) {
        self.record_bytes_max = bytes_max.min(RECORD_BYTES_MAX);
    }

    /// What the heaviest record so far cost, in the units of
    /// [`tenure_core::limits::RECORD_WORK_MAX`].
    #[must_use]
    pub fn heaviest_record(&self) -> u64 {
        self.work.heaviest
    }

    /// A jump of the wall clock that was not asked for yet.
    pub fn take_jump(&mut self) -> Option<ClockJump> {
        self.jumped.take()
    }

    /// The feed of recent frames, for followers.
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
        self.window.is_empty()
            && self.batch.is_empty()
            && self.taken.is_empty()
            && self.unfinished.is_empty()
    }

    /// Whether nothing is with the log that it has not committed.
    pub(crate) fn is_logged(&self) -> bool {
        self.window.is_empty()
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
        for parked in self.parked.remove_if(|_| true) {
            // No work came, so nothing can be lost.
            Request::ready(parked.to, Ok(Vec::new())).respond(&mut Vec::new());
        }
        self.turn_away("the server is stopping; try again when it is back");
        self.feed.close();
        let at_ms = self.clock.now(reading).log.0;
        let log = self.log.maintenance().expect("a settled log is free");
        log.sync()?;
        match log.close(at_ms) {
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
        let refusal = Refusal::Unavailable(Arc::from(why));
        let refuse = |ready: Ready| ready.refuse(refusal.clone());
        let decided = self.outbox.drain().map(refuse);
        let taken = taken.into_iter().map(|envelope| envelope.refuse(refusal.clone()));
        let parked = self.parked.remove_if(|_| true).into_iter();
        let parked = parked.map(|parked| refused(parked.to, &refusal));
        let readers = self.readers.remove_if(|_| true).into_iter();
        let readers = readers.map(|reader| reader.refuse(refusal.clone()));
        let snapshots = self.snapshots.drain_responders().map(|to| refused(to, &refusal));
        let reports = self.unfinished.drain(..).map(|report| refused(report.to, &refusal));
        let all = decided.chain(taken).chain(parked).chain(readers).chain(snapshots).chain(reports);
        // The coordinator ends: it can release no lease that a caller does not take.
        all.for_each(|ready| ready.respond(&mut Vec::new()));
    }

    /// Whether another record surely fits the frame, another outcome may wait, and this step has
    /// not cost too much yet.
    pub(crate) fn has_room(&self) -> bool {
        self.step_work < STEP_WORK_MAX && self.has_frame_room()
    }

    fn has_frame_room(&self) -> bool {
        self.batch.payload_bytes() < FRAME_BYTES && self.outbox.has_room()
    }

    /// Counts the memory of the state and of parked callers.
    pub(crate) fn count_memory(&self) {
        self.memory.pool(Pool::State).set(self.state.bytes().total());
        self.memory.pool(Pool::Parked).set(self.parked.bytes() + self.readers.bytes());
    }

    /// An unpredictable number, for jitter.
    pub(crate) fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.seed >> 11
    }

    /// Leases that were granted to a caller that is gone are released at once.
    fn give_back_lost(&mut self) {
        let releases = self.lost.drain(..).map(|lease| Command::ReleaseTask(lease.into()));
        match planted::has(Bug::LostGrantKept) {
            true => drop(releases),
            false => self.errands.extend(releases),
        }
    }

    /// When to be called again.
    fn next(&mut self, now: Now, ticked: Rest) -> Next {
        let ms_until = |due: Timestamp| due.0.saturating_sub(now.log.0);
        if !self.has_frame_room() && !self.window.is_empty() {
            // Nothing can be decided before the log has taken what there is.
            return Next::WhenLogged(self.next_chore().map(ms_until));
        }
        let has_more = !self.taken.is_empty()
            || !self.unfinished.is_empty()
            // Requests that came while others were being served.
            || (!self.is_starting && !self.inbox.is_empty())
            || !self.errands.is_empty()
            || !self.woken.is_empty()
            || ticked == Rest::More
            || (self.is_logged() && self.must_sync)
            || (self.is_logged() && self.has_upkeep())
            || (!self.batch.is_empty() && self.window.takes(self.batch.payload_bytes()));
        if has_more {
            return Next::Now;
        }
        let due = [self.next_tick(now), self.next_chore(), self.next_snapshot()];
        let due = due.into_iter().flatten().min();
        due.map_or(Next::WhenRung, |due| Next::WithinMs(ms_until(due)))
    }
}

/// The refusal of one request.
fn refused<R: Request>(to: Responder<R>, refusal: &Refusal) -> Ready {
    R::ready(to, Err(refusal.clone()))
}

//! The single writer, one step at a time: take what came, decide it, hand the frame to the log,
//! and answer what the log has made durable. It looks at no clock and waits for nothing, so the
//! simulator runs this very code.

use std::sync::Arc;

use tenure_core::State;
use tenure_core::command::{Command, IdJump, ParkRun, Rest};
use tenure_log::{Fault, Log, Maintenance};
use tenure_record::id::Lsn;
use tenure_record::time::{Now, Timestamp};

use crate::clock::{ClockJump, LogClock, Reading};
use crate::commit::Commit;
use crate::decider::Decider;
use crate::feed::Feed;
use crate::housekeeping::Housekeeping;
use crate::inbox::Inbox;
use crate::intake::Intake;
use crate::limits::STEP_REQUESTS_MAX;
use crate::memory::Pool;
use crate::parking::Parking;
use crate::planted::{self, Bug};
use crate::recover::Recovery;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::snapshot::Snapshots;
use crate::soft::SoftState;

/// The single writer. Its owner calls [`Coordinator::step`].
#[derive(Debug)]
pub struct Coordinator<L: Log> {
    pub(crate) state: State,
    pub(crate) inbox: Inbox,
    pub(crate) clock: LogClock,
    /// A jump of the wall clock that was not asked for yet.
    jumped: Option<ClockJump>,
    /// Work that is not decided yet.
    pub(crate) intake: Intake,
    /// The budget and the counters of decisions.
    pub(crate) decider: Decider,
    /// The way to the log, and back to callers.
    pub(crate) commit: Commit<L>,
    /// Long polls.
    pub(crate) parking: Parking,
    pub(crate) soft: SoftState,
    pub(crate) snapshots: Snapshots,
    /// Room for new work, and the pace of purges.
    pub(crate) housekeeping: Housekeeping,
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
        let internal_commands = may_lack
            // Ids that were told and lost must never be given again.
            .then_some(Command::SkipIds(IdJump::UncleanStart))
            .into_iter()
            .chain(broken.map(|(run_id, reason)| Command::ParkRun(ParkRun { run_id, reason })))
            .collect();
        let memory = inbox.memory().clone();
        memory.pool(Pool::State).set(state.bytes().total());
        Self {
            commit: Commit::new(log, state.last_lsn(), may_lack, &memory),
            state,
            inbox,
            clock,
            jumped: None,
            intake: Intake::new(internal_commands),
            decider: Decider::new(seed),
            parking: Parking::default(),
            soft: SoftState::default(),
            snapshots: Snapshots::new(kept, now.log),
            housekeeping: Housekeeping::new(memory),
        }
    }

    /// Does what there is to do, but no more than takes a few milliseconds.
    ///
    /// # Errors
    /// A fault of the log is the end: nothing is answered any more, and this must not be called
    /// again.
    pub fn step(&mut self, reading: Reading) -> Result<Next, Fault> {
        let now = self.clock.follow(reading);
        self.decider.begin_step();
        self.collect(now)?;
        self.do_chores(now)?;
        self.jumped = self.clock.jump(reading).or(self.jumped);
        let ticked = self.tick(now);
        let mut budget = STEP_REQUESTS_MAX;
        while self.has_room()
            && let Some(command) = self.intake.internal_commands.pop_front()
        {
            // No caller waits for it; if it is refused, what it was about is over already.
            let _ = self.run(&command, now);
        }
        self.serve_ready_queues(now);
        // What ended while no process ran is on record before any request is served.
        self.intake.is_starting &= ticked == Rest::More || self.commit.must_sync;
        self.continue_reports(now);
        self.intake.take(&self.inbox);
        while budget > 0
            && self.has_room()
            && let Some(request) = self.intake.in_progress.pop_front()
        {
            budget -= 1;
            self.receive(request, now);
            self.serve_ready_queues(now);
        }
        self.inbox.left(self.intake.in_progress.len());
        self.inbox.show_supply(self.soft.last_leases.supply(now.log));
        self.count_memory();
        self.send(now)?;
        self.tend_snapshots(now)?;
        self.give_back_lost();
        Ok(self.next(now, ticked))
    }

    /// Writes no record longer than this. Tests and the simulation set it low, to see what becomes
    /// of a record that is too long.
    pub fn limit_records(&mut self, bytes_max: usize) {
        self.decider.limit_records(bytes_max);
    }

    /// What the heaviest record so far cost, in the units of
    /// [`tenure_core::limits::RECORD_WORK_MAX`].
    #[must_use]
    pub fn heaviest_record(&self) -> u64 {
        self.decider.work.heaviest
    }

    /// A jump of the wall clock that was not asked for yet.
    pub fn take_jump(&mut self) -> Option<ClockJump> {
        self.jumped.take()
    }

    /// The feed of recent frames, for followers.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.commit.feed
    }

    /// The log, for readers.
    #[must_use]
    pub fn log(&self) -> &L {
        &self.commit.log
    }

    /// The state. For checks and snapshots: what is in it may not be durable yet.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The last record that may be told.
    #[must_use]
    pub fn released(&self) -> Lsn {
        self.commit.outbox.released()
    }

    /// The time by which this coordinator would decide now.
    #[must_use]
    pub fn now(&self, reading: Reading) -> Now {
        self.clock.now(reading)
    }

    /// Whether everything that was decided is with the log and everybody was told.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.commit.is_quiet() && self.intake.is_settled()
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
        for parked in self.parking.leases.remove_if(|_| true) {
            // No work came, so nothing can be lost.
            Request::ready(parked.to, Ok(Vec::new())).respond(&mut Vec::new());
        }
        self.turn_away("the server is stopping; try again when it is back");
        self.commit.feed.close();
        let at_ms = self.clock.now(reading).log.0;
        let log = self.commit.log.maintenance().expect("a settled log is free");
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
        let refusal = Refusal::Unavailable(Arc::from(why));
        let requests = self.intake.refuse_requests(&self.inbox, &refusal);
        let reports = self.intake.refuse_reports(&refusal);
        let decided = self.commit.outbox.drain().map(|ready| ready.refuse(refusal.clone()));
        let parked = self.parking.refuse_all(&refusal);
        let snapshots = self.snapshots.drain_responders();
        let snapshots = snapshots.map(|to| Request::ready(to, Err(refusal.clone())));
        let all = decided.chain(requests).chain(parked).chain(snapshots).chain(reports);
        // The coordinator ends: it can release no lease that a caller does not take.
        all.for_each(|ready| ready.respond(&mut Vec::new()));
    }

    /// Whether another record surely fits the frame, another outcome may wait, and this step has
    /// not cost too much yet.
    pub(crate) fn has_room(&self) -> bool {
        self.decider.has_budget() && self.commit.has_room()
    }

    /// Counts the memory of the state and of parked callers.
    pub(crate) fn count_memory(&self) {
        self.housekeeping.count_memory(&self.state, &self.parking);
    }

    /// Leases that were granted to a caller that is gone are released at once.
    fn give_back_lost(&mut self) {
        let lost = self.commit.lost_leases.drain(..);
        match planted::has(Bug::LostGrantKept) {
            true => drop(lost),
            false => self.intake.release(lost),
        }
    }

    /// When to be called again.
    fn next(&mut self, now: Now, ticked: Rest) -> Next {
        let ms_until = |due: Timestamp| due.0.saturating_sub(now.log.0);
        if !self.commit.has_room() && !self.commit.is_logged() {
            // Nothing can be decided before the log has taken what there is.
            return Next::WhenLogged(self.commit.next_chore().map(ms_until));
        }
        let has_more = self.intake.has_more(&self.inbox)
            || !self.parking.ready_queues.is_empty()
            || ticked == Rest::More
            || (self.commit.is_logged() && (self.commit.must_sync || self.has_upkeep()))
            || self.commit.may_send();
        if has_more {
            return Next::Now;
        }
        let due = [self.next_tick(now), self.commit.next_chore(), self.next_snapshot()];
        let due = due.into_iter().flatten().min();
        due.map_or(Next::WhenRung, |due| Next::WithinMs(ms_until(due)))
    }
}

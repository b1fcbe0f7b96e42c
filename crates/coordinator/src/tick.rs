//! What time does: leases end, deadlines pass, delayed tasks become ready, and those who waited
//! long enough are told so. Nothing is looked for; each knows its moment.

use tenure_core::command::{Command, Rest, Swept};
use tenure_core::time::{Clock, Now, Timestamp};
use tenure_wal::{Log, Room};

use crate::ask::{Answer, Caller};
use crate::limits::{PURGE_EVERY_MS, STEP_GRANTS_MAX, WALL_CHECK_MS};
use crate::planted::{self, Bug};
use crate::serve::{ParkedLease, ParkedReader};
use crate::step::Coordinator;
use crate::upkeep::Purge;

impl<L: Log, C: Caller> Coordinator<L, C> {
    /// Lets time do its work, as far as one step goes.
    pub(crate) fn tick(&mut self, now: Now) -> Rest {
        let mut rest = self.state.advance(now);
        if self.has_room() && self.next_end().is_some_and(|at| at <= now.log) {
            // It fires the deadlines that are due before it ends leases.
            let swept = self.run(&Command::ExpireLeases, now);
            if matches!(swept, Ok(Answer::Swept(Swept { rest: Rest::More, .. }))) {
                rest = Rest::More;
            }
        }
        let has_timer = self.state.next_timer().is_some_and(|at| at <= now.wall);
        if self.has_room() && has_timer && !planted::has(Bug::TimersSleep) {
            let swept = self.run(&Command::FireDeadlines, now);
            if matches!(swept, Ok(Answer::Swept(Swept { rest: Rest::More, .. }))) {
                rest = Rest::More;
            }
        }
        // Branches of wide groups begin a chunk at a time, so that nobody waits long behind them.
        let has_dispatch = self.state.has_dispatch() && !planted::has(Bug::DispatchForgotten);
        if self.has_room() && has_dispatch {
            let continued = self.run(&Command::ContinueDispatch, now);
            if continued.is_ok() && self.state.has_dispatch() {
                rest = Rest::More;
            }
        }
        self.purge(now);
        for _ in 0..STEP_GRANTS_MAX {
            let Some(ParkedLease { caller, .. }) = self.parked.pop_due(now.log) else { break };
            self.put(caller, Ok(Answer::Leased(Vec::new())));
        }
        for _ in 0..STEP_GRANTS_MAX {
            let Some(ParkedReader { awaited, caller }) = self.readers.pop_due(now.log) else {
                break;
            };
            let outcome = self.look_at(awaited);
            match planted::has(Bug::ReaderForgotten) {
                true => drop(caller),
                false => self.put(caller, outcome),
            }
        }
        rest
    }

    /// When time has something to do next, by log time.
    pub(crate) fn next_tick(&self, now: Now) -> Option<Timestamp> {
        // The wall clock may be set, so nobody sleeps until an appointment.
        let appointments = [self.state.next_start(Clock::Wall), self.state.next_timer()];
        let appointment = appointments.into_iter().flatten().min().map(|at| {
            let wait_ms = at.0.saturating_sub(now.wall.0).min(WALL_CHECK_MS);
            now.log.plus_ms(wait_ms)
        });
        let moments = [
            self.next_end(),
            self.state.next_start(Clock::Log),
            appointment,
            self.state.has_dispatch().then_some(now.log),
            self.parked.next_deadline(),
            self.readers.next_deadline(),
            self.next_purge(),
        ];
        moments.into_iter().flatten().min()
    }

    /// Forgets finished tasks whose time is over: a few at a time, and nobody waits for the rest.
    fn purge(&mut self, now: Now) {
        if !self.has_room() || self.next_purge().is_none_or(|at| at > now.log) {
            return;
        }
        let swept = self.run(&Command::PurgeTasks(self.snapshots.upkeep.retention), now);
        let Ok(Answer::Swept(Swept { items, rest })) = swept else { return };
        self.work.purged += items as u64;
        self.purge_from = match rest {
            Rest::More => now.log,
            Rest::Nothing => now.log.plus_ms(PURGE_EVERY_MS),
        };
    }

    /// When something is to be forgotten. Not while the disk is nearly full: what is left of it is
    /// for those who wait.
    fn next_purge(&self) -> Option<Timestamp> {
        match (self.snapshots.upkeep.purge, self.room) {
            // What is in no archive yet is not forgotten, whatever its age.
            (Purge::AfterArchive, _) | (Purge::ByItself, Room::Low) => None,
            (Purge::ByItself, Room::Plenty) => {
                let due = self.state.next_purge(&self.snapshots.upkeep.retention)?;
                Some(due.max(self.purge_from))
            }
        }
    }

    /// When the next lease or deadline ends.
    fn next_end(&self) -> Option<Timestamp> {
        let ends = [self.state.next_lease_end(), self.state.next_deadline()];
        ends.into_iter().flatten().min()
    }
}

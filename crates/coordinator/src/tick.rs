//! What time does: timers fire, delayed tasks become ready, and parked requests whose wait is over
//! are answered. Nothing is scanned for; each has its moment in an index.

use tenure_core::command::{Command, ParkRun, Rest, Swept};
use tenure_core::limits::DUE_ITEMS_MAX;
use tenure_core::state::TimerRef;
use tenure_log::Log;
use tenure_record::time::{Clock, Now, Timestamp};

use crate::limits::{BACKGROUND_FRAME_BYTES, STEP_GRANTS_MAX, STEP_SWEEPS_MAX, WALL_CHECK_MS};
use crate::parking::ParkedLease;
use crate::planted::{self, Bug};
use crate::step::Coordinator;

impl<L: Log> Coordinator<L> {
    /// Lets time do its work, as far as one step goes.
    pub(crate) fn tick(&mut self, now: Now) -> Rest {
        let mut rest = self.state.advance(now);
        rest = self.fire_timers(now).max(rest);
        // Branches of wide groups begin a chunk at a time, so that nobody waits long behind them.
        let has_dispatch = self.state.has_dispatch() && !planted::has(Bug::DispatchForgotten);
        if self.has_background_room() && has_dispatch {
            let continued = self.sweep(&Command::ContinueDispatch, now);
            if continued.rest == Rest::More && self.state.has_dispatch() {
                rest = Rest::More;
            }
        }
        // What is ending ends a part at a time, for the same reason.
        let has_endings = self.state.has_endings() && !planted::has(Bug::EndingForgotten);
        if self.has_background_room() && has_endings {
            let items_max = self.state.end_items_max();
            self.sweep(&Command::ContinueEnding { items_max }, now);
            if self.state.has_endings() {
                rest = Rest::More;
            }
        }
        self.purge(now);
        for _ in 0..STEP_GRANTS_MAX {
            let Some(ParkedLease { to, .. }) = self.parking.leases.pop_due(now.log) else { break };
            self.put(to, Ok(Vec::new()));
        }
        for _ in 0..STEP_GRANTS_MAX {
            let Some(reader) = self.parking.readers.pop_due(now.log) else { break };
            match planted::has(Bug::ReaderForgotten) {
                true => drop(reader),
                false => self.show_to(reader),
            }
        }
        rest
    }

    /// Fires the timers that are due. A record ends where the order of moments ends it, so a tick
    /// writes several, as far as one step goes.
    fn fire_timers(&mut self, now: Now) -> Rest {
        let mut fired = 0;
        for _ in 0..STEP_SWEEPS_MAX {
            let Some(timer) = self.state.first_due(now) else { return Rest::Nothing };
            let sleeps = planted::has(Bug::TimersSleep) && matches!(timer, TimerRef::Timer(..));
            if sleeps || !self.has_room() {
                return if fired > 0 { Rest::More } else { Rest::Nothing };
            }
            let Swept { items, rest } = self.sweep(&Command::FireTimers, now);
            fired += items;
            if rest == Rest::Nothing || items == 0 || fired >= DUE_ITEMS_MAX {
                return rest;
            }
        }
        Rest::More
    }

    /// Runs one of our own commands. If its record would be too long, the run that it is mostly about
    /// is parked: the command would come again and again, and never fit.
    fn sweep(&mut self, command: &Command, now: Now) -> Swept {
        let nothing = Swept { items: 0, rest: Rest::Nothing };
        self.decider.take_oversized();
        match self.run_as(command, now) {
            Ok(swept) => swept,
            Err(_) => {
                let Some((run_id, bytes)) = self.decider.take_oversized() else { return nothing };
                let most = self.decider.record_bytes_max();
                let reason = format!(
                    "its next step needs a record of {bytes} bytes; at most {most} are allowed"
                );
                let parked = self.run(&Command::ParkRun(ParkRun { run_id, reason }), now);
                if parked.is_ok() { Swept { rest: Rest::More, ..nothing } } else { nothing }
            }
        }
    }

    /// When time has something to do next, by log time.
    pub(crate) fn next_tick(&self, now: Now) -> Option<Timestamp> {
        // The wall clock may be set, so the coordinator looks at it again at least every
        // `WALL_CHECK_MS` while a calendar moment is ahead.
        let calendar = self.state.next_moment(Clock::Wall).map(|at| {
            let wait_ms = at.0.saturating_sub(now.wall.0).min(WALL_CHECK_MS);
            now.log.plus_ms(wait_ms)
        });
        let moments = [
            self.state.next_moment(Clock::Log),
            calendar,
            self.next_background(now),
            self.parking.next_deadline(),
            self.next_purge(),
        ];
        moments.into_iter().flatten().min()
    }

    /// Whether dispatch and ends may add to the frame that is being filled.
    fn has_background_room(&self) -> bool {
        self.has_room() && self.commit.batch.payload_bytes() < BACKGROUND_FRAME_BYTES
    }

    /// When dispatch and ends go on: at once, or when the log has taken the frame, which it says by
    /// ringing.
    fn next_background(&self, now: Now) -> Option<Timestamp> {
        let has_work = self.state.has_dispatch() || self.state.has_endings();
        let waits = self.commit.batch.payload_bytes() >= BACKGROUND_FRAME_BYTES;
        (has_work && !waits).then_some(now.log)
    }

    /// Forgets finished tasks whose time is over: a few at a time, and nobody waits for the rest.
    fn purge(&mut self, now: Now) {
        if !self.has_room() || self.next_purge().is_none_or(|at| at > now.log) {
            return;
        }
        let purge = Command::PurgeTasks(self.snapshots.upkeep.retention);
        let Ok(Swept { items, rest }) = self.run_as(&purge, now) else { return };
        self.decider.work.purged += items as u64;
        self.housekeeping.purged(rest, now);
    }

    fn next_purge(&self) -> Option<Timestamp> {
        self.housekeeping.next_purge(&self.state, &self.snapshots.upkeep)
    }
}

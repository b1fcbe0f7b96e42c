//! Observation and teardown: followers read, the laws check the whole state, faults end, and all work
//! has to come to an end.

use crate::actors::Look;
use crate::check::{Broken, LawResult, hold};
use crate::restarts::RECOVERS;
use crate::world::{Event, World};

const DRAINS: &str = "after the trouble everything comes to an end";
/// How often it is asked whether everything has come to an end.
const DRAIN_LOOK_MS: u64 = 100;
/// Frames that a follower takes at a time.
const FRAMES_PER_LOOK: u32 = 8;

impl World {
    pub(crate) fn look_again(&mut self, number: usize) -> LawResult {
        let wait = match self.healed_at {
            Some(_) => 20,
            None => self.random.between(1, self.config.think_ms),
        };
        self.after_a_while(wait, Event::Look(number));
        if number == 0 && self.config.has_silent_follower && self.healed_at.is_none() {
            return Ok(());
        }
        for _ in 0..FRAMES_PER_LOOK {
            if self.look(number)? != Look::More {
                break;
            }
        }
        let seen = self.followers[number].seen;
        self.trace.note(self.now, format_args!("follower {number} has seen {seen}"));
        Ok(())
    }

    fn look(&mut self, number: usize) -> Result<Look, Broken> {
        let cut_permille = if self.healed_at.is_some() { 0 } else { 50 };
        let Some(life) = &self.life else { return Ok(Look::Cut) };
        let follower = &mut self.followers[number];
        let look = follower.look(&self.laws, life, &mut self.random, cut_permille)?;
        self.coverage.add_many("network", "follower cut", u64::from(look == Look::Cut));
        Ok(look)
    }

    pub(crate) fn check(&mut self) -> LawResult {
        self.after(self.config.check_ms, Event::Check);
        self.laws.forget(self.now);
        let seen = (self.laws.read, self.machine.starts);
        if std::mem::replace(&mut self.checked, seen) == seen {
            return Ok(());
        }
        match &self.life {
            Some(life) if life.coordinator.is_settled() => {
                self.laws.settled(life.coordinator.state())
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn heal(&mut self) {
        self.trace.note(self.now, format_args!("the trouble is over"));
        self.healed_at = Some(self.now);
        self.line.heal();
        self.calm_down();
        self.after(DRAIN_LOOK_MS, Event::IsItOver);
        for actor in 0..self.actors.len() {
            self.after(1, Event::Wake(actor));
        }
    }

    /// Whether everything has come to an end after the trouble.
    pub(crate) fn has_ended(&mut self) -> Result<bool, Broken> {
        self.after(DRAIN_LOOK_MS, Event::IsItOver);
        let Some(healed_at) = self.healed_at else { return Ok(false) };
        let is_settled = self.life.as_ref().is_some_and(|life| life.coordinator.is_settled());
        let open = || {
            let tasks = self.laws.ledger.tasks.iter();
            tasks.filter(|(_, task)| !task.is_purged && !task.state.is_terminal())
        };
        let live = self.laws.ledger.runs.iter();
        let live = live.filter(|(_, run)| !run.is_purged && !run.state.is_terminal());
        let live = live.map(|(id, _)| *id).next();
        let blind = self.followers.iter().position(|f| self.laws.feed.ended(f.seen).is_err());
        if open().next().is_none() && live.is_none() && blind.is_none() && is_settled {
            return Ok(true);
        }
        hold(DRAINS, self.now < healed_at + self.config.drain_ms, || {
            format!("open: {:?}, run: {live:?}, follower: {blind:?}", open().next())
        })?;
        Ok(false)
    }

    /// Everything has come to an end: the last look, a stop, and a start that finds the same.
    pub(crate) fn end(&mut self) -> LawResult {
        let Some(life) = &mut self.life else { return Ok(()) };
        self.laws.settled(life.coordinator.state())?;
        life.inbox.close("the simulation is over");
        life.is_stopping = true;
        life.step_by(self.now);
        while self.life.is_some() {
            self.step()?;
            self.now += 1;
            self.machine.clock.set(self.now);
        }
        self.restart()?;
        hold(RECOVERS, self.life.is_some(), || "it does not start at the end".to_owned())?;
        for number in 0..self.followers.len() {
            while self.look(number)? == Look::More {}
            self.laws.feed.ended(self.followers[number].seen)?;
        }
        self.life.as_ref().map_or(Ok(()), |life| self.laws.ended(life))
    }
}

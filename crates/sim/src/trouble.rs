//! What goes wrong with the machine: it stops, its disk fails or is full, its clock is set.

use tenure_wal::disk::model::FaultKind;
use tenure_wal::disk::{Disk, DiskFile};
use tenure_wal::snapshot;

use crate::check::Held;
use crate::disk::Planned;
use crate::world::{Event, World};

/// How a coordinator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// Without warning.
    Sudden,
    /// By a fault of its log, of which it told.
    Fault,
    /// It did not even start.
    Again,
    /// In order.
    Closed,
}

#[derive(Clone, Copy, Debug)]
enum Trouble {
    CrashAtACall,
    Kill,
    Stop,
    Fails(FaultKind),
    Fill,
    Jump,
}

const TROUBLES: [(u64, Trouble); 9] = [
    (30, Trouble::CrashAtACall),
    (10, Trouble::Kill),
    (8, Trouble::Stop),
    (14, Trouble::Fails(FaultKind::Eio)),
    (8, Trouble::Fails(FaultKind::Enospc)),
    (5, Trouble::Fails(FaultKind::Eintr)),
    (5, Trouble::Fails(FaultKind::Short)),
    (20, Trouble::Fill),
    (12, Trouble::Jump),
];

impl World {
    /// Something goes wrong.
    pub(crate) fn trouble(&mut self) -> Held {
        if self.healed_at.is_some() {
            return Ok(());
        }
        let wait = self.random.between(1, 2 * self.mix.trouble_every_ms);
        self.after_a_while(wait, Event::Trouble);
        let trouble = self.random.weighted(&TROUBLES);
        self.trace.note(self.now, format_args!("trouble: {trouble:?}"));
        let nth = self.random.between(1, 12);
        match trouble {
            Trouble::CrashAtACall => {
                self.tally.add("fault", "crash at a call");
                self.machine.disk.plan(nth, Planned::Crash);
            }
            Trouble::Kill => self.die(Death::Sudden),
            Trouble::Stop => {
                if let Some(life) = &mut self.life {
                    life.inbox.close("the server is stopping");
                    life.is_stopping = true;
                    life.step_by(self.now);
                }
            }
            Trouble::Fails(kind) => {
                self.tally.add("fault", fault_name(kind));
                self.machine.disk.plan(nth, Planned::Fails(kind));
            }
            Trouble::Fill if self.mix.fills => self.fill(),
            Trouble::Jump if self.mix.jump_ms > 0 => self.jump(),
            Trouble::Fill | Trouble::Jump => {}
        }
        Ok(())
    }

    /// Some starts meet trouble while they read the log.
    pub(crate) fn plan_for_recovery(&mut self) {
        if self.healed_at.is_none() && self.mix.trouble_every_ms > 0 && self.random.chance(150) {
            self.tally.add("fault", "crash in recovery");
            let nth = self.random.between(1, 20);
            self.machine.disk.plan(nth, Planned::Crash);
        }
    }

    /// A planned crash has come, whoever met it.
    pub(crate) fn die_if_crashed(&mut self) {
        if self.life.is_some() && self.machine.disk.happened() == Some(Planned::Crash) {
            self.die(Death::Sudden);
        }
    }

    /// The log failed: everybody is told that it is over, unless the machine is gone as well.
    pub(crate) fn fault_ends_it(&mut self, why: &str) -> Held {
        self.trace.note(self.now, format_args!("a fault ends it: {why}"));
        let is_crash = self.machine.disk.happened() == Some(Planned::Crash);
        if is_crash || self.random.chance(300) {
            self.die(Death::Sudden);
            return Ok(());
        }
        self.tally.add("fault", "fault ends it");
        if let Some(mut life) = self.bury() {
            life.coordinator.turn_away(why);
            self.hear_the_last(&life)?;
        }
        self.die(Death::Fault);
        Ok(())
    }

    /// The coordinator is gone, and will be started again.
    pub(crate) fn die(&mut self, how: Death) {
        let was_there = self.bury().is_some();
        // What a life leaves behind does not matter to those who come after.
        self.desk.take_news();
        if how == Death::Sudden && !was_there {
            return;
        }
        let loses_power = how != Death::Closed && self.random.chance(self.mix.power_permille);
        self.trace.note(self.now, format_args!("death: {how:?}, power lost: {loses_power}"));
        match loses_power {
            true => {
                self.tally.add("fault", "power lost");
                self.machine.disk.lose_power(&mut self.random);
            }
            false => {
                self.tally.add("fault", "killed");
                self.machine.disk.kill();
            }
        }
        if self.healed_at.is_none() && self.random.chance(self.mix.rot_permille) {
            self.rot();
        }
        if self.random.chance(300) && self.mix.jump_ms > 0 && self.healed_at.is_none() {
            self.jump();
        }
        let down_ms = self.random.pick(&[1, 30, 800]);
        self.after(down_ms, Event::Restart);
    }

    /// The disk has no room for another segment, for a while.
    fn fill(&mut self) {
        self.tally.add("fault", "disk full");
        let beyond = self.random.below(self.mix.segment_bytes);
        self.machine.disk.limit(Some(beyond));
        let wait = self.random.between(500, 4_000);
        self.after(wait, Event::RoomReturns);
    }

    /// A bit of the newest snapshot is another, while there is an older one.
    fn rot(&mut self) {
        let disk = &self.machine.disk.model;
        let found = snapshot::list(disk).unwrap_or_default();
        let [newest, _, ..] = found.as_slice() else { return };
        if self.machine.rotten.is_some() {
            return;
        }
        let Ok(file) = disk.open(&snapshot::file_name(*newest)) else { return };
        let at = self.random.below(file.size().unwrap_or_default());
        let mut byte = [0];
        let changed = file
            .read_at(&mut byte, at)
            .and_then(|_| file.write_at(&[byte[0] ^ 1 << self.random.below(8)], at))
            .and_then(|_| file.sync());
        if changed.is_ok() {
            self.trace.note(self.now, format_args!("snapshot {newest} rots at {at}"));
            self.machine.rotten = Some(*newest);
        }
    }

    /// Somebody sets the clock.
    fn jump(&mut self) {
        let by = self.random.between(1, self.mix.jump_ms);
        let ahead = &mut self.machine.wall_ahead;
        *ahead = match self.random.chance(500) {
            true => {
                self.tally.add("fault", "clock ahead");
                *ahead + by
            }
            false => {
                self.tally.add("fault", "clock back");
                *ahead - by
            }
        };
        self.machine.furthest = self.machine.furthest.max(*ahead);
        if let Some(life) = &mut self.life {
            life.set_wall(*ahead);
        }
    }

    /// Nothing goes wrong any more, and the clock is set right: no appointment is ahead for long.
    pub(crate) fn calm_down(&mut self) {
        self.machine.disk.calm();
        self.machine.disk.limit(None);
        self.machine.wall_ahead = self.machine.furthest;
        if let Some(life) = &mut self.life {
            life.set_wall(self.machine.furthest);
        }
    }
}

fn fault_name(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Eio => "Eio",
        FaultKind::Enospc => "Enospc",
        FaultKind::Eintr => "Eintr",
        FaultKind::Short => "Short",
        FaultKind::Lost => "Lost",
        FaultKind::Changed => "Changed",
    }
}

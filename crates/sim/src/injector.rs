//! Fault injection into the machine: it stops, its disk fails or is full, its clock is set.

use tenure_wal::disk::model::{FaultKind, SECTOR_BYTES};
use tenure_wal::disk::{Disk, DiskFile};
use tenure_wal::snapshot;

use crate::check::{LawResult, Noticed, read_damaged};
use crate::config::SLOW_MS;
use crate::disk::Planned;
use crate::faults::SimFault;
use crate::last_frames::Damage;
use crate::random::Random;
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
    Slow,
}

const TROUBLES: [(u64, Trouble); 10] = [
    (30, Trouble::CrashAtACall),
    (10, Trouble::Kill),
    (8, Trouble::Stop),
    (14, Trouble::Fails(FaultKind::Eio)),
    (8, Trouble::Fails(FaultKind::Enospc)),
    (5, Trouble::Fails(FaultKind::Eintr)),
    (5, Trouble::Fails(FaultKind::Short)),
    (20, Trouble::Fill),
    (12, Trouble::Jump),
    (10, Trouble::Slow),
];

impl World {
    /// Something goes wrong.
    pub(crate) fn trouble(&mut self) -> LawResult {
        if self.healed_at.is_some() {
            return Ok(());
        }
        let wait = self.random.between(1, 2 * self.config.trouble_every_ms);
        self.after_a_while(wait, Event::Trouble);
        let trouble = self.random.weighted(&TROUBLES);
        self.trace.note(self.now, format_args!("trouble: {trouble:?}"));
        let nth = self.random.between(1, 12);
        if self.config.without.has(trouble.fault()) {
            return Ok(());
        }
        match trouble {
            Trouble::CrashAtACall => {
                self.coverage.add("fault", "crash at a call");
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
                self.coverage.add("fault", fault_name(kind));
                self.machine.disk.plan(nth, Planned::Fails(kind));
            }
            Trouble::Fill if self.config.fills => self.fill(),
            Trouble::Jump if self.config.jump_ms > 0 => self.jump(),
            Trouble::Slow if self.config.slows => self.slow_down(),
            Trouble::Fill | Trouble::Jump | Trouble::Slow => {}
        }
        Ok(())
    }

    /// Some starts meet trouble while they read the log.
    pub(crate) fn plan_for_recovery(&mut self) {
        let may_crash = self.healed_at.is_none()
            && self.config.trouble_every_ms > 0
            && !self.config.without.has(SimFault::Crash);
        if may_crash && self.random.chance(150) {
            self.coverage.add("fault", "crash in recovery");
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
    pub(crate) fn fault_ends_it(&mut self, why: &str) -> LawResult {
        self.trace.note(self.now, format_args!("a fault ends it: {why}"));
        let is_crash = self.machine.disk.happened() == Some(Planned::Crash);
        if is_crash || self.random.chance(300) {
            self.die(Death::Sudden);
            return Ok(());
        }
        self.coverage.add("fault", "fault ends it");
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
        self.callers.take_news();
        if how == Death::Sudden && !was_there {
            return;
        }
        let loses_power = how != Death::Closed && self.random.chance(self.config.power_permille);
        self.trace.note(self.now, format_args!("death: {how:?}, power lost: {loses_power}"));
        match loses_power {
            true => {
                self.coverage.add("fault", "power lost");
                self.machine.disk.lose_power(&mut self.random);
            }
            false => {
                self.coverage.add("fault", "killed");
                self.machine.disk.kill();
            }
        }
        if self.healed_at.is_none() && self.random.chance(self.config.rot_permille) {
            self.rot();
        }
        if self.healed_at.is_none() && self.random.chance(self.config.damage_permille) {
            self.damage_found = self.damage();
        }
        if self.random.chance(300) && self.config.jump_ms > 0 && self.healed_at.is_none() {
            self.jump();
        }
        let down_ms = self.random.pick(&[1, 30, 800]);
        self.after(down_ms, Event::Restart);
    }

    /// The disk has no room for another segment, for a while.
    fn fill(&mut self) {
        self.coverage.add("fault", "disk full");
        // Now and then for so long that the spare segment is used up too.
        let (beyond, wait) = match self.random.chance(300) {
            true => (0, self.random.between(20_000, 300_000)),
            false => {
                (self.random.below(self.config.segment_bytes), self.random.between(500, 4_000))
            }
        };
        self.machine.disk.limit(Some(beyond));
        self.after(wait, Event::RoomReturns);
    }

    /// Syncs take long for a while.
    fn slow_down(&mut self) {
        self.coverage.add("fault", "slow disk");
        self.machine.slow.set(SLOW_MS);
        let wait = self.random.between(500, 4_000);
        self.after(wait, Event::DiskIsFast);
    }

    /// A copy of the log is damaged, and somebody starts from it: what was told must not change
    /// unseen. The log itself stays as it is.
    fn damage(&mut self) -> LawResult {
        let copy = self.machine.disk.model.killed();
        copy.limit_room(None);
        let names = copy.list().unwrap_or_default();
        let segments: Vec<&String> =
            names.iter().filter(|name| name.starts_with("segment-")).collect();
        if segments.is_empty() {
            return Ok(());
        }
        let name = self.random.pick(&segments);
        let mut bytes = copy.bytes(name).unwrap_or_default();
        let (what, damage) = match self.random.below(3) {
            0 => (rot(&mut bytes, &mut self.random), Damage::Bit),
            1 => (misdirect(&mut bytes, &mut self.random), Damage::Sector),
            _ => (blank(&mut bytes, &mut self.random), Damage::Sector),
        };
        self.coverage.add("fault", what);
        copy.put(name, bytes);
        let found = self.machine.read_copy(&copy, &self.config, &mut self.random);
        let found = found.as_ref().map(|(after, records)| (*after, records.as_slice()));
        let tape = self.machine.tape.borrow();
        let at_risk = self.machine.last_frames.borrow().at_risk(damage);
        let noticed = read_damaged(&tape, at_risk, found, &format!("{what} in {name}"))?;
        self.trace.note(self.now, format_args!("{what} in a copy of {name}: {noticed:?}"));
        self.coverage.add(
            "fault",
            match noticed {
                Noticed::Refused => "damage refused",
                Noticed::Harmless => "damage without harm",
                Noticed::LooksTorn => "damage that looks torn",
            },
        );
        Ok(())
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
        let by = self.random.between(1, self.config.jump_ms);
        let ahead = &mut self.machine.wall_ahead;
        *ahead = match self.random.chance(500) {
            true => {
                self.coverage.add("fault", "clock ahead");
                *ahead + by
            }
            false => {
                self.coverage.add("fault", "clock back");
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
        self.machine.slow.set(0);
        self.machine.disk.calm();
        self.machine.disk.limit(None);
        self.machine.wall_ahead = self.machine.furthest;
        if let Some(life) = &mut self.life {
            life.set_wall(self.machine.furthest);
        }
    }
}

impl Trouble {
    /// What has to be left out for it not to happen.
    fn fault(self) -> SimFault {
        match self {
            Trouble::CrashAtACall | Trouble::Kill => SimFault::Crash,
            Trouble::Stop => SimFault::Stop,
            Trouble::Fails(FaultKind::Eio | FaultKind::Lost | FaultKind::Changed) => SimFault::Eio,
            Trouble::Fails(FaultKind::Enospc) => SimFault::Enospc,
            Trouble::Fails(FaultKind::Eintr) => SimFault::Eintr,
            Trouble::Fails(FaultKind::Short) => SimFault::Short,
            Trouble::Fill => SimFault::Full,
            Trouble::Jump => SimFault::Jump,
            Trouble::Slow => SimFault::Slow,
        }
    }
}

/// One bit is another.
fn rot(bytes: &mut [u8], random: &mut Random) -> &'static str {
    let at = random.below(bytes.len() as u64) as usize;
    bytes[at] ^= 1 << random.below(8);
    "bit rot"
}

/// What was meant for one sector went to another.
fn misdirect(bytes: &mut [u8], random: &mut Random) -> &'static str {
    let sectors = (bytes.len() / SECTOR_BYTES) as u64;
    let from = random.below(sectors) as usize * SECTOR_BYTES;
    let to = random.below(sectors) as usize * SECTOR_BYTES;
    bytes.copy_within(from..from + SECTOR_BYTES, to);
    "misdirected write"
}

/// A sector has nothing in it any more.
fn blank(bytes: &mut [u8], random: &mut Random) -> &'static str {
    let sectors = (bytes.len() / SECTOR_BYTES) as u64;
    let at = random.below(sectors) as usize * SECTOR_BYTES;
    bytes[at..at + SECTOR_BYTES].fill(0);
    "blank sector"
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

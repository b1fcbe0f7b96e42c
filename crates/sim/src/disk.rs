//! What can happen to the disk: a crash at any call, calls that fail, and what survives.

use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault, Survival};

use crate::random::Random;

/// What is to go wrong at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planned {
    /// The machine stops there.
    Crash,
    /// One call fails.
    Fails(FaultKind),
}

/// The modelled disk and what is planned for it.
#[derive(Debug, Default)]
pub(crate) struct SimDisk {
    pub(crate) model: ModelDisk,
    plan: Option<(u64, Planned)>,
    /// What failed before, since the process began: a spare that could not be made ends it only when
    /// it is needed.
    before: Option<Planned>,
    room: Option<u64>,
}

impl SimDisk {
    /// Lets something go wrong at the nth call from now.
    pub(crate) fn plan(&mut self, nth: u64, what: Planned) {
        self.before = self.happened();
        let at_call = self.model.calls() + nth;
        let (kind, lasting) = match what {
            Planned::Crash => (FaultKind::Eio, true),
            Planned::Fails(kind) => (kind, false),
        };
        self.plan = Some((at_call, what));
        self.model.plan(Some(PlannedFault { at_call, kind, lasting }));
    }

    /// What was planned, once it has happened; the last of it since the process began.
    pub(crate) fn happened(&self) -> Option<Planned> {
        let planned = self.plan.filter(|(at_call, _)| self.model.calls() >= *at_call);
        planned.map(|(_, what)| what).or(self.before)
    }

    /// Nothing goes wrong any more.
    pub(crate) fn calm(&mut self) {
        self.before = self.happened();
        self.plan = None;
        self.model.plan(None);
    }

    /// No more room than so many bytes beyond what is used; all the room there is if none.
    pub(crate) fn limit(&mut self, beyond: Option<u64>) {
        use tenure_wal::disk::Disk;
        const PLENTY: u64 = 1 << 40;
        self.model.limit_room(Some(PLENTY));
        let free = self.model.free_bytes().unwrap_or(PLENTY);
        self.room = beyond.map(|beyond| PLENTY - free + beyond);
        self.model.limit_room(self.room);
    }

    /// Bytes of all files together.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.model.used_bytes()
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.room.is_some()
    }

    /// The process is gone; what it wrote is still seen.
    pub(crate) fn kill(&mut self) {
        self.replace(self.model.killed());
    }

    /// The power is gone; what was not durable may be, or not.
    pub(crate) fn lose_power(&mut self, random: &mut Random) {
        let keeps_permille = random.pick(&[0, 100, 500, 900, 1_000]);
        let crashed = self.model.crashed(&mut Luck { random, keeps_permille });
        self.replace(crashed);
    }

    fn replace(&mut self, model: ModelDisk) {
        self.model = model;
        self.calm();
        self.before = None;
        self.model.limit_room(self.room);
    }
}

struct Luck<'r> {
    random: &'r mut Random,
    keeps_permille: u64,
}

impl Survival for Luck<'_> {
    fn keeps(&mut self, _file: usize, _sector: usize) -> bool {
        self.random.chance(self.keeps_permille)
    }

    fn names(&mut self, pending: usize) -> usize {
        self.random.between(0, pending as u64) as usize
    }
}

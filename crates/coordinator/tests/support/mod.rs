//! A coordinator on a modelled disk with a clock that is set by hand. Nothing sleeps.
#![allow(clippy::unwrap_used)]
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod asks;
pub(crate) mod log;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tenure_coordinator::request::Lease;
use tenure_coordinator::{
    Coordinator, Inbox, Memory, Next, Reading, Recovery, Refusal, Request, Respond, Responder,
    Upkeep, recover,
};
use tenure_log::Fault;
use tenure_record::id::Lsn;
use tenure_wal::disk::model::ModelDisk;
use tenure_wal::{Claim, Options, Spares};

use self::log::{Gate, SteppedLog};

/// A caller, and what it was told.
#[derive(Debug)]
pub(crate) struct Probe<R: Request>(Arc<Heard<R>>);

#[derive(Debug)]
struct Heard<R: Request> {
    outcome: Mutex<Option<Result<R::Response, Refusal>>>,
    gone: AtomicBool,
}

impl<R: Request> Respond<R> for Heard<R> {
    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    fn respond(
        &self,
        outcome: Result<R::Response, Refusal>,
    ) -> Result<(), Result<R::Response, Refusal>> {
        if self.is_gone() {
            return Err(outcome);
        }
        let before = self.outcome.lock().unwrap().replace(outcome);
        assert!(before.is_none(), "a caller is told once");
        Ok(())
    }
}

impl<R: Request> Probe<R> {
    /// Sends a request.
    pub(crate) fn ask(inbox: &Inbox, request: R) -> Self {
        let heard = Heard { outcome: Mutex::new(None), gone: AtomicBool::new(false) };
        let probe = Self(Arc::new(heard));
        inbox.push(request.seal(Responder::new(Arc::clone(&probe.0) as Arc<dyn Respond<R>>)));
        probe
    }

    /// Goes away without a word.
    pub(crate) fn leave(&self) {
        self.0.gone.store(true, Ordering::Relaxed);
    }

    pub(crate) fn heard(&self) -> Option<Result<R::Response, Refusal>> {
        self.0.outcome.lock().unwrap().clone()
    }

    pub(crate) fn waits(&self) -> bool {
        self.heard().is_none()
    }

    #[track_caller]
    pub(crate) fn answer(&self) -> R::Response {
        self.heard().expect("it was told").expect("it was not refused")
    }

    #[track_caller]
    pub(crate) fn refusal(&self) -> Refusal {
        self.heard().expect("it was told").expect_err("it was refused")
    }
}

impl Probe<Lease> {
    #[track_caller]
    pub(crate) fn grants(&self) -> Vec<tenure_coordinator::Grant> {
        self.answer()
    }
}

/// A coordinator and all around it.
pub(crate) struct House {
    pub(crate) disk: ModelDisk,
    pub(crate) coordinator: Coordinator<SteppedLog>,
    pub(crate) inbox: Inbox,
    /// Holds the log's syncs back.
    pub(crate) gate: Gate,
    /// Milliseconds since the house was built; the wall clock shows this much and `ahead_ms` more.
    pub(crate) now_ms: u64,
    pub(crate) wall_ms: u64,
}

pub(crate) const START_MS: u64 = 1_700_000_000_000;

pub(crate) fn options() -> Options {
    Options {
        // The model's calls must come in the same order every time.
        spares: Spares::Caller,
        segment_bytes: 1 << 20,
        ..Options::new(7)
    }
}

/// A few frames fit.
pub(crate) const SMALL_SEGMENT_BYTES: u64 = 40 << 10;

impl House {
    pub(crate) fn new() -> Self {
        Self::on(ModelDisk::default(), START_MS)
    }

    pub(crate) fn on(disk: ModelDisk, wall_ms: u64) -> Self {
        Self::with(disk, wall_ms, options())
    }

    /// A house with a memory budget.
    pub(crate) fn within(memory: Memory) -> Self {
        Self::build(ModelDisk::default(), START_MS, options(), memory)
    }

    pub(crate) fn with(disk: ModelDisk, wall_ms: u64, options: Options) -> Self {
        Self::build(disk, wall_ms, options, Memory::default())
    }

    fn build(disk: ModelDisk, wall_ms: u64, options: Options, memory: Memory) -> Self {
        let gate = Gate::default();
        let recovery: Recovery<SteppedLog> =
            recover(Claim::new(&disk, options).unwrap(), 1, |_| {})
                .unwrap()
                .map_log(|wal| Ok::<_, Fault>(SteppedLog::new(wal, gate.clone())))
                .unwrap();
        let inbox = Inbox::new(memory);
        let reading = Reading { monotonic_ms: 0, wall_ms };
        let coordinator = Coordinator::new(recovery, inbox.clone(), reading, 5);
        Self { disk, coordinator, inbox, gate, now_ms: 0, wall_ms }
    }

    /// A house that looks after its log as told, with small segments.
    pub(crate) fn kept(disk: ModelDisk, wall_ms: u64, upkeep: Upkeep) -> Self {
        let options = Options { segment_bytes: SMALL_SEGMENT_BYTES, ..options() };
        let mut house = Self::with(disk, wall_ms, options);
        house.coordinator = house.coordinator.with_upkeep(upkeep);
        house
    }

    /// The machine loses power now and comes up again with a clock that shows `wall_ms`.
    pub(crate) fn restart(self, wall_ms: u64) -> Self {
        let disk = self.disk.killed();
        Self::on(disk, wall_ms)
    }

    pub(crate) fn reading(&self) -> Reading {
        Reading { monotonic_ms: self.now_ms, wall_ms: self.wall_ms + self.now_ms }
    }

    pub(crate) fn ask<R: Request>(&self, request: R) -> Probe<R> {
        Probe::ask(&self.inbox, request)
    }

    /// One step.
    pub(crate) fn step(&mut self) -> Next {
        self.coordinator.step(self.reading()).unwrap()
    }

    /// Steps until nothing is left to do at this moment.
    pub(crate) fn settle(&mut self) -> Next {
        for _ in 0..10_000 {
            let next = self.step();
            let is_stuck = self.gate.is_shut() && next != Next::Now;
            if is_stuck || (next != Next::Now && self.coordinator.is_settled()) {
                return next;
            }
        }
        unreachable!("a coordinator comes to rest");
    }

    /// Asks and lets everything happen that follows.
    pub(crate) fn tell<R: Request>(&mut self, request: R) -> Probe<R> {
        let probe = self.ask(request);
        self.settle();
        probe
    }

    /// Lets time pass, and everything happen that follows.
    pub(crate) fn pass_ms(&mut self, ms: u64) -> Next {
        self.now_ms += ms;
        self.settle()
    }

    pub(crate) fn last_lsn(&self) -> Lsn {
        self.coordinator.state().last_lsn()
    }
}

//! Restarts of the coordinator: each process starts from what the disk has, and ends in order or not.

use tenure_coordinator::Refusal;
use tenure_log::Note;
use tenure_wal::snapshot;

use crate::actors::FollowerActor;
use crate::check::{LawResult, hold};
use crate::coverage::count_outcome;
use crate::injector::Death;
use crate::process::{Life, Started};
use crate::request::AnyResponse;
use crate::world::{CAUSE, World};

pub(crate) const RECOVERS: &str = "a log can always be recovered";

impl World {
    /// Starts the coordinator from what the disk has.
    pub(crate) fn restart(&mut self) -> LawResult {
        if self.life.is_some() {
            return Ok(());
        }
        // A start that got so far has set it aside, and failed after that.
        if let Ok(there) = snapshot::list(&self.machine.disk.model) {
            self.machine.rotten.take_if(|lsn| !there.contains(lsn));
        }
        self.plan_for_recovery();
        match self.machine.start(&self.config, &mut self.random) {
            Ok(started) => self.started(started),
            Err(failure) => {
                let cause =
                    self.machine.disk.happened().is_some() || self.machine.disk.is_limited();
                hold(RECOVERS, cause, || failure.to_string())?;
                self.coverage.add("fault", "recovery fails");
                self.trace.note(self.now, format_args!("it does not start: {failure}"));
                self.die(Death::Again);
                Ok(())
            }
        }
    }

    fn started(&mut self, started: Started) -> LawResult {
        let Started { life, after, records, notes } = started;
        let told = self.machine.tape.borrow().len();
        self.trace.note(
            self.now,
            format_args!("start {}: {} records after {after}", life.start, records.len()),
        );
        let after = after as usize;
        self.laws.recovered(&self.machine.tape.borrow(), after, &records)?;
        let untold = after + records.len() - told;
        if untold > 0 {
            let bytes = records.iter().rev().take(untold).map(Vec::len).sum();
            self.machine.last_frames.borrow_mut().wrote(untold, bytes);
        }
        self.coverage.add_many("log", "start from a snapshot", u64::from(after > 0));
        self.coverage.add_many("fault", "records that nobody was told of", untold as u64);
        self.machine.tape.borrow_mut().extend(records.into_iter().skip(told - after));
        self.read_tape()?;
        self.laws.state_after_recovery(life.coordinator.state().facts())?;
        let rotten = self.machine.rotten.take();
        // A snapshot that could not be read for once is as good as a rotten one.
        if self.machine.disk.happened().is_none() {
            self.laws.fell_back(rotten, &notes)?;
        }
        for note in notes {
            self.coverage.add(
                "fault",
                match note {
                    Note::Torn { .. } => "torn end",
                    Note::Scar { .. } => "scar",
                    Note::OneHeader { .. } => "one header",
                    Note::BadSnapshot { .. } => "bad snapshot",
                },
            );
        }
        self.life = Some(life);
        Ok(())
    }

    /// The coordinator of this start is gone, with all who waited and all who followed.
    pub(crate) fn bury(&mut self) -> Option<Life> {
        let life = self.life.take();
        self.followers.iter_mut().for_each(FollowerActor::cut);
        if let Some(life) = &life {
            let uses = life.coordinator.log().uses;
            self.coverage.add_many("log", "committed here", uses.here);
            self.coverage.add_many("log", "committed beside", uses.beside);
            self.coverage.add_many("log", "frame held", uses.full);
            self.coverage.add_many("log", "mark", uses.marks);
            self.coverage.add_many("log", "snapshot", uses.snapshots);
            self.coverage.add_many("log", "snapshot given up", uses.snapshots_failed);
            self.coverage.add_many("log", "segment trimmed", uses.trimmed);
            self.laws.model.waiting.retain(|_, delivery| delivery.start != life.start);
        }
        life
    }

    /// Those who were told something by a coordinator that has ended.
    pub(crate) fn hear_the_last(&mut self, life: &Life) -> LawResult {
        for (caller, outcome) in self.callers.take_news().told {
            // Only that it is over: nothing else may be told so late.
            let is_over = matches!(&outcome, Err(Refusal::Unavailable(_)));
            let is_none = matches!(&outcome, Ok(AnyResponse::Lease(grants)) if grants.is_empty());
            hold(CAUSE, is_over || (life.is_stopping && is_none), || {
                format!("{caller} is told {outcome:?} at the end")
            })?;
            count_outcome(&mut self.coverage, &outcome);
        }
        Ok(())
    }

    /// An orderly end.
    pub(crate) fn close(&mut self) -> LawResult {
        let Some(life) = self.bury() else { return Ok(()) };
        let reading = life.reading(self.now);
        let Life { coordinator, .. } = life;
        let closed = coordinator.close(reading);
        self.callers.take_news();
        self.coverage.add("fault", "stopped in order");
        self.trace.note(self.now, format_args!("it has stopped: {}", closed.is_ok()));
        let cause = self.machine.disk.happened();
        if let Err(fault) = closed {
            hold(CAUSE, cause.is_some(), || format!("at the end: {fault}"))?;
        }
        self.die(Death::Closed);
        Ok(())
    }
}

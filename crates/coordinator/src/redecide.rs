//! Deciding an old record again: the state just before it is rebuilt from the log, beside the one
//! that serves and without a word to it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tenure_code::Code;
use tenure_core::redecide::{self as rules, Undecidable};
use tenure_core::shelf::Shelf;
use tenure_core::state::snapshot::Decoder;
use tenure_core::{State, apply};
use tenure_flow::Definition;
use tenure_log::{Fault, Read, ReadLog};
use tenure_record::codec;
use tenure_record::event::{Event, Record, RunBegun, Step as DecisionStep};
use tenure_record::id::{Lsn, RunId};

pub use tenure_core::redecide::Redecided;

use crate::engine::Engine;
use crate::limits::REDECIDE_RECORDS_MAX;
use crate::recover::Failure;
use crate::run_history::with_names;

/// Why a record was not decided again.
#[derive(Debug)]
pub enum RedecideError {
    /// The log cannot be read.
    Failed(Failure),
    /// What the state before the record is made of is no longer there.
    Trimmed {
        /// The oldest record whose state before it can be rebuilt.
        oldest: Lsn,
    },
    /// There is no such record.
    NoRecord {
        /// The record that was asked for.
        lsn: Lsn,
        /// The last that there is.
        last: Lsn,
    },
    /// It decides nothing about the run.
    Undecidable {
        /// The record.
        lsn: Lsn,
        /// The run.
        run: RunId,
        /// Why.
        why: Undecidable,
    },
    /// Too many records lead to it.
    TooFar {
        /// How many.
        records: u64,
    },
    /// Today's rules would break a law.
    Unlawful {
        /// The record.
        lsn: Lsn,
    },
}

impl RedecideError {
    /// The stable error code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            RedecideError::Failed(_) => Code::Unavailable,
            RedecideError::Trimmed { .. } => Code::LogTrimmed,
            RedecideError::NoRecord { .. } => Code::NotFound,
            RedecideError::Undecidable { why: Undecidable::OtherRun, .. } => Code::NotFound,
            RedecideError::Undecidable { .. } | RedecideError::TooFar { .. } => {
                Code::InvalidRequest
            }
            RedecideError::Unlawful { .. } => Code::Conflict,
        }
    }
}

impl fmt::Display for RedecideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedecideError::Failed(failure) => failure.fmt(f),
            RedecideError::Trimmed { oldest } => write!(
                f,
                "the log was trimmed, and what was before LSN {oldest} cannot be rebuilt; ask for \
                 that record or a later one"
            ),
            RedecideError::NoRecord { lsn, last } => {
                write!(f, "there is no record with LSN {lsn}; the last one is {last}")
            }
            RedecideError::Undecidable { lsn, run, why } => write!(
                f,
                "the record with LSN {lsn} cannot be decided again for run {run}: {why}; take an LSN \
                 of the run's history"
            ),
            RedecideError::TooFar { records } => write!(
                f,
                "{records} records lead to it; at most {REDECIDE_RECORDS_MAX} are applied again; \
                 take a later record"
            ),
            RedecideError::Unlawful { lsn } => write!(
                f,
                "today's rules would break a law when they decide the record with LSN {lsn}; they \
                 would write nothing and stop; please report it"
            ),
        }
    }
}

impl std::error::Error for RedecideError {}

impl<F: Into<Failure>> From<F> for RedecideError {
    fn from(failure: F) -> Self {
        RedecideError::Failed(failure.into())
    }
}

impl Engine {
    /// What today's rules would decide about a run in a record, beside what was decided. Reads the
    /// log and rebuilds a whole state, so it takes a while, and as much memory and shelf again; let
    /// there be one at a time.
    pub fn redecide(&self, run: RunId, lsn: Lsn) -> Result<Redecided, RedecideError> {
        let last = self.last_lsn();
        if lsn > last || lsn == Lsn::NONE {
            return Err(RedecideError::NoRecord { lsn, last });
        }
        redecide(self.reader(), self.shelf(), run, lsn)
    }
}

/// Decides a durable record again, with a reader of its log. What is large in the state that is
/// rebuilt lies on the shelf, if there is one.
pub fn redecide<R: ReadLog>(
    mut log: R,
    shelf: Option<Arc<dyn Shelf>>,
    run: RunId,
    lsn: Lsn,
) -> Result<Redecided, RedecideError> {
    let undecidable = |why| RedecideError::Undecidable { lsn, run, why };
    let bytes = read(&mut log, lsn)?;
    let record = decoded(&bytes, lsn)?;
    rules::check(&record, run).map_err(undecidable)?;
    let before = rebuild(&mut log, shelf, lsn)?;
    let definition = definition(&before, &record, run);
    // A law that would be broken is a finding here, and not the end of a server.
    let decided = catch_unwind(AssertUnwindSafe(|| rules::redecide(before, &record, run)));
    match decided {
        Ok(decided) => Ok(named(decided.map_err(undecidable)?, definition.as_deref())),
        Err(_) => Err(RedecideError::Unlawful { lsn }),
    }
}

/// The definition of a run that is there, or that begins with the record.
fn definition(before: &State, record: &Record<'_>, run: RunId) -> Option<Arc<Definition>> {
    if let Some(run) = before.run(run) {
        return Some(Arc::clone(run.definition()));
    }
    let of = |begun: &RunBegun<'_>| {
        let workflow = before.workflow(begun.workflow.as_str(), Some(begun.version));
        workflow.map(|workflow| Arc::clone(workflow.definition()))
    };
    let mut found = None;
    if let Event::RunStarted(event) = &record.event {
        found = Some(&event.run).filter(|begun| begun.run_id == run).and_then(of);
    }
    record.event.each_cascade(|cascade| {
        for decision in cascade {
            if let DecisionStep::StartChild(child) = &decision.step
                && child.run.run_id == run
            {
                found = of(&child.run);
            }
        }
    });
    found
}

/// Adds the names of nodes and transitions, as a run's history has them.
fn named(mut decided: Redecided, definition: Option<&Definition>) -> Redecided {
    let Some(definition) = definition else { return decided };
    for pair in &mut decided.pairs {
        for decision in [&mut pair.recorded, &mut pair.decided] {
            *decision = decision.take().map(|decision| with_names(decision, definition));
        }
    }
    decided
}

fn decoded(bytes: &[u8], lsn: Lsn) -> Result<Record<'_>, Failure> {
    codec::decode(bytes).map_err(|malformed| Failure::Record { lsn, malformed })
}

/// One record.
fn read<R: ReadLog>(log: &mut R, lsn: Lsn) -> Result<Vec<u8>, RedecideError> {
    log.seek(tenure_log::Lsn(lsn.0));
    let oldest = match log.read()? {
        Read::Frame(frame) => {
            let found = frame.records().find(|(at, _)| at.0 == lsn.0);
            let last = frame.records().last().map_or(lsn, |(at, _)| Lsn(at.0));
            return match found {
                Some((_, bytes)) => Ok(bytes.to_vec()),
                None => Err(RedecideError::NoRecord { lsn, last }),
            };
        }
        Read::UpToDate => return Err(RedecideError::NoRecord { lsn, last: Lsn(lsn.0 - 1) }),
        Read::Trimmed(oldest) => Lsn(oldest.0),
    };
    Err(RedecideError::Trimmed { oldest: oldest_rebuilt(log, oldest)? })
}

/// The state just before a record.
fn rebuild<R: ReadLog>(
    log: &mut R,
    shelf: Option<Arc<dyn Shelf>>,
    lsn: Lsn,
) -> Result<State, RedecideError> {
    let mut state = base(log, shelf, lsn)?;
    let first = state.last_lsn().next();
    let records = lsn.0 - first.0;
    if records > REDECIDE_RECORDS_MAX {
        return Err(RedecideError::TooFar { records });
    }
    log.seek(tenure_log::Lsn(first.0));
    while state.last_lsn().next() < lsn {
        let trimmed = match log.read()? {
            Read::Frame(frame) => {
                for (at, bytes) in frame.records() {
                    if Lsn(at.0) == state.last_lsn().next() && at.0 < lsn.0 {
                        apply(&mut state, &decoded(bytes, Lsn(at.0))?);
                    }
                }
                continue;
            }
            Read::UpToDate => return Err(RedecideError::NoRecord { lsn, last: state.last_lsn() }),
            Read::Trimmed(oldest) => Lsn(oldest.0),
        };
        return Err(RedecideError::Trimmed { oldest: oldest_rebuilt(log, trimmed)? });
    }
    Ok(state)
}

/// The newest good snapshot before a record, or nothing at all if the log begins with its first.
fn base<R: ReadLog>(
    log: &R,
    shelf: Option<Arc<dyn Shelf>>,
    lsn: Lsn,
) -> Result<State, RedecideError> {
    for at in log.snapshots()?.into_iter().filter(|at| at.0 < lsn.0) {
        let mut decoder = Decoder::new(0).on_shelf(shelf.clone());
        let mut fed = Ok(());
        let read = log.load_snapshot(at, &mut |piece| {
            if fed.is_ok() {
                fed = decoder.feed(piece);
            }
        });
        match read {
            Ok(_) => {
                let state = fed.and_then(|()| decoder.finish());
                let lsn = Lsn(at.0);
                return Ok(state.map_err(|malformed| Failure::Snapshot { lsn, malformed })?);
            }
            // It has rotted, or was forgotten meanwhile: there may be an older one.
            Err(Fault::Corrupt(_) | Fault::Io { .. }) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(State::replaying(0).on_shelf(shelf))
}

/// The oldest record that can be decided again, in a log that begins with that record.
fn oldest_rebuilt<R: ReadLog>(log: &R, oldest: Lsn) -> Result<Lsn, RedecideError> {
    let snapshots = log.snapshots()?;
    let usable = snapshots.iter().rev().find(|at| at.0 + 1 >= oldest.0);
    Ok(usable.map_or(oldest, |at| Lsn(at.0 + 1)))
}

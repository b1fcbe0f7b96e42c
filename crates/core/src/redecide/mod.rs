//! What today's rules would decide about a run, given what a record says was asked then: the
//! command is read back from the record and decided again on the state just before it. Pure, like
//! the rules themselves; the caller rebuilds the state from the log.
//!
//! A record says what both clocks showed when it was decided, so what follows the wall clock (`run_at`,
//! `until`) is decided again exactly.

mod asked;

use std::fmt;

use tenure_record::event::{Decision, Event, Record};
use tenure_record::history::{cascades, run_record, shown};
use tenure_record::id::{Lsn, RunId};
use tenure_record::name::Invalid;
use tenure_record::time::Timestamp;
use tenure_value::Value;

use crate::decide::{Verdict, decide};
use crate::rejection::Rejection;
use crate::state::{Draft, State};

/// What was decided then, beside what would be decided now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redecided {
    /// The record.
    pub lsn: Lsn,
    /// Its time by the wall clock.
    pub at: Timestamp,
    /// What happened.
    pub cause: Value,
    /// The decisions about the run, in order, side by side.
    pub pairs: Vec<Pair>,
    /// Why nothing at all would be decided now.
    pub refused: Option<Rejection>,
}

/// A decision as it was recorded, and as it would be now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// In the record; none if it would be new.
    pub recorded: Option<Value>,
    /// By today's rules; none if it would not be taken.
    pub decided: Option<Value>,
    /// Whether they are equal, in all that they say.
    pub is_same: bool,
}

impl Redecided {
    /// Whether today's rules decide the same.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.refused.is_none() && self.pairs.iter().all(|pair| pair.is_same)
    }
}

/// Why there is nothing to decide again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecidable {
    /// Nothing is decided about runs in such a record.
    NoDecision {
        /// What happened in it.
        event: &'static str,
    },
    /// It is about other runs.
    OtherRun,
    /// What was asked then is not a request that can be made today.
    Unasked(Invalid),
}

impl fmt::Display for Undecidable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undecidable::NoDecision { event } => {
                write!(f, "it is a {event}, in which nothing is decided about a run")
            }
            Undecidable::OtherRun => f.write_str("it is not part of the run's history"),
            Undecidable::Unasked(invalid) => {
                write!(f, "what was asked then cannot be asked today: {invalid}")
            }
        }
    }
}

impl std::error::Error for Undecidable {}

/// Says whether a record decides something about a run, before its state is rebuilt for it.
///
/// # Errors
/// If it does not.
pub fn check(record: &Record<'_>, run: RunId) -> Result<(), Undecidable> {
    if cascades(&record.event).iter().all(|(_, cascade)| cascade.is_empty())
        && !matches!(record.event, Event::SignalReceived(_))
    {
        return Err(Undecidable::NoDecision { event: record.event.name() });
    }
    match run_record(record, run) {
        Some(_) => Ok(()),
        None => Err(Undecidable::OtherRun),
    }
}

/// Decides a record again, on the state that the records before it give.
///
/// # Errors
/// If the record decides nothing about the run.
///
/// # Panics
/// If the state is not the one just before the record, or if today's rules would break a law of it.
pub fn redecide(
    mut before: State,
    record: &Record<'_>,
    run: RunId,
) -> Result<Redecided, Undecidable> {
    check(record, run)?;
    assert_eq!(before.last_lsn().next(), record.lsn, "the state is the one before the record");
    let cause = run_record(record, run).ok_or(Undecidable::OtherRun)?.cause;
    let command = asked::command(record).map_err(Undecidable::Unasked)?;
    let now = record.now();
    before.serve(now);
    let mut draft = Draft::new(&before);
    // Chance only spreads retries of tasks, which no decision about a run depends on.
    let verdict = decide(&mut draft, &command, now, 0);
    let (pairs, refused) = match verdict {
        Ok(Verdict::Append(event, _)) => (compare(&record.event, &event, run), None),
        Ok(Verdict::Answer(_)) => (only_recorded(&record.event, run), None),
        Err(rejection) => (only_recorded(&record.event, run), Some(rejection)),
    };
    Ok(Redecided { lsn: record.lsn, at: record.wall, cause, pairs, refused })
}

/// The decisions about a run in an event, in order.
fn about<'r, 'a>(event: &'r Event<'a>, run: RunId) -> Vec<&'r Decision<'a>> {
    let cascades = cascades(event).into_iter().flat_map(|(_, cascade)| cascade);
    cascades.filter(|decision| decision.run_id == run).collect()
}

fn only_recorded(event: &Event<'_>, run: RunId) -> Vec<Pair> {
    let recorded = about(event, run).into_iter();
    recorded.map(|decision| pair(Some(decision), None)).collect()
}

/// Puts equal decisions side by side from both ends; what is between them differs.
fn compare(recorded: &Event<'_>, decided: &Event<'_>, run: RunId) -> Vec<Pair> {
    let (then, now) = (about(recorded, run), about(decided, run));
    let ahead = then.iter().zip(&now).take_while(|(then, now)| then == now).count();
    let rest = then.len().min(now.len()) - ahead;
    let behind = then.iter().rev().zip(now.iter().rev()).take(rest);
    let behind = behind.take_while(|(then, now)| then == now).count();
    let ends = (then.len() - behind, now.len() - behind);
    let same = |at: usize| pair(then.get(at).copied(), then.get(at).copied());
    let mut pairs: Vec<Pair> = (0..ahead).map(same).collect();
    let (mut between_then, mut between_now) = (ahead..ends.0, ahead..ends.1);
    while let (Some(one), Some(other)) = (between_then.clone().next(), between_now.clone().next()) {
        let (one, other) = (then[one], now[other]);
        // Those of one kind are variants of each other.
        if one.step.name() == other.step.name() {
            pairs.push(pair(Some(one), Some(other)));
            between_now.next();
        } else {
            pairs.push(pair(Some(one), None));
        }
        between_then.next();
    }
    pairs.extend(between_then.map(|at| pair(Some(then[at]), None)));
    pairs.extend(between_now.map(|at| pair(None, Some(now[at]))));
    pairs.extend((ends.0..then.len()).map(same));
    pairs
}

fn pair(recorded: Option<&Decision<'_>>, decided: Option<&Decision<'_>>) -> Pair {
    let is_same = recorded == decided;
    let (then, now) = (recorded.map(shown), decided.map(shown));
    // What is told of a decision is not all of it. Where that hides the difference, all is told.
    if !is_same && then == now {
        let whole = |decision: &Decision<'_>| Value::text(&format!("{:?}", decision.step));
        return Pair { recorded: recorded.map(whole), decided: decided.map(whole), is_same };
    }
    Pair { recorded: then, decided: now, is_same }
}

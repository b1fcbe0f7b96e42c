//! A run's history, from the log: each record about it names the one before.

use std::sync::Arc;

use tenure_core::codec;
use tenure_core::history::{RunRecord, run_record};
use tenure_core::id::{Lsn, RunId};
use tenure_core::time::Timestamp;
use tenure_flow::{Definition, Value};
use tenure_wal::{Read, ReadLog};

use crate::limits::{HISTORY_BYTES, HISTORY_ITEMS_MAX};
use crate::recover::Failure;

/// What one record did to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStep {
    /// The record.
    pub lsn: Lsn,
    /// Log time.
    pub at: Timestamp,
    /// What happened, and whom it came from.
    pub cause: Value,
    /// What was decided about the run, in that order.
    pub decisions: Vec<Value>,
}

impl RunStep {
    /// What it adds to an answer, about.
    fn bytes(&self) -> usize {
        self.cause.bytes() + self.decisions.iter().map(Value::bytes).sum::<usize>()
    }
}

/// What is known of a run's past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunHistory {
    /// Oldest first.
    pub steps: Vec<RunStep>,
    /// What was before this record is not here: it was trimmed, or there is too much of it.
    pub truncated_before: Option<Lsn>,
}

/// Reads the history that ends with the record `last`, which must be durable. Nodes and transitions
/// get their names from the run's definition.
pub fn run_history<R: ReadLog>(
    log: &mut R,
    run_id: RunId,
    last: Lsn,
    definition: &Definition,
) -> Result<RunHistory, Failure> {
    let mut history = RunHistory::default();
    let (mut next, mut bytes) = (last, 0);
    while next > Lsn::NONE {
        let Some(Found { at, record }) = read_step(log, run_id, next)? else {
            history.truncated_before = Some(Lsn(next.0 + 1));
            break;
        };
        let RunRecord { cause, decisions, previous } = record;
        let decisions = decisions.into_iter().map(|it| with_names(it, definition)).collect();
        let step = RunStep { lsn: next, at, cause, decisions };
        bytes += step.bytes();
        history.steps.push(step);
        // A chain that does not go back is not ours to follow.
        let before = Some(previous).filter(|previous| *previous < next).unwrap_or(Lsn::NONE);
        let is_full = history.steps.len() >= HISTORY_ITEMS_MAX || bytes >= HISTORY_BYTES;
        if before > Lsn::NONE && is_full {
            history.truncated_before = Some(next);
            break;
        }
        next = before;
    }
    history.steps.reverse();
    Ok(history)
}

struct Found {
    at: Timestamp,
    record: RunRecord,
}

/// Reads one record; nothing if it was trimmed.
fn read_step<R: ReadLog>(log: &mut R, run_id: RunId, lsn: Lsn) -> Result<Option<Found>, Failure> {
    log.seek(tenure_wal::Lsn(lsn.0));
    let Read::Frame(frame) = log.read()? else { return Ok(None) };
    let found = frame.records().find(|(at, _)| at.0 == lsn.0);
    let Some((_, bytes)) = found else { return Ok(None) };
    let record = codec::decode(bytes).map_err(|malformed| Failure::Record { lsn, malformed })?;
    Ok(run_record(&record, run_id).map(|found| Found { at: record.at, record: found }))
}

/// A decision with the names of nodes and transitions in the place of their numbers.
pub(crate) fn with_names(decision: Value, definition: &Definition) -> Value {
    let Value::Map(said) = &decision else { return decision };
    let entries = said.entries().iter().map(|(key, value)| {
        let named = match (&**key, value) {
            ("tokens" | "spawns", Value::List(items)) => {
                let items = items.as_slice().iter();
                Value::list(items.map(|item| named_item(item, definition)).collect())
            }
            _ => value.clone(),
        };
        (Arc::clone(key), named)
    });
    Value::map(entries.collect())
}

fn named_item(item: &Value, definition: &Definition) -> Value {
    let Value::Map(said) = item else { return item.clone() };
    let entries = said.entries().iter().map(|(key, value)| {
        let place = value.as_int().and_then(|place| usize::try_from(place).ok());
        let name = place.and_then(|place| match &**key {
            "node" => definition.nodes.get(place).map(|node| &node.name),
            "via" | "transition" => definition.transitions.get(place)?.name.as_ref(),
            _ => None,
        });
        (Arc::clone(key), name.map_or_else(|| value.clone(), |name| Value::text(name)))
    });
    Value::map(entries.collect())
}

//! A run's history, from the log: each record about it names the one before.

use std::sync::Arc;

use tenure_flow::Definition;
use tenure_log::{Read, ReadLog};
use tenure_record::codec;
use tenure_record::history::{RunRecord, cascades, run_record, shown};
use tenure_record::id::{Lsn, RunId};
use tenure_record::time::Timestamp;
use tenure_value::Value;

use crate::limits::{HISTORY_BYTES, HISTORY_ITEMS_MAX};
use crate::recover::Failure;

/// What one cause did to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStep {
    /// Its record.
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
pub(crate) fn run_history<R: ReadLog>(
    log: &mut R,
    run_id: RunId,
    last: Lsn,
    definition: &Definition,
) -> Result<RunHistory, Failure> {
    let mut history = RunHistory::default();
    let (mut next, mut bytes) = (last, 0);
    while next > Lsn::NONE {
        let Some(Found { steps, previous }) = read_steps(log, run_id, next, definition)? else {
            history.truncated_before = Some(Lsn(next.0 + 1));
            break;
        };
        bytes += steps.iter().map(RunStep::bytes).sum::<usize>();
        history.steps.extend(steps.into_iter().rev());
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
    steps: Vec<RunStep>,
    previous: Lsn,
}

/// Reads one record; nothing if it was trimmed. Several reports may have come in it, and each was a
/// cause of its own.
fn read_steps<R: ReadLog>(
    log: &mut R,
    run_id: RunId,
    lsn: Lsn,
    definition: &Definition,
) -> Result<Option<Found>, Failure> {
    log.seek(tenure_log::Lsn(lsn.0));
    let Read::Frame(frame) = log.read()? else { return Ok(None) };
    let found = frame.records().find(|(at, _)| at.0 == lsn.0);
    let Some((_, bytes)) = found else { return Ok(None) };
    let record = codec::decode(bytes).map_err(|malformed| Failure::Record { lsn, malformed })?;
    let Some(RunRecord { cause, previous, .. }) = run_record(&record, run_id) else {
        return Ok(None);
    };
    let step = |cause, decisions| RunStep { lsn, at: record.wall, cause, decisions };
    let ours = cascades(&record.event).into_iter().filter_map(|(cause, cascade)| {
        let ours = cascade.iter().filter(|decision| decision.run_id == run_id);
        let decisions: Vec<_> = ours.map(|it| with_names(shown(it), definition)).collect();
        (!decisions.is_empty()).then(|| step(cause, decisions))
    });
    let mut steps: Vec<_> = ours.collect();
    if steps.is_empty() {
        // A signal that is kept: nothing was decided.
        steps.push(step(cause, Vec::new()));
    }
    Ok(Some(Found { steps, previous }))
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

//! A client begins many runs of a workflow: all of them, or none. They are one record, so the batch
//! is bounded by what one record may cost: a run begins the same in a batch as alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_record::event::{Event, RunStarted, RunsStarted, SubmitHash};
use tenure_record::id::RunId;
use tenure_record::limits::RECORD_BYTES_MAX;
use tenure_record::time::Now;

use super::start_run::{Begun, begin};
use super::{Verdict, request_hash};
use crate::command::{Reply, StartRun, StartRuns, Started, SubmitOutcome};
use crate::limits::RUN_BATCH_ITEMS_MAX;
use crate::rejection::Rejection;
use crate::state::Draft;
use crate::workflow::Cascade;

pub(super) fn decide(
    draft: &mut Draft<'_>,
    command: &StartRuns,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    check_size(&command.runs)?;
    let mut started: Vec<Started> = Vec::with_capacity(command.runs.len());
    let mut runs: Vec<RunStarted<'static>> = Vec::with_capacity(command.runs.len());
    let mut keys = BTreeMap::new();
    for (index, start) in command.runs.iter().enumerate() {
        let in_batch = |rejection| Rejection::InBatch { index, rejection: Box::new(rejection) };
        if let Some(run_id) = known_in_batch(&keys, start).map_err(in_batch)? {
            started.push(Started { run_id, outcome: SubmitOutcome::Existed });
            continue;
        }
        let run = match begin(draft, start, now).map_err(in_batch)? {
            Begun::Existed(run_id) => {
                started.push(Started { run_id, outcome: SubmitOutcome::Existed });
                continue;
            }
            Begun::New(run) => run,
        };
        let run_id = run.run_id;
        if let Some((key, hash)) = start.key.as_ref().zip(run.start_hash) {
            keys.insert((&start.workflow, key.as_str()), FirstOfKey { index, run_id, hash });
        }
        let mut cascade = Cascade::new(draft, now);
        cascade.begin_run(run_id);
        let cascade = cascade.finish();
        // The bounds of a cascade are those of its record. A batch that stays below the bound at
        // which batches are cut leaves each of its cascades what it would have alone.
        if draft.is_full() && command.runs.len() > 1 {
            return Err(Rejection::BatchTooHeavy { fits: index.max(1) });
        }
        started.push(Started { run_id, outcome: SubmitOutcome::Created });
        runs.push(RunStarted { run, cascade });
    }
    let reply = Reply::StartedMany(started);
    match runs.is_empty() {
        true => Ok(Verdict::Answer(reply)),
        false => Ok(Verdict::Append(Event::RunsStarted(RunsStarted { runs }), reply)),
    }
}

/// The run of the batch that had a key first.
struct FirstOfKey {
    index: usize,
    run_id: RunId,
    hash: SubmitHash,
}

type KeysOfBatch<'c> = BTreeMap<(&'c Arc<str>, &'c str), FirstOfKey>;

/// The run that an earlier item of the batch began under the key of this one.
fn known_in_batch(keys: &KeysOfBatch<'_>, start: &StartRun) -> Result<Option<RunId>, Rejection> {
    let Some(key) = &start.key else { return Ok(None) };
    match keys.get(&(&start.workflow, key.as_str())) {
        Some(first) if first.hash == request_hash::of_start(start) => Ok(Some(first.run_id)),
        Some(first) => Err(Rejection::RunKeyTwice { key: key.clone(), first: first.index }),
        None => Ok(None),
    }
}

fn check_size(runs: &[StartRun]) -> Result<(), Rejection> {
    let items = runs.len();
    if items > RUN_BATCH_ITEMS_MAX {
        return Err(Rejection::BatchTooLarge { items, items_max: RUN_BATCH_ITEMS_MAX });
    }
    let bytes = runs.iter().map(|run| run.input.bytes()).sum();
    match bytes > RECORD_BYTES_MAX {
        true => Err(Rejection::RecordTooLarge { bytes }),
        false => Ok(()),
    }
}

//! A client wants a run to stop: all that is live in it ends, in one record or in those that follow.

use tenure_record::event::{Event, RunCancelRequested, RunState};
use tenure_record::id::RunId;
use tenure_record::time::Now;

use super::Verdict;
use crate::command::Reply;
use crate::rejection::Rejection;
use crate::state::{Draft, Runs};
use crate::workflow::Cascade;

pub(super) fn decide(
    draft: &mut Draft<'_>,
    run_id: RunId,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    let run = Runs::run(draft, run_id).ok_or(Rejection::RunNotFound { run_id })?;
    if let Some(root) = run.ending_root() {
        let state = root.state;
        return match state == RunState::Canceled {
            true => Ok(Verdict::Answer(Reply::Run(run_id, run.state))),
            false => Err(Rejection::RunEnding { run_id, state }),
        };
    }
    match run.state {
        RunState::Running => {}
        RunState::Canceled => {
            return Ok(Verdict::Answer(Reply::Run(run_id, RunState::Canceled)));
        }
        state @ (RunState::Completed | RunState::Failed | RunState::TimedOut) => {
            return Err(Rejection::RunOver { run_id, state });
        }
    }
    let mut cascade = Cascade::new(draft, now);
    cascade.cancel_run(run_id, RunState::Canceled, None);
    let event = RunCancelRequested { run_id, cascade: cascade.finish() };
    // RUNNING as long as it is ending.
    let state = Runs::run(draft, run_id).map_or(RunState::Canceled, |run| run.state);
    let reply = Reply::Run(run_id, state);
    Ok(Verdict::Append(Event::RunCancelRequested(event), reply))
}

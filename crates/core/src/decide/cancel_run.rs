//! A client wants a run to stop: all that is live in it ends in one record.

use super::Verdict;
use crate::command::Reply;
use crate::event::{Event, RunCancelRequested, RunState};
use crate::id::RunId;
use crate::rejection::Rejection;
use crate::state::{Draft, Runs};
use crate::time::Now;
use crate::workflow::Cascade;

pub(super) fn decide(
    draft: &mut Draft<'_>,
    run_id: RunId,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    let run = Runs::run(draft, run_id).ok_or(Rejection::RunNotFound { run_id })?;
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
    let reply = Reply::Run(run_id, RunState::Canceled);
    Ok(Verdict::Append(Event::RunCancelRequested(event), reply))
}

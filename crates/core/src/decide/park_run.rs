//! A run whose next step does not fit a record stands still, and an operator lets it go on.

use tenure_record::event::{Event, RunParked, RunState, RunUnparked};
use tenure_record::id::RunId;
use tenure_record::name::Text;
use tenure_record::time::Now;

use super::start_run::check_whole;
use super::{Verdict, stamp};
use crate::apply;
use crate::command::{ParkRun, Reply};
use crate::rejection::Rejection;
use crate::state::{Draft, Run, Runs};

pub(super) fn park<'c>(
    draft: &mut Draft<'_>,
    command: &'c ParkRun,
    now: Now,
) -> Result<Verdict<'c>, Rejection> {
    let run_id = command.run_id;
    let run = live(draft, run_id)?;
    let (is_parked, previous) = (run.parked.is_some(), run.last_lsn);
    let reply = Reply::Run(run_id, RunState::Running);
    if is_parked {
        return Ok(Verdict::Answer(reply));
    }
    let reason = Text::Borrowed(command.reason.as_str());
    let item = RunParked { run_id, reason, previous };
    apply::run::parked(draft, stamp(draft, now), &item);
    Ok(Verdict::Append(Event::RunParked(item), reply))
}

pub(super) fn unpark(
    draft: &mut Draft<'_>,
    run_id: RunId,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    let run = live(draft, run_id)?;
    let (is_parked, previous) = (run.parked.is_some(), run.last_lsn);
    let reply = Reply::Run(run_id, RunState::Running);
    check_whole(&run.workflow)?;
    if !is_parked {
        return Ok(Verdict::Answer(reply));
    }
    let item = RunUnparked { run_id, previous };
    apply::run::unparked(draft, stamp(draft, now), &item);
    Ok(Verdict::Append(Event::RunUnparked(item), reply))
}

fn live<'d>(draft: &'d Draft<'_>, run_id: RunId) -> Result<&'d Run, Rejection> {
    let run = Runs::run(draft, run_id).ok_or(Rejection::RunNotFound { run_id })?;
    match run.state.is_terminal() {
        true => Err(Rejection::RunOver { run_id, state: run.state }),
        false => Ok(run),
    }
}

//! Nobody who waits is forgotten: every request is answered, none past its time, and no parked
//! worker waits beside work that is ready.

use tenure_coordinator::Next;
use tenure_coordinator::request::{GetRun, GetTask, Lease};

use super::{Broken, LawResult, hold};
use crate::callers::CallerId;
use crate::model::{Delivery, Model};
use crate::process::Life;
use crate::request::AnyRequest;

const ONCE: &str = "a request is answered once";
const IN_TIME: &str = "nobody who waits is forgotten";
const WORK: &str = "nobody waits beside work that is ready";

/// How long a snapshot may take, and the one before it.
const SNAPSHOT_MS: u64 = 5_000;

/// How long an answer may take beside the wait that was asked for and the time of the disk.
const ANSWER_MS: u64 = 2_000;

pub(super) fn told(model: &mut Model, caller: CallerId) -> Result<Delivery, Broken> {
    model.waiting.remove(&caller).ok_or_else(|| Broken {
        law: ONCE,
        what: format!("caller {caller} is told again, or was never there"),
    })
}

pub(crate) fn wait_ms(request: &AnyRequest) -> u64 {
    if let AnyRequest::Lease(Lease { wait_ms, .. })
    | AnyRequest::GetTask(GetTask { wait_ms, .. })
    | AnyRequest::GetRun(GetRun { wait_ms, .. }) = request
    {
        return *wait_ms;
    }
    // A snapshot is written while others are served; how long that takes is up to the disk.
    if let AnyRequest::TakeSnapshot(_) = request { SNAPSHOT_MS } else { 0 }
}

pub(super) fn stepped(model: &Model, life: &Life, now: u64, next: Next) -> LawResult {
    if life.is_held() {
        return Ok(());
    }
    // What is due this very moment (a deadline that is over as soon as its task is there) is still to
    // be done.
    let is_busy = matches!(next, Next::Now | Next::WithinMs(0));
    let settled = !is_busy && life.coordinator.is_settled();
    for (caller, delivery) in &model.waiting {
        if delivery.start != life.start || delivery.gone_at.is_some() {
            continue;
        }
        // A request that came while a frame waited for room is begun when there is room again.
        let begun_at = delivery.at.max(life.held_at);
        let latest = begun_at + wait_ms(&delivery.ask) + ANSWER_MS + life.slow_ms;
        hold(IN_TIME, now <= latest, || {
            format!(
                "caller {caller} asked at {} and waits at {now}: {:?}",
                delivery.at, delivery.ask
            )
        })?;
        if settled && delivery.at < now {
            beside_work(life, caller, delivery)?;
        }
    }
    Ok(())
}

/// When all is settled, a caller that waits is parked, and with reason.
fn beside_work(life: &Life, caller: &CallerId, delivery: &Delivery) -> LawResult {
    let state = life.coordinator.state();
    if let AnyRequest::Lease(Lease { request, .. }) = &*delivery.ask {
        let ready = request.queues.iter().find(|queue| state.has_ready(queue.as_str()));
        return hold(WORK, ready.is_none(), || format!("caller {caller} waits beside {ready:?}"));
    }
    let has_reason = if let AnyRequest::GetTask(GetTask { task_id, .. }) = &*delivery.ask {
        state.task(*task_id).is_some_and(|task| !task.state().is_terminal())
    } else if let AnyRequest::GetRun(GetRun { run_id, .. }) = &*delivery.ask {
        state.run(*run_id).is_some_and(|run| run.finished_at().is_none())
    } else if let AnyRequest::TakeSnapshot(_) = &*delivery.ask {
        life.coordinator.log().snapshot_at().is_some()
    } else {
        false
    };
    hold(WORK, has_reason, || format!("caller {caller} waits for {:?}", delivery.ask))
}

pub(crate) fn dropped(model: &mut Model, caller: CallerId, is_gone: bool) -> LawResult {
    let known = model.waiting.remove(&caller).is_some();
    hold(IN_TIME, is_gone || !known, || format!("caller {caller} was dropped without a word"))
}

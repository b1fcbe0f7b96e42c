//! Log time never goes back, and no timer fires much after its moment.

use tenure_coordinator::Next;
use tenure_record::event::Record;
use tenure_record::time::Clock;

use super::{LawResult, hold};
use crate::ledger::TaskLedger;
use crate::process::Life;

const LAW: &str = "log time never goes back";
const IN_TIME: &str = "a timer that is due fires within a second";

/// How late a timer may fire.
const LATE_MS: u64 = 1_000;

pub(super) fn record(ledger: &TaskLedger, record: &Record<'_>) -> LawResult {
    hold(LAW, record.at >= ledger.last_at, || {
        format!("record {} is of {:?}, after one of {:?}", record.lsn, record.at, ledger.last_at)
    })
}

pub(super) fn stepped(life: &Life, now: u64, next: Next) -> LawResult {
    // What a run that was parked is late with is due at once when it goes on.
    if matches!(next, Next::Now | Next::WithinMs(0)) {
        return Ok(());
    }
    let log = life.now(now).log;
    let first = life.coordinator.state().timers(Clock::Log).next();
    let late = first.filter(|(at, _)| at.plus_ms(LATE_MS + life.slow_ms) < log);
    hold(IN_TIME, late.is_none() || life.is_held(), || {
        format!("{late:?} has not fired, and it is {log:?}")
    })
}

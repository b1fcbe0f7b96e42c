//! Queues and the work of a record are bounded, whatever comes.

use tenure_coordinator::limits::{
    INBOX_BYTES_MAX, INBOX_REQUESTS_MAX, PARKED_LEASES_MAX, PARKED_READERS_MAX,
    SNAPSHOT_CALLERS_MAX,
};

use tenure_core::limits::RECORD_WORK_MAX;

use super::{LawResult, hold};
use crate::model::Model;
use crate::process::Life;

const LAW: &str = "no more wait than the limits allow";
const WORK: &str = "no record costs more than its bound";

/// Somebody more has come.
pub(super) fn arrived(model: &Model, life: &Life) -> LawResult {
    let load = life.inbox.load();
    let is_so = load.requests <= INBOX_REQUESTS_MAX && load.bytes <= INBOX_BYTES_MAX;
    hold(LAW, is_so, || format!("the inbox has {load:?}"))?;
    let parked = PARKED_LEASES_MAX + PARKED_READERS_MAX + SNAPSHOT_CALLERS_MAX;
    // Those who are told already are heard of after the next step.
    let waiting = model.waiting.len();
    hold(LAW, waiting <= 2 * INBOX_REQUESTS_MAX + parked, || format!("{waiting} wait"))
}

/// Records were decided.
pub(super) fn stepped(life: &Life) -> LawResult {
    let work = life.coordinator.heaviest_record();
    hold(WORK, work <= RECORD_WORK_MAX, || format!("a record cost {work} units"))
}

//! What an event does. Nothing is judged here: what the event says is stored, live and on replay
//! alike. The functions on single items also draft a batch while it is being decided.

pub(crate) mod lease;
pub(crate) mod queue;
pub(crate) mod task;

use crate::event::{Event, Record, Report};
use crate::id::Lsn;
use crate::state::{Ledger, State};
use crate::time::Timestamp;

/// The record that a change belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Stamp {
    pub lsn: Lsn,
    pub at: Timestamp,
}

/// Applies one record. Records come in order, each exactly once.
///
/// # Panics
/// If the record is not the one after the last, or if it contradicts the state: both mean that
/// the log is not the one that made this state.
pub fn apply(state: &mut State, record: &Record<'_>) {
    assert_eq!(record.lsn, state.last_lsn().next(), "records are applied in order, once each");
    let stamp = Stamp { lsn: record.lsn, at: record.at };
    event(state, stamp, &record.event);
    state.applied(record.lsn, record.at);
}

fn event(to: &mut State, stamp: Stamp, event: &Event<'_>) {
    match event {
        Event::TaskCreated(event) => {
            event.tasks.iter().for_each(|item| task::created(to, stamp, item));
        }
        Event::LeaseGranted(event) => {
            let worker = to.worker_named(&event.worker);
            event.grants.iter().for_each(|item| lease::granted(to, stamp, worker, item));
        }
        Event::LeaseExtended(item) => lease::extended(to, item),
        Event::LeaseExpired(event) => {
            event.leases.iter().for_each(|item| lease::expired(to, stamp, item));
        }
        Event::LeaseReleased(item) => lease::released(to, stamp, item),
        Event::TaskCompleted(item) => task::completed(to, stamp, item),
        Event::TaskFailed(item) => task::failed(to, stamp, item),
        Event::TaskCancelled(item) => task::reported_late(to, stamp, item),
        Event::ReportsApplied(event) => {
            event.reports.iter().for_each(|item| report(to, stamp, item));
        }
        Event::CancelRequested(item) => task::cancel_requested(to, stamp, item),
        Event::TaskRetried(item) => task::retried(to, stamp, item),
        Event::TimerFired(event) => {
            event.deadlines.iter().for_each(|item| task::deadline_passed(to, stamp, item));
        }
        Event::QueueConfigured(event) => queue::configured(to, event),
        Event::TasksPurged(event) => event.tasks.iter().for_each(|id| to.purge(*id)),
        Event::IdsSkipped(item) => to.skip_ids(item),
    }
}

pub(crate) fn report(to: &mut impl Ledger, stamp: Stamp, report: &Report<'_>) {
    match report {
        Report::LeaseExtended(item) => lease::extended(to, item),
        Report::TaskCompleted(item) => task::completed(to, stamp, item),
        Report::TaskFailed(item) => task::failed(to, stamp, item),
        Report::LeaseReleased(item) => lease::released(to, stamp, item),
        Report::TaskCancelled(item) => task::reported_late(to, stamp, item),
    }
}

//! What an event does. Nothing is judged here: what the event says is stored, live and on replay
//! alike. The functions on single items also draft a batch while it is being decided.

mod dead_letter;
mod ending;
pub(crate) mod group;
pub(crate) mod lease;
pub(crate) mod precomputed;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod task;

use tenure_record::event::{Event, Record, Report, RunStarted, TimerFired};
use tenure_record::id::Lsn;
use tenure_record::time::{Now, Timestamp, WallOffset};

use self::precomputed::{Precomputed, Recall};
use self::run::Cause;
use crate::state::{Ledger, Runs, State};

/// The record that a change belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Stamp {
    pub lsn: Lsn,
    /// Log time, which spans and retention are counted on.
    pub at: Timestamp,
    /// The wall clock, for moments that are only shown.
    pub wall: Timestamp,
}

impl Stamp {
    pub(crate) fn new(lsn: Lsn, now: Now) -> Self {
        Self { lsn, at: now.log, wall: now.wall }
    }

    pub(crate) fn offset(self) -> WallOffset {
        WallOffset::between(self.at, self.wall)
    }
}

/// Applies one record. Records come in order, each exactly once.
///
/// # Panics
/// If the record is not the one after the last, or if it contradicts the state: both mean that
/// the log is not the one that made this state.
pub fn apply(state: &mut State, record: &Record<'_>) {
    apply_with(state, record, &mut Recall::none());
}

/// Applies a record that was just decided, with what its draft has precomputed. The state is the one
/// that the record alone gives.
///
/// # Panics
/// As [`apply`].
pub fn apply_decided(state: &mut State, record: &Record<'_>, precomputed: &Precomputed) {
    apply_with(state, record, &mut precomputed.recall((0, 0)));
}

fn apply_with(state: &mut State, record: &Record<'_>, recall: &mut Recall<'_>) {
    assert_eq!(record.lsn, state.last_lsn().next(), "records are applied in order, once each");
    let stamp = Stamp::new(record.lsn, record.now());
    event(state, stamp, &record.event, recall);
    state.applied(record.lsn, record.at);
}

fn event(to: &mut State, stamp: Stamp, event: &Event<'_>, recall: &mut Recall<'_>) {
    match event {
        Event::TaskCreated(event) => {
            event.tasks.iter().for_each(|item| task::created(to, stamp, item));
        }
        Event::LeaseGranted(event) => {
            let worker = to.worker_named(&event.worker);
            event.grants.iter().for_each(|item| lease::granted(to, stamp, worker, item));
        }
        Event::LeaseExpired(event) => {
            for item in &event.leases {
                lease::expired(to, stamp, item);
                run::cascade(to, stamp, &item.cascade, Cause::Nothing, recall);
            }
        }
        Event::ReportsApplied(event) => {
            event.reports.iter().for_each(|item| report(to, stamp, item, recall));
        }
        Event::CancelRequested(item) => {
            task::cancel_requested(to, stamp, item);
            run::cascade(to, stamp, &item.cascade, Cause::Nothing, recall);
        }
        Event::TaskRetried(item) => task::retried(to, stamp, item),
        Event::TimerFired(event) => timer_fired(to, stamp, event, recall),
        Event::QueueConfigured(event) => queue::configured(to, event),
        Event::QueueDeleted(event) => queue::deleted(to, event),
        Event::TasksPurged(event) => {
            event.tasks.iter().for_each(|id| to.purge(*id));
            event.runs.iter().for_each(|id| to.purge_run(*id));
        }
        Event::IdsSkipped(item) => to.skip_ids(item),
        Event::WorkflowRegistered(item) => run::registered(to, stamp, item, recall.definition),
        Event::WorkflowDeleted(item) => run::deleted(to, item),
        Event::RunStarted(event) => started(to, stamp, event, recall),
        Event::RunsStarted(event) => {
            event.runs.iter().for_each(|run| started(to, stamp, run, recall));
        }
        Event::RunStartedBySignal(event) => {
            run::begun(to, stamp, &event.start.run);
            run::signal_received(to, stamp, &event.signal, recall);
            run::cascade(to, stamp, &event.start.cascade, Cause::Nothing, recall);
        }
        Event::SignalReceived(item) => run::signal_received(to, stamp, item, recall),
        Event::RunCancelRequested(item) => {
            run::cascade(to, stamp, &item.cascade, Cause::Nothing, recall);
        }
        Event::DispatchContinued(event) => {
            run::cascade(to, stamp, &event.cascade, Cause::Nothing, recall);
        }
        Event::EndContinued(event) => {
            run::cascade(to, stamp, &event.cascade, Cause::Nothing, recall);
        }
        Event::RunParked(item) => run::parked(to, stamp, item),
        Event::RunUnparked(item) => run::unparked(to, stamp, item),
    }
}

fn started(to: &mut State, stamp: Stamp, event: &RunStarted<'_>, recall: &mut Recall<'_>) {
    run::begun(to, stamp, &event.run);
    run::cascade(to, stamp, &event.cascade, Cause::Nothing, recall);
}

fn report(to: &mut State, stamp: Stamp, report: &Report<'_>, recall: &mut Recall<'_>) {
    match report {
        Report::LeaseExtended(item) => lease::extended(to, item),
        Report::TaskCompleted(item) => {
            task::completed(to, stamp, item);
            run::cascade(to, stamp, &item.cascade, Cause::Output(item.output), recall);
        }
        Report::TaskFailed(item) => {
            task::failed(to, stamp, item);
            run::cascade(to, stamp, &item.cascade, Cause::Nothing, recall);
        }
        Report::LeaseReleased(item) => {
            lease::released(to, stamp, item);
            run::cascade(to, stamp, &item.cascade, Cause::Nothing, recall);
        }
        Report::StaleReportRejected(item) => task::reported_late(to, stamp, item),
    }
}

/// In the order in which moments that are due together count.
fn timer_fired(to: &mut State, stamp: Stamp, event: &TimerFired<'_>, recall: &mut Recall<'_>) {
    for item in &event.deadlines {
        task::deadline_passed(to, stamp, item);
        run::cascade(to, stamp, &item.cascade, Cause::Nothing, recall);
    }
    let runs = event.runs.iter().map(|item| &item.cascade);
    let joins = event.joins.iter().map(|item| &item.cascade);
    let tokens = event.nodes.iter().chain(&event.timers).map(|item| &item.cascade);
    for cascade in runs.chain(joins).chain(tokens) {
        run::cascade(to, stamp, cascade, Cause::Nothing, recall);
    }
}

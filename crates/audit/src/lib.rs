//! Proof from the log alone. An audit reads every record in order, keeps a small table of its own,
//! and names the first record that breaks a law.
//!
//! It is a second opinion: it neither decides nor applies anything, so that a mistake made there is
//! seen here. What it lets pass, `apply` can take without a panic. It needs about sixty bytes for
//! a task that exists, and one look at each item.

mod compare;
mod dead_letter;
mod law;
mod lease;
mod names;
mod run;
mod seed;
mod summary;
mod table;
mod task;
mod workflow;

pub use law::{Law, Violation};
pub use seed::Seed;
pub use summary::{Ends, Summary};

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_record::codec;
use tenure_record::event::{About, Event, IdsSkipped, Record, Report, TimerFired};
use tenure_record::id::{ID_MAX, LeaseId, Lsn, RunId, TaskId};
use tenure_record::time::Timestamp;

use self::law::{broken, hold};
use self::names::{NameRef, Names};
use self::run::Runs;
use self::table::{Row, Table};

/// An audit under way. It ends with the first violation: what follows that record is not judged.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The record being read; between records, the last one.
    lsn: Lsn,
    at: Timestamp,
    /// Its wall clock.
    wall: Timestamp,
    next_task: TaskId,
    next_lease: LeaseId,
    tasks: Table,
    queues: Names,
    workers: Names,
    /// A tree, because strangers choose the keys: no choice makes a tree slow.
    keys: BTreeMap<(NameRef, Arc<str>), TaskId>,
    runs: Runs,
    summary: Summary,
    encoded: Vec<u8>,
}

impl Default for Audit {
    fn default() -> Self {
        Self::new()
    }
}

impl Audit {
    /// An audit of a log from its first record on.
    #[must_use]
    pub fn new() -> Self {
        Self {
            lsn: Lsn::NONE,
            at: Timestamp::ZERO,
            wall: Timestamp::ZERO,
            next_task: TaskId(1),
            next_lease: LeaseId(1),
            tasks: Table::default(),
            queues: Names::default(),
            workers: Names::default(),
            keys: BTreeMap::new(),
            runs: Runs::default(),
            summary: Summary::default(),
            encoded: Vec::new(),
        }
    }

    /// Reads the next record, and holds it against the bytes that it was decoded from.
    pub fn read(&mut self, record: &Record<'_>, bytes: &[u8]) -> Result<(), Violation> {
        self.encoded.clear();
        codec::encode(record, &mut self.encoded);
        hold(Law::BytesAreTheRecord, self.encoded == bytes, || {
            format!("{} bytes were read and {} would be written", bytes.len(), self.encoded.len())
        })?;
        self.record(record)
    }

    /// Reads the next record.
    pub fn record(&mut self, record: &Record<'_>) -> Result<(), Violation> {
        let expected = self.lsn.next();
        hold(Law::NoGapInLsns, record.lsn == expected, || {
            format!("LSN {} comes where {expected} should", record.lsn)
        })?;
        hold(Law::TimeNeverGoesBack, record.at >= self.at, || {
            format!("{:?} comes after {:?}", record.at, self.at)
        })?;
        (self.lsn, self.at, self.wall) = (record.lsn, record.at, record.wall);
        self.summary.note(record);
        self.event(&record.event)
    }

    /// What the records added up to, once the last is read.
    pub fn finish(&self) -> Result<Summary, Violation> {
        let mut summary = self.summary.clone();
        for (_, row) in self.tasks.iter() {
            summary.count(row.state);
        }
        let (given, ended) = (summary.leased + summary.grants, summary.ends.all());
        hold(Law::EveryGrantEndsOnce, given == ended + summary.open(), || {
            format!("{given} grants, {ended} ends, and {} leases are open", summary.open())
        })?;
        Ok(summary)
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), Violation> {
        match event {
            Event::TaskCreated(event) => all(&event.tasks, |item| self.created(item)),
            Event::LeaseGranted(event) => {
                all(&event.grants, |item| self.granted(&event.worker, item))
            }
            Event::LeaseExpired(event) => {
                let mut last = None;
                all(&event.leases, |item| {
                    self.ends_in_order(item, &mut last)?;
                    self.expired(item)?;
                    self.cascade(&item.cascade)
                })
            }
            Event::ReportsApplied(event) => all(&event.reports, |item| self.report(item)),
            Event::CancelRequested(item) => {
                self.cancel_requested(item)?;
                self.cascade(&item.cascade)
            }
            Event::TaskRetried(item) => self.retried(item),
            Event::TimerFired(event) => self.timer_fired(event),
            Event::QueueConfigured(item) => self.configured(item),
            Event::QueueDeleted(item) => self.queue_deleted(item),
            Event::WorkflowDeleted(item) => self.workflow_deleted(item),
            Event::TasksPurged(event) => {
                let says = !event.tasks.is_empty() || !event.runs.is_empty();
                says_something(says)?;
                event.tasks.iter().try_for_each(|id| self.purged(*id))?;
                event.runs.iter().try_for_each(|id| self.run_purged(*id))
            }
            Event::IdsSkipped(item) => self.ids_skipped(item),
            Event::WorkflowRegistered(item) => self.registered(item),
            Event::RunStarted(event) => self.run_started(event),
            Event::RunsStarted(event) => all(&event.runs, |run| self.run_started(run)),
            Event::RunStartedBySignal(event) => {
                self.run_begun(&event.start.run)?;
                self.signaled_new(&event.signal)?;
                self.cascade(&event.start.cascade)
            }
            Event::SignalReceived(item) => {
                self.signaled(item)?;
                self.cascade(&item.cascade)
            }
            Event::RunCancelRequested(event) => {
                says_something(!event.cascade.is_empty())?;
                self.cascade(&event.cascade)
            }
            Event::DispatchContinued(event) => {
                says_something(!event.cascade.is_empty())?;
                self.cascade(&event.cascade)
            }
            Event::EndContinued(event) => {
                says_something(!event.cascade.is_empty())?;
                self.cascade(&event.cascade)
            }
            Event::RunParked(item) => self.run_parked(item.run_id, item.previous, true),
            Event::RunUnparked(item) => self.run_parked(item.run_id, item.previous, false),
        }
    }

    fn timer_fired(&mut self, event: &TimerFired<'_>) -> Result<(), Violation> {
        says_something(*event != TimerFired::default())?;
        fires_in_order(event)?;
        for item in &event.deadlines {
            self.deadline_passed(item)?;
            self.cascade(&item.cascade)?;
        }
        event.runs.iter().try_for_each(|item| self.cascade(&item.cascade))?;
        event.joins.iter().try_for_each(|item| self.cascade(&item.cascade))?;
        let tokens = event.nodes.iter().chain(&event.timers);
        tokens.map(|item| &item.cascade).try_for_each(|cascade| self.cascade(cascade))
    }

    fn report(&mut self, report: &Report<'_>) -> Result<(), Violation> {
        match report {
            Report::LeaseExtended(item) => self.extended(item),
            Report::TaskCompleted(item) => {
                self.completed(item)?;
                self.cascade(&item.cascade)
            }
            Report::TaskFailed(item) => {
                self.failed(item)?;
                self.cascade(&item.cascade)
            }
            Report::LeaseReleased(item) => {
                self.released(item)?;
                self.cascade(&item.cascade)
            }
            Report::StaleReportRejected(item) => self.reported_late(item),
        }
    }

    fn ids_skipped(&mut self, item: &IdsSkipped) -> Result<(), Violation> {
        let IdsSkipped { next_task_id, next_lease_id, next_run_id } = *item;
        let runs_ahead =
            next_run_id == RunId::NONE || (next_run_id > self.runs.next && next_run_id.0 <= ID_MAX);
        let ahead = next_task_id > self.next_task && next_lease_id > self.next_lease;
        let in_range = next_task_id.0 <= ID_MAX && next_lease_id.0 <= ID_MAX;
        hold(Law::IdsOnlyGrow, ahead && in_range && runs_ahead, || {
            format!(
                "the next ids jump to task {next_task_id} and lease {next_lease_id} from task {} \
                 and lease {}",
                self.next_task, self.next_lease
            )
        })?;
        (self.next_task, self.next_lease) = (next_task_id, next_lease_id);
        self.runs.next = self.runs.next.max(next_run_id);
        Ok(())
    }

    /// The task that an item is about, if the item knows it well. `granting` is one for a grant,
    /// which counts itself.
    fn known(&self, about: &About<'_>, granting: u32) -> Result<Row, Violation> {
        let id = about.task_id;
        let row = self.exists(id)?;
        let queue = self.queues.text(row.queue);
        hold(
            Law::ItemsKnowTheirTask,
            about.queue.as_str() == queue && about.priority == row.priority,
            || {
                let (priority, right) = (about.priority.get(), row.priority.get());
                let named = about.queue.as_str();
                format!(
                    "task {id} is in queue {queue:?} with priority {right}, and is said to be in \
                     {named:?} with priority {priority}"
                )
            },
        )?;
        let attempt = u64::from(row.attempt) + u64::from(granting);
        hold(Law::CountersFollowFacts, u64::from(about.attempt) == attempt, || {
            format!("task {id} is at attempt {}, and should be at {attempt}", about.attempt)
        })?;
        hold(Law::HistoryIsAChain, about.previous == row.last_lsn, || {
            format!(
                "task {id} was last changed by LSN {}, and is said to be by {}",
                row.last_lsn, about.previous
            )
        })?;
        Ok(row)
    }

    fn exists(&self, id: TaskId) -> Result<Row, Violation> {
        match self.tasks.get(id) {
            Some(row) => Ok(*row),
            None => {
                Err(broken(Law::TasksExist, format!("task {id} was never created, or is purged")))
            }
        }
    }
}

/// Every item in turn, of which there must be one: nothing is written that says nothing.
fn all<T>(items: &[T], one: impl FnMut(&T) -> Result<(), Violation>) -> Result<(), Violation> {
    says_something(!items.is_empty())?;
    items.iter().try_for_each(one)
}

/// Timer nodes are left out: they wait on either clock, and the record does not say on which.
fn fires_in_order(event: &TimerFired<'_>) -> Result<(), Violation> {
    let tasks = event.deadlines.iter().map(|it| (it.deadline_at, 0, it.about.task_id.0, 0));
    let runs = event.runs.iter().map(|it| (it.deadline_at, 1, it.run_id.0, 0));
    let joins = event.joins.iter().map(|it| (it.deadline_at, 2, it.run_id.0, it.group.0));
    let nodes = event.nodes.iter().map(|it| (it.at, 3, it.run_id.0, it.token.0));
    let in_order = tasks.chain(runs).chain(joins).chain(nodes).is_sorted_by(|a, b| a < b);
    hold(Law::TimersFireInOrder, in_order, || {
        "timers fire in another order than that of their moments and ids".to_owned()
    })
}

fn says_something(says: bool) -> Result<(), Violation> {
    hold(Law::RecordsSaySomething, says, || "the record has no items".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_that_is_counted_nowhere_is_found_at_the_end() {
        let mut audit = Audit::new();
        assert!(audit.finish().is_ok());
        audit.summary.grants += 1;
        assert_eq!(audit.finish().map_err(|found| found.law), Err(Law::EveryGrantEndsOnce));
    }
}

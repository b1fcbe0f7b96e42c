//! Nothing is forgotten that has not ended, is too young and is not one too many.

use tenure_coordinator::request::Maintain;
use tenure_core::command::{Command, Retention, Setting};
use tenure_record::event::{Event, Record};
use tenure_record::id::{RunId, TaskId};

use super::{LawResult, hold};
use crate::ledger::TaskLedger;
use crate::model::Model;
use crate::request::AnyRequest;

const LAW: &str = "nothing is forgotten before its time";

/// Whatever anybody ever asked to be forgotten.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The server's own, and those of operators.
    retentions: Vec<Retention>,
    /// Some queue has had this one.
    own_ms: Option<u64>,
}

impl Asked {
    pub(crate) fn note(&mut self, retention: Retention) {
        self.retentions.push(retention);
    }

    pub(crate) fn note_request(&mut self, request: &AnyRequest) {
        if let AnyRequest::Maintain(Maintain(Command::PurgeTasks(retention))) = request {
            self.note(*retention);
        }
        if let AnyRequest::ConfigureQueue(settings) = request
            && let Setting::Set(span) = settings.change.retention_ms
        {
            let ms = span.get();
            self.own_ms = Some(self.own_ms.map_or(ms, |before| before.min(ms)));
        }
    }
}

pub(super) fn record(ledger: &TaskLedger, model: &Model, record: &Record<'_>) -> LawResult {
    let Event::TasksPurged(event) = &record.event else { return Ok(()) };
    let mut left = ledger.ended_beside_runs;
    for id in &event.tasks {
        hold(LAW, may_go(ledger, model, record, *id, left), || {
            format!("record {} forgets task {id}: {:?}", record.lsn, ledger.task(*id))
        })?;
        left = left.saturating_sub(1);
    }
    let over = ledger.runs.values().filter(|run| {
        // A child goes with its parent, and does not count while that is there.
        !run.is_purged && run.state.is_terminal() && !ledger.has_parent(run)
    });
    let mut left = if event.runs.is_empty() { 0 } else { over.count() as u64 };
    for id in &event.runs {
        hold(LAW, run_may_go(ledger, model, record, *id, left), || {
            format!("record {} forgets run {id}: {:?}", record.lsn, ledger.run(*id))
        })?;
        left = left.saturating_sub(1);
    }
    Ok(())
}

fn run_may_go(
    ledger: &TaskLedger,
    model: &Model,
    record: &Record<'_>,
    id: RunId,
    left: u64,
) -> bool {
    let Some(run) = ledger.run(id).filter(|run| run.state.is_terminal()) else { return false };
    if run.parent.is_some() && !ledger.has_parent(run) {
        return true;
    }
    let mut asked = model.purges.retentions.iter();
    asked.any(|retention| {
        run.ended_at.plus_ms(retention.age_ms) <= record.at || left > retention.tasks_max
    })
}

fn may_go(ledger: &TaskLedger, model: &Model, record: &Record<'_>, id: TaskId, left: u64) -> bool {
    let Some(task) = ledger.task(id).filter(|task| task.state.is_terminal()) else { return false };
    let is_old = |keep_ms: u64| task.since.plus_ms(keep_ms) <= record.at;
    model.purges.own_ms.is_some_and(is_old)
        || model
            .purges
            .retentions
            .iter()
            .any(|retention| is_old(retention.age_ms) || left > retention.tasks_max)
}

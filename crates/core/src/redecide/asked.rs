//! From a record back to what was asked. Where several requests lead to the same record, one of
//! them will do.

use std::sync::Arc;

use tenure_record::artifact::{Artifact, ArtifactName, MediaType};
use tenure_record::event::{
    ArtifactItem, CancelRequested, Event, Expired, ExpiryCause, LeaseExtended, LeaseReleased,
    Record, Report, RunBegun, RunStartedBySignal, SignalReceived, Step, Tag, TaskCompleted,
    TaskFailed,
};
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::name::{FailureCode, Invalid, Reason, SignalText, TagKey, TagValue, TaskKey};
use tenure_record::progress::Checkpoint;
use tenure_record::state::TaskState;
use tenure_record::terms::{LeaseMs, Payload, SpanMs, Tags};
use tenure_record::time::Timestamp;

use crate::command::{
    CancelTask, Command, CompleteTask, FailTask, Heartbeat, LeaseRef, ReleaseTask, ReportTasks,
    Retry, SignalByKey, SignalRun, SignalStart, StartRun, StartRuns,
};

/// The command behind a record that decides something about runs.
pub(super) fn command(record: &Record<'_>) -> Result<Command, Invalid> {
    let at = record.at;
    Ok(match &record.event {
        Event::ReportsApplied(event) => Command::ReportTasks(reports(&event.reports, at)?),
        Event::CancelRequested(item) => Command::CancelTask(cancel(item, at)?),
        Event::LeaseExpired(event) => expiry(&event.leases),
        Event::TimerFired(_) => Command::FireTimers,
        Event::RunStarted(event) => Command::StartRun(start(&event.run)?),
        Event::RunsStarted(event) => {
            let runs = event.runs.iter().map(|event| start(&event.run));
            Command::StartRuns(StartRuns { runs: runs.collect::<Result<_, _>>()? })
        }
        Event::RunStartedBySignal(event) => Command::SignalByKey(signal_by_key(event)?),
        Event::SignalReceived(item) => Command::SignalRun(signal(item)?),
        Event::RunCancelRequested(event) => Command::CancelRun(event.run_id),
        Event::DispatchContinued(_) => Command::ContinueDispatch,
        Event::EndContinued(event) => {
            Command::ContinueEnding { items_max: event.items_max as usize }
        }
        Event::TaskCreated(_)
        | Event::LeaseGranted(_)
        | Event::TaskRetried(_)
        | Event::QueueConfigured(_)
        | Event::TasksPurged(_)
        | Event::IdsSkipped(_)
        | Event::WorkflowRegistered(_)
        | Event::QueueDeleted(_)
        | Event::WorkflowDeleted(_)
        | Event::RunParked(_)
        | Event::RunUnparked(_) => {
            let event = record.event.name();
            return Err(Invalid::new(format!("a {event} decides nothing about a run")));
        }
    })
}

fn lease(task_id: TaskId, lease_id: LeaseId) -> LeaseRef {
    LeaseRef { task_id, lease_id }
}

fn complete(item: &TaskCompleted<'_>) -> Result<CompleteTask, Invalid> {
    let output = Payload::parse("output", item.output.to_vec())?;
    let staged = item.cascade.iter().filter_map(|decision| {
        let Step::StageArtifact(step) = &decision.step else { return None };
        Some(artifact(&step.artifact))
    });
    let artifacts = staged.collect::<Result<_, _>>()?;
    Ok(CompleteTask {
        lease: lease(item.about.task_id, item.lease_id),
        output,
        artifacts,
        worker: None,
    })
}

/// What was staged is what was handed in.
fn artifact(item: &ArtifactItem<'_>) -> Result<Artifact, Invalid> {
    Ok(Artifact {
        name: ArtifactName::parse(item.name.as_str())?,
        media_type: MediaType::parse(item.media_type.as_str())?,
        bytes: item.bytes,
        sha256: item.sha256,
    })
}

fn fail(item: &TaskFailed<'_>, at: Timestamp) -> Result<FailTask, Invalid> {
    let retry = match item.to {
        TaskState::Waiting => Retry::After(span("retry_after_ms", at, item.not_before)?),
        // Its budget was used up, or another attempt made no sense: the end is the same.
        TaskState::Failed => Retry::Never,
        TaskState::Leased | TaskState::Completed | TaskState::Dead | TaskState::Canceled => {
            Retry::WithBackoff
        }
    };
    Ok(FailTask {
        lease: lease(item.about.task_id, item.lease_id),
        reason: Reason::keep_end(item.reason.as_str()),
        code: Some(FailureCode::parse(item.code.as_str())?),
        retry,
        checkpoint: Checkpoint::parse(item.checkpoint)?,
        worker: None,
    })
}

fn heartbeat(item: &LeaseExtended<'_>) -> Result<Heartbeat, Invalid> {
    Ok(Heartbeat {
        lease: lease(item.task_id, item.lease_id),
        lease_ms: match item.lease_ms {
            0 => None,
            asked_ms => Some(LeaseMs::parse(asked_ms.into())?),
        },
        checkpoint: Checkpoint::parse(item.checkpoint)?,
        progress: None,
    })
}

fn release(item: &LeaseReleased<'_>, at: Timestamp) -> Result<ReleaseTask, Invalid> {
    Ok(ReleaseTask {
        lease: lease(item.about.task_id, item.lease_id),
        delay_ms: span("delay_ms", at, item.not_before)?,
        priority: item.priority,
        checkpoint: Checkpoint::parse(item.checkpoint)?,
    })
}

/// Those that came too late are left out: they changed nothing.
fn reports(reports: &[Report<'_>], at: Timestamp) -> Result<ReportTasks, Invalid> {
    let mut command = ReportTasks::default();
    for report in reports {
        match report {
            Report::LeaseExtended(item) => command.heartbeats.push(heartbeat(item)?),
            Report::TaskCompleted(item) => command.completes.push(complete(item)?),
            Report::TaskFailed(item) => command.fails.push(fail(item, at)?),
            Report::LeaseReleased(item) => command.releases.push(release(item, at)?),
            Report::StaleReportRejected(_) => {}
        }
    }
    Ok(command)
}

fn cancel(item: &CancelRequested<'_>, at: Timestamp) -> Result<CancelTask, Invalid> {
    let task_id = item.about.task_id;
    let grace_ms = if item.from == TaskState::Leased && item.to == TaskState::Canceled {
        Some(SpanMs::ZERO)
    } else if item.revoke_at > Timestamp::ZERO {
        Some(span("grace_ms", at, item.revoke_at)?)
    } else {
        None
    };
    Ok(CancelTask { task_id, grace_ms })
}

fn expiry(leases: &[Expired<'_>]) -> Command {
    let dropped = leases.iter().filter(|item| item.cause == ExpiryCause::Disconnected);
    let dropped: Vec<_> = dropped.map(|item| lease(item.about.task_id, item.lease_id)).collect();
    match dropped.is_empty() {
        true => Command::FireTimers,
        false => Command::DropLeases(dropped),
    }
}

fn start(run: &RunBegun<'_>) -> Result<StartRun, Invalid> {
    let tag = |tag: &Tag<'_>| {
        Ok((TagKey::parse(tag.key.as_str())?, TagValue::parse(tag.value.as_str())?))
    };
    Ok(StartRun {
        workflow: Arc::from(run.workflow.as_str()),
        version: Some(run.version),
        input: run.input.0.clone(),
        key: run.key.as_ref().map(|key| TaskKey::parse(key.as_str())).transpose()?,
        tags: Tags::parse(run.tags.iter().map(tag).collect::<Result<_, Invalid>>()?)?,
    })
}

fn signal_by_key(event: &RunStartedBySignal<'_>) -> Result<SignalByKey, Invalid> {
    let StartRun { workflow, version, input, key, tags } = start(&event.start.run)?;
    let key = key.ok_or_else(|| Invalid::new("a signal by key has no key".to_owned()))?;
    let start = Some(SignalStart { version, input, tags });
    Ok(SignalByKey { workflow, key, signal: signal(&event.signal)?, start })
}

fn signal(item: &SignalReceived<'_>) -> Result<SignalRun, Invalid> {
    Ok(SignalRun {
        run_id: item.run_id,
        name: Arc::from(item.name.as_str()),
        payload: item.payload.0.clone(),
        correlation: SignalText::parse(item.correlation.as_str())?,
        signal_id: item.signal_id.as_ref().map(|id| SignalText::parse(id.as_str())).transpose()?,
    })
}

fn span(field: &str, from: Timestamp, to: Timestamp) -> Result<SpanMs, Invalid> {
    let ms = to.0.saturating_sub(from.0);
    SpanMs::parse(field, ms)
}

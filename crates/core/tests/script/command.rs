//! The words of a story, as commands.
//!
//! ```text
//! submit QUEUE [payload= priority= delay= run_at= max_failures= max_expiries= max_attempts=
//!               lease= timeout= attempt_timeout= key= key_ttl= name= tag=k:v backoff=fixed|linear|exponential:INITIAL:MAX:JITTER_PERMILLE]
//! batch QUEUE [count= and as above]; QUEUE …
//! lease WORKER QUEUE[,QUEUE…] [max= lease=]
//! heartbeat TASK/LEASE [lease= checkpoint=]                 complete TASK/LEASE [output= worker=]
//! fail TASK/LEASE [reason= code= retry=never|SPAN checkpoint= worker=]
//! release TASK/LEASE [delay= priority= checkpoint=]
//! report heartbeat …; complete …; fail …; release …
//! cancel TASK [grace=]            retry TASK
//! expire        deadlines         drop TASK/LEASE …                  purge [age= max=]
//! purge_archived TASK … [as_of=LSN]
//! pause QUEUE [until=SPAN for=SPAN]      resume QUEUE           delete_queue QUEUE
//! configure QUEUE [retention=SPAN|clear paused_until=SPAN|clear dead_letters=QUEUE|clear]
//! delete_workflow WORKFLOW [version=]
//! skip_ids restore|unclean
//! workflow                        the definition in YAML on the lines after it, each after a `|`
//! start WORKFLOW [input= key= version=]                     cancel_run RUN
//! starts WORKFLOW [as above]; WORKFLOW …
//! signal RUN NAME [payload= correlation= id=]               dispatch
//! signal_key WORKFLOW KEY NAME [as above, start=INPUT]
//! ```

use std::num::NonZeroU32;
use std::sync::Arc;

use tenure_core::command::{
    Archived, CancelTask, Command, CompleteTask, ConfigureQueue, DeleteWorkflow, FailTask,
    Heartbeat, IdJump, LeaseRef, LeaseTasks, NewTask, PauseEnd, PauseQueue, RegisterWorkflow,
    ReleaseTask, ReportTasks, Retention, Retry, Setting, SettingsChange, SignalByKey, SignalRun,
    SignalStart, Start, StartRun, StartRuns, SubmitTasks,
};
use tenure_core::limits::{END_ITEMS_MAX, RETENTION_MS_DEFAULT, RETENTION_TASKS_DEFAULT};
use tenure_flow::Definition;
use tenure_record::id::{LeaseId, Lsn, RunId, TaskId};
use tenure_record::name::{
    FailureCode, QueueName, Reason, SignalText, TagKey, TagValue, TaskKey, TaskName, WorkerName,
};
use tenure_record::progress::Checkpoint;
use tenure_record::terms::{
    Backoff, BackoffKind, Budgets, Count, LeaseMs, Payload, Priority, SpanMs, Tags,
};
use tenure_record::time::Timestamp;
use tenure_value::Value;

use super::story::EPOCH_MS;
use super::words::{Words, at_the_door, number, span};

/// The command that a line means; none if its verb is not a command's.
pub(crate) fn parse(verb: &str, mut parts: Vec<Words>) -> Result<Option<Command>, String> {
    match verb {
        "batch" => {
            let mut tasks = Vec::new();
            for part in parts {
                tasks.extend(new_tasks(part)?);
            }
            return Ok(Some(Command::SubmitTasks(SubmitTasks { tasks })));
        }
        "starts" => {
            let runs = parts.iter_mut().map(|words| {
                let start = start_run(words)?;
                std::mem::take(words).finish().map(|()| start)
            });
            let runs = runs.collect::<Result<_, String>>()?;
            return Ok(Some(Command::StartRuns(StartRuns { runs })));
        }
        "report" => return report(parts).map(|all| Some(Command::ReportTasks(all))),
        _ => {}
    }
    if parts.len() > 1 {
        return Err(format!("`{verb}` takes no `;`"));
    }
    let mut words = parts.pop().unwrap_or_default();
    let command = match verb {
        "submit" => {
            let tasks = new_tasks(words)?;
            return Ok(Some(Command::SubmitTasks(SubmitTasks { tasks })));
        }
        "lease" => Command::LeaseTasks(lease_tasks(&mut words)?),
        "heartbeat" => Command::Heartbeat(heartbeat(&mut words)?),
        "complete" => Command::CompleteTask(complete(&mut words)?),
        "fail" => Command::FailTask(fail(&mut words)?),
        "release" => Command::ReleaseTask(release(&mut words)?),
        "cancel" => {
            let task_id = task_id(&words.next("the task")?)?;
            let grace_ms = words.span("grace")?.map(|ms| SpanMs::parse("grace_ms", ms));
            Command::CancelTask(CancelTask {
                task_id,
                grace_ms: at_the_door(grace_ms.transpose())?,
            })
        }
        "retry" => Command::RetryTask(task_id(&words.next("the task")?)?),
        "skip_ids" => match words.next("`restore` or `unclean`")?.as_str() {
            "restore" => Command::SkipIds(IdJump::Restore),
            "unclean" => Command::SkipIds(IdJump::UncleanStart),
            other => return Err(format!("{other:?} is no reason to skip ids")),
        },
        "start" => Command::StartRun(start_run(&mut words)?),
        "cancel_run" => Command::CancelRun(run_id(&words.next("the run")?)?),
        "signal" => Command::SignalRun(signal_run(&mut words)?),
        "dispatch" => Command::ContinueDispatch,
        "end" => Command::ContinueEnding { items_max: END_ITEMS_MAX },
        "fire" => Command::FireTimers,
        "drop" => {
            let leases = std::iter::from_fn(|| words.next_if_any());
            Command::DropLeases(leases.map(|text| lease_ref(&text)).collect::<Result<_, _>>()?)
        }
        "pause" => Command::PauseQueue(pause(&mut words)?),
        "delete_queue" => Command::DeleteQueue(queue(&words.next("the queue")?)?),
        "delete_workflow" => {
            let name = words.next("the workflow")?.into();
            let version = words.number("version")?.map(u32::try_from).transpose();
            Command::DeleteWorkflow(DeleteWorkflow { name, version: at_the_door(version)? })
        }
        "signal_key" => Command::SignalByKey(signal_by_key(&mut words)?),
        "resume" => Command::ResumeQueue(queue(&words.next("the queue")?)?),
        "configure" => Command::ConfigureQueue(configure(&mut words)?),
        "purge" => {
            let age_ms = at_the_door(words.span("age")?.map(u64::try_from).transpose())?;
            let tasks_max = at_the_door(words.number("max")?.map(u64::try_from).transpose())?;
            Command::PurgeTasks(Retention {
                age_ms: age_ms.unwrap_or(RETENTION_MS_DEFAULT),
                tasks_max: tasks_max.unwrap_or(RETENTION_TASKS_DEFAULT),
                ..Retention::default()
            })
        }
        "purge_archived" => {
            let as_of = at_the_door(words.number("as_of")?.map(u64::try_from).transpose())?;
            let tasks = std::iter::from_fn(|| words.next_if_any());
            let tasks = tasks.map(|text| task_id(&text)).collect::<Result<_, _>>()?;
            let as_of = Lsn(as_of.unwrap_or(u64::MAX));
            Command::PurgeArchived(Archived { tasks, runs: Vec::new(), as_of })
        }
        _ => return Ok(None),
    };
    words.finish()?;
    Ok(Some(command))
}

fn new_tasks(mut words: Words) -> Result<Vec<NewTask>, String> {
    let count = words.number("count")?.unwrap_or(1);
    let payload = words.named("payload").unwrap_or_else(|| "null".to_owned());
    let payload = at_the_door(Payload::parse("payload", payload.into_bytes()))?;
    let mut task = NewTask::new(queue(&words.next("the queue")?)?, payload);
    if let Some(priority) = words.number("priority")? {
        task.priority = at_the_door(Priority::parse(priority))?;
    }
    task.start = match (words.span("delay")?, words.span("run_at")?) {
        (None, None) => Start::AtOnce,
        (Some(ms), None) => Start::After(at_the_door(SpanMs::parse("delay_ms", ms))?),
        (None, Some(ms)) => Start::At(moment(ms)),
        (Some(_), Some(_)) => return Err("give delay= or run_at=, not both".to_owned()),
    };
    let (failures, expiries) = (words.number("max_failures")?, words.number("max_expiries")?);
    let attempts = words.number("max_attempts")?;
    task.budgets = at_the_door(Budgets::parse(failures, expiries, attempts))?;
    if let Some(ms) = words.span("lease")? {
        task.lease_ms = at_the_door(LeaseMs::parse(ms))?;
    }
    let total_timeout_ms = words.span("timeout")?.map(|ms| SpanMs::parse("total_timeout_ms", ms));
    task.total_timeout_ms = at_the_door(total_timeout_ms.transpose())?;
    let attempt_timeout_ms = words.span("attempt_timeout")?;
    let attempt_timeout_ms =
        attempt_timeout_ms.map(|ms| SpanMs::parse_some("attempt_timeout_ms", ms));
    task.attempt_timeout_ms = at_the_door(attempt_timeout_ms.transpose())?;
    let key_ttl_ms = words.span("key_ttl")?.map(|ms| SpanMs::parse_some("key_ttl_ms", ms));
    task.key_ttl_ms = at_the_door(key_ttl_ms.transpose())?;
    task.backoff = words.named("backoff").map(|text| backoff(&text)).transpose()?;
    task.key = at_the_door(words.named("key").map(|key| TaskKey::parse(&key)).transpose())?;
    task.name = at_the_door(words.named("name").map(|name| TaskName::parse(&name)).transpose())?;
    let mut tags = Vec::new();
    while let Some(text) = words.named("tag") {
        let (key, value) = pair(&text)?;
        tags.push((at_the_door(TagKey::parse(key))?, at_the_door(TagValue::parse(value))?));
    }
    task.tags = at_the_door(Tags::parse(tags))?;
    words.finish()?;
    let task = task.sealed();
    Ok((0..count).map(|_| task.clone()).collect())
}

/// The two sides of `left:right`.
pub(crate) fn pair(text: &str) -> Result<(&str, &str), String> {
    text.split_once(':').ok_or_else(|| format!("`{text}` must be key:value"))
}

fn backoff(text: &str) -> Result<Backoff, String> {
    let [kind, initial, max, jitter] = text.split(':').collect::<Vec<_>>()[..] else {
        return Err(format!("`{text}` must be KIND:INITIAL:MAX:JITTER_PERMILLE"));
    };
    let kind = match kind {
        "fixed" => BackoffKind::Fixed,
        "linear" => BackoffKind::Linear,
        "exponential" => BackoffKind::Exponential,
        _ => return Err(format!("`{kind}` is no kind of backoff")),
    };
    let backoff = Backoff {
        kind: Some(kind),
        initial_ms: at_the_door(u64::try_from(span(initial)?))?,
        max_ms: at_the_door(u64::try_from(span(max)?))?,
        jitter_permille: at_the_door(u16::try_from(number(jitter)?))?,
    };
    at_the_door(backoff.parse())
}

fn lease_tasks(words: &mut Words) -> Result<LeaseTasks, String> {
    let worker = at_the_door(WorkerName::parse(&words.next("the worker")?))?;
    let queues = words.next("the queues")?;
    let queues = queues.split(',').map(queue).collect::<Result<_, _>>()?;
    let tasks_max = words.number("max")?.unwrap_or(1);
    let tasks_max = u32::try_from(tasks_max).ok().and_then(NonZeroU32::new);
    let lease_ms = at_the_door(words.span("lease")?.map(LeaseMs::parse).transpose())?;
    let tasks_max = tasks_max.ok_or("max must be at least 1")?;
    Ok(LeaseTasks { worker, queues, tasks_max, lease_ms })
}

fn complete(words: &mut Words) -> Result<CompleteTask, String> {
    let lease = lease_ref(&words.next("TASK/LEASE")?)?;
    let output = words.named("output").unwrap_or_else(|| "null".to_owned());
    let output = at_the_door(Payload::parse("output", output.into_bytes()))?;
    Ok(CompleteTask { lease, output, artifacts: Vec::new(), worker: reporter(words)? })
}

fn fail(words: &mut Words) -> Result<FailTask, String> {
    let lease = lease_ref(&words.next("TASK/LEASE")?)?;
    let code = words.named("code").map(|code| FailureCode::parse(&code)).transpose();
    let retry = match words.named("retry").as_deref() {
        None => Retry::WithBackoff,
        Some("never") => Retry::Never,
        Some(text) => Retry::After(at_the_door(SpanMs::parse("retry_after_ms", span(text)?))?),
    };
    let reason = Reason::keep_end(&words.named("reason").unwrap_or_default());
    let (code, checkpoint) = (at_the_door(code)?, checkpoint(words)?);
    Ok(FailTask { lease, reason, code, retry, checkpoint, worker: reporter(words)? })
}

fn heartbeat(words: &mut Words) -> Result<Heartbeat, String> {
    let lease = lease_ref(&words.next("TASK/LEASE")?)?;
    let lease_ms = at_the_door(words.span("lease")?.map(LeaseMs::parse).transpose())?;
    Ok(Heartbeat { lease, lease_ms, checkpoint: checkpoint(words)?, progress: None })
}

fn release(words: &mut Words) -> Result<ReleaseTask, String> {
    let lease = lease_ref(&words.next("TASK/LEASE")?)?;
    let delay_ms = words.span("delay")?.unwrap_or(0);
    let delay_ms = at_the_door(SpanMs::parse("delay_ms", delay_ms))?;
    let priority = at_the_door(words.number("priority")?.map(Priority::parse).transpose())?;
    Ok(ReleaseTask { lease, delay_ms, priority, checkpoint: checkpoint(words)? })
}

fn checkpoint(words: &mut Words) -> Result<Option<Checkpoint>, String> {
    let text = words.named("checkpoint").unwrap_or_default();
    at_the_door(Checkpoint::parse(text.as_bytes()))
}

/// The worker that a report names.
fn reporter(words: &mut Words) -> Result<Option<WorkerName>, String> {
    at_the_door(words.named("worker").map(|name| WorkerName::parse(&name)).transpose())
}

fn report(parts: Vec<Words>) -> Result<ReportTasks, String> {
    let mut all = ReportTasks::default();
    for mut words in parts {
        match words.next("the verb")?.as_str() {
            "heartbeat" => all.heartbeats.push(heartbeat(&mut words)?),
            "complete" => all.completes.push(complete(&mut words)?),
            "fail" => all.fails.push(fail(&mut words)?),
            "release" => all.releases.push(release(&mut words)?),
            verb => return Err(format!("`{verb}` is no report")),
        }
        words.finish()?;
    }
    Ok(all)
}

fn moment(ms: i64) -> Timestamp {
    Timestamp(EPOCH_MS.saturating_add_signed(ms))
}

fn configure(words: &mut Words) -> Result<ConfigureQueue, String> {
    let queue = queue(&words.next("the queue")?)?;
    let retention_ms = match words.named("retention").as_deref() {
        None => Setting::Keep,
        Some("clear") => Setting::Clear,
        Some(text) => Setting::Set(at_the_door(SpanMs::parse("retention_ms", span(text)?))?),
    };
    let paused_until = match words.named("paused_until").as_deref() {
        None => Setting::Keep,
        Some("clear") => Setting::Clear,
        Some(text) => Setting::Set(moment(span(text)?)),
    };
    let dead_letter_queue = match words.named("dead_letters").as_deref() {
        None => Setting::Keep,
        Some("clear") => Setting::Clear,
        Some(name) => Setting::Set(self::queue(name)?),
    };
    let max_waiting = match words.named("max_waiting").as_deref() {
        None => Setting::Keep,
        Some("clear") => Setting::Clear,
        Some(text) => {
            let count: i64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
            Setting::Set(at_the_door(Count::parse("max_waiting", count))?)
        }
    };
    let change = SettingsChange { retention_ms, paused_until, dead_letter_queue, max_waiting };
    Ok(ConfigureQueue { queue, change })
}

fn pause(words: &mut Words) -> Result<PauseQueue, String> {
    let queue = queue(&words.next("the queue")?)?;
    let end = match (words.span("until")?, words.span("for")?) {
        (None, None) => PauseEnd::Resumed,
        (Some(at), None) => PauseEnd::At(moment(at)),
        (None, Some(ms)) => PauseEnd::After(at_the_door(SpanMs::parse("for_ms", ms))?),
        (Some(_), Some(_)) => return Err("give until= or for=, not both".to_owned()),
    };
    Ok(PauseQueue { queue, end })
}

fn queue(text: &str) -> Result<QueueName, String> {
    at_the_door(QueueName::parse(text))
}

/// The definition of a workflow.
pub(crate) fn workflow(text: &str) -> Result<Command, String> {
    let value = tenure_flow::yaml::parse(text).map_err(|fault| format!("{fault:?}"))?;
    let definition = Definition::compile(&value).map_err(|faults| format!("{faults:?}"))?;
    Ok(Command::RegisterWorkflow(RegisterWorkflow { definition: Arc::new(definition) }))
}

fn start_run(words: &mut Words) -> Result<StartRun, String> {
    let workflow = words.next("the workflow")?;
    let input = json(&words.named("input").unwrap_or_else(|| "{}".to_owned()))?;
    let key = words.named("key").map(|key| TaskKey::parse(&key)).transpose();
    let version = words.number("version")?.map(u32::try_from).transpose();
    Ok(StartRun {
        workflow: workflow.into(),
        version: at_the_door(version)?,
        input,
        key: at_the_door(key)?,
        tags: Tags::default(),
    })
}

fn signal_by_key(words: &mut Words) -> Result<SignalByKey, String> {
    let workflow = words.next("the workflow")?;
    let key = at_the_door(TaskKey::parse(&words.next("the key")?))?;
    let start = words.named("start").map(|input| json(&input)).transpose()?;
    let start = start.map(|input| SignalStart { version: None, input, tags: Tags::default() });
    Ok(SignalByKey { workflow: workflow.into(), key, signal: signal(RunId::NONE, words)?, start })
}

fn signal_run(words: &mut Words) -> Result<SignalRun, String> {
    let run_id = run_id(&words.next("the run")?)?;
    signal(run_id, words)
}

fn signal(run_id: RunId, words: &mut Words) -> Result<SignalRun, String> {
    let name = words.next("the signal")?;
    let correlation = words.named("correlation").unwrap_or_default();
    let signal_id = words.named("id").map(|id| SignalText::parse(&id)).transpose();
    Ok(SignalRun {
        run_id,
        name: name.into(),
        payload: json(&words.named("payload").unwrap_or_else(|| "null".to_owned()))?,
        correlation: at_the_door(SignalText::parse(&correlation))?,
        signal_id: at_the_door(signal_id)?,
    })
}

fn json(text: &str) -> Result<Value, String> {
    Value::from_json_exact(text.as_bytes()).map_err(|fault| fault.about(&format!("`{text}`")))
}

/// A run's number.
pub(crate) fn run_id(text: &str) -> Result<RunId, String> {
    text.parse().map(RunId).map_err(|_| format!("`{text}` is no run's number"))
}

/// A task's number.
pub(crate) fn task_id(text: &str) -> Result<TaskId, String> {
    text.parse().map(TaskId).map_err(|_| format!("`{text}` is no task's number"))
}

fn lease_ref(text: &str) -> Result<LeaseRef, String> {
    let (task, lease) =
        text.split_once('/').ok_or_else(|| format!("`{text}` must be TASK/LEASE"))?;
    let lease = lease.parse().map_err(|_| format!("`{lease}` is no lease's number"))?;
    Ok(LeaseRef { task_id: task_id(task)?, lease_id: LeaseId(lease) })
}

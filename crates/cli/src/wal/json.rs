//! Records as JSON: every field of every event, under the name that it has in the log's format.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tenure_record::event::{
    About, CancelRequested, Created, DeadLetter, DeadlinePassed, Event, Expired, Granted,
    LeaseExtended, LeaseReleased, QueueConfigured, Record, Report, RunStarted, SignalReceived,
    StaleReportRejected, TaskCompleted, TaskFailed, TaskRetried,
};
use tenure_record::history;
use tenure_record::id::LeaseId;
use tenure_record::name::Text;
use tenure_record::state::TaskState;
use tenure_record::terms::{Backoff, BackoffKind, Budget};
use tenure_record::time::Clock;

use super::time::{moment, moment_or_null};

/// Levels of a payload that are shown as JSON: what most readers take.
const PAYLOAD_DEPTH_MAX: usize = 127;

/// A record as one object: number, time, name of the event, then what is in it.
pub(super) fn record(record: &Record<'_>) -> impl fmt::Display {
    let head = Object::default().with("lsn", record.lsn.0).with("at", moment(record.wall));
    // Moments of spans inside the event (leases, delays, deadlines) are on log time.
    let head = match record.at == record.wall {
        true => head,
        false => head.with("log_at", moment(record.at)),
    };
    head.with("event", record.event.name())
        .and(&event(&record.event))
        .and(&decisions(&record.event))
}

fn event(event: &Event<'_>) -> Object {
    let many = |name, items: Vec<Object>| Object::default().with_objects(name, &items);
    match event {
        Event::TaskCreated(event) => many("tasks", event.tasks.iter().map(created).collect()),
        Event::LeaseGranted(event) => Object::default()
            .with("worker", event.worker.as_str())
            .and(&many("grants", event.grants.iter().map(granted).collect())),
        Event::LeaseExpired(event) => many("leases", event.leases.iter().map(expired).collect()),
        Event::ReportsApplied(event) => many("reports", event.reports.iter().map(report).collect()),
        Event::CancelRequested(item) => cancel_requested(item),
        Event::TaskRetried(item) => retried(item),
        Event::TimerFired(event) => {
            let due =
                |run: u64, name, id: u32| Object::default().with("run_id", run).with(name, id);
            let runs = event.runs.iter().map(|it| Object::default().with("run_id", it.run_id.0));
            let joins = event.joins.iter().map(|it| due(it.run_id.0, "group", it.group.0));
            let nodes = event.nodes.iter().map(|it| due(it.run_id.0, "token", it.token.0));
            let timers = event.timers.iter().map(|it| due(it.run_id.0, "token", it.token.0));
            many("deadlines", event.deadlines.iter().map(deadline_passed).collect())
                .and_some("runs", runs)
                .and_some("joins", joins)
                .and_some("nodes", nodes)
                .and_some("timers", timers)
        }
        Event::QueueConfigured(item) => configured(item),
        Event::IdsSkipped(item) => Object::default()
            .with("next_task_id", item.next_task_id.0)
            .with("next_lease_id", item.next_lease_id.0)
            .with("next_run_id", item.next_run_id.0),
        Event::TasksPurged(event) => {
            let tasks: Vec<_> = event.tasks.iter().map(|task| task.0).collect();
            let runs: Vec<_> = event.runs.iter().map(|run| run.0).collect();
            Object::default().with("tasks", tasks).with("runs", runs)
        }
        Event::WorkflowRegistered(item) => Object::default()
            .with("name", item.name.as_str())
            .with("version", item.version)
            .with_text("definition", &item.definition.0.to_json()),
        Event::WorkflowDeleted(item) => Object::default()
            .with("name", item.name.as_str())
            .with("version", Some(item.version).filter(|version| *version > 0)),
        Event::QueueDeleted(item) => Object::default().with("queue", item.queue.as_str()),
        Event::RunStarted(event) => started(event),
        Event::RunsStarted(event) => many("runs", event.runs.iter().map(started).collect()),
        Event::RunStartedBySignal(event) => Object::default()
            .with_object("start", &started(&event.start))
            .with_object("signal", &signal(&event.signal)),
        Event::SignalReceived(item) => signal(item),
        Event::RunCancelRequested(event) => Object::default().with("run_id", event.run_id.0),
        Event::DispatchContinued(_) | Event::EndContinued(_) => Object::default(),
        Event::RunParked(item) => {
            Object::default().with("run_id", item.run_id.0).with("reason", item.reason.as_str())
        }
        Event::RunUnparked(item) => Object::default().with("run_id", item.run_id.0),
    }
}

fn started(event: &RunStarted<'_>) -> Object {
    let (key, hash) = (event.run.key.as_ref().map(Text::as_str), event.run.start_hash);
    Object::default()
        .with_text("run", &history::begun(&event.run).to_json())
        .with("key", key)
        .with("start_hash", hash.map(|hash| hex(&hash.0)))
}

fn signal(item: &SignalReceived<'_>) -> Object {
    Object::default()
        .with("run_id", item.run_id.0)
        .with("name", item.name.as_str())
        .with("correlation", item.correlation.as_str())
        .with("signal_id", item.signal_id.as_ref().map(Text::as_str))
        .with("signal_hash", item.signal_hash.map(|hash| hex(&hash.0)))
        .with_text("payload", &item.payload.0.to_json())
        .with("token", item.token.0)
}

/// What was decided about runs, in order; absent if nothing was.
fn decisions(event: &Event<'_>) -> Object {
    let mut decisions = Vec::new();
    event.each_cascade(|cascade| {
        decisions.extend(cascade.iter().map(|decision| history::shown(decision).to_json()));
    });
    match decisions.is_empty() {
        true => Object::default(),
        false => Object::default().with_text("decisions", &format!("[{}]", decisions.join(","))),
    }
}

fn created(item: &Created<'_>) -> Object {
    let tags: Map<_, _> = item
        .tags
        .iter()
        .map(|tag| (tag.key.as_str().to_owned(), tag.value.as_str().into()))
        .collect();
    Object::default()
        .with("task_id", item.task_id.0)
        .with("queue", item.queue.as_str())
        .with("priority", item.priority.get())
        .with_payload("payload", "payload_base64", &item.payload)
        .with("not_before", moment_or_null(item.not_before))
        .with("clock", clock(item.clock))
        .with("lease_ms", item.lease_ms)
        .with("max_failures", item.max_failures.map(Budget::get))
        .with("max_expiries", item.max_expiries.map(Budget::get))
        .with("max_attempts", item.max_attempts.map(Budget::get))
        .with("backoff", item.backoff.as_ref().map(backoff))
        .with("total_timeout_ms", item.total_timeout_ms)
        .with("attempt_timeout_ms", item.attempt_timeout_ms)
        .with("deadline_at", moment_or_null(item.deadline_at))
        .with("key", item.key.as_ref().map(Text::as_str))
        .with("submit_hash", item.submit_hash.map(|hash| hex(&hash.0)))
        .with("key_free_at", moment_or_null(item.key_free_at))
        .with("key_from", Some(item.key_from.0).filter(|id| *id > 0))
        .with("tags", tags)
        .with("traceparent", item.traceparent.as_ref().map(Text::as_str))
        .with("name", item.name.as_ref().map(Text::as_str))
}

fn granted(item: &Granted<'_>) -> Object {
    about(&item.about)
        .with("lease_id", item.lease_id.0)
        .with("lease_ms", item.lease_ms)
        .with("expires_at", moment(item.expires_at))
        .with("attempt_deadline_at", moment_or_null(item.attempt_deadline_at))
}

fn extended(item: &LeaseExtended<'_>) -> Object {
    let lease_ms = Some(item.lease_ms).filter(|ms| *ms > 0);
    Object::default()
        .with("task_id", item.task_id.0)
        .with("lease_id", item.lease_id.0)
        .with("expires_at", moment(item.expires_at))
        .with_some("lease_ms", lease_ms)
        .with_checkpoint(item.checkpoint)
}

fn expired(item: &Expired<'_>) -> Object {
    about(&item.about)
        .under(item.lease_id, &item.worker)
        .with("to", state(item.to))
        .with("expiries", item.expiries)
        .with("cause", item.cause.as_str())
        .with("failures", Some(item.failures).filter(|failures| *failures > 0))
        .with("not_before", moment_or_null(item.not_before))
        .with_letter(item.dead_letter.as_deref())
}

fn released(item: &LeaseReleased<'_>) -> Object {
    let not_before = Some(item.not_before).filter(|at| at.0 > 0);
    about(&item.about)
        .under(item.lease_id, &item.worker)
        .with("to", state(item.to))
        .with_some("not_before", not_before.map(moment))
        .with_some("priority", item.priority.map(|priority| priority.get()))
        .with_checkpoint(item.checkpoint)
}

fn completed(item: &TaskCompleted<'_>) -> Object {
    about(&item.about).under(item.lease_id, &item.worker).with_payload(
        "output",
        "output_base64",
        item.output,
    )
}

fn failed(item: &TaskFailed<'_>) -> Object {
    about(&item.about)
        .under(item.lease_id, &item.worker)
        .with("to", state(item.to))
        .with("failures", item.failures)
        .with("not_before", moment_or_null(item.not_before))
        .with("code", item.code.as_str())
        .with("reason", item.reason.as_str())
        .with_letter(item.dead_letter.as_deref())
}

fn reported_late(item: &StaleReportRejected<'_>) -> Object {
    about(&item.about).with("lease_id", item.lease_id.0).with("state", state(item.state))
}

fn report(report: &Report<'_>) -> Object {
    let item = match report {
        Report::LeaseExtended(item) => extended(item),
        Report::TaskCompleted(item) => completed(item),
        Report::TaskFailed(item) => failed(item),
        Report::LeaseReleased(item) => released(item),
        Report::StaleReportRejected(item) => reported_late(item),
    };
    Object::default().with("event", report.name()).and(&item)
}

fn cancel_requested(item: &CancelRequested<'_>) -> Object {
    about(&item.about)
        .with("from", state(item.from))
        .with("to", state(item.to))
        .under(item.lease_id, &item.worker)
        .with("expires_at", moment_or_null(item.expires_at))
        .with("revoke_at", moment_or_null(item.revoke_at))
}

fn retried(item: &TaskRetried<'_>) -> Object {
    about(&item.about)
        .with("from", state(item.from))
        .with("not_before", moment_or_null(item.not_before))
        .with("deadline_at", moment_or_null(item.deadline_at))
}

fn deadline_passed(item: &DeadlinePassed<'_>) -> Object {
    about(&item.about)
        .with("from", state(item.from))
        .with("to", state(item.to))
        .under(item.lease_id, &item.worker)
        .with("deadline_at", moment(item.deadline_at))
        .with_letter(item.dead_letter.as_deref())
}

fn dead_letter(item: &DeadLetter<'_>) -> Object {
    Object::default()
        .with("task_id", item.task_id.0)
        .with("queue", item.queue.as_str())
        .with("lease_ms", item.lease_ms)
        .with("max_failures", item.max_failures.map(Budget::get))
        .with("max_expiries", item.max_expiries.map(Budget::get))
}

fn configured(item: &QueueConfigured<'_>) -> Object {
    let settings = Object::default()
        .with("paused", item.settings.paused)
        .with("retention_ms", item.settings.retention_ms)
        .with("paused_until", moment_or_null(item.settings.paused_until))
        .with("dead_letter_queue", item.settings.dead_letter_queue.as_deref())
        .with("max_waiting", item.settings.max_waiting);
    Object::default().with("queue", item.queue.as_str()).with_object("settings", &settings)
}

fn about(about: &About<'_>) -> Object {
    Object::default()
        .with("task_id", about.task_id.0)
        .with("queue", about.queue.as_str())
        .with("priority", about.priority.get())
        .with("attempt", about.attempt)
        .with("previous", about.previous.0)
}

fn state(state: TaskState) -> &'static str {
    state.as_str()
}

fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Log => "log",
        Clock::Wall => "wall",
    }
}

fn backoff(backoff: &Backoff) -> Value {
    let kind = backoff.kind.map(|kind| match kind {
        BackoffKind::Fixed => "fixed",
        BackoffKind::Linear => "linear",
        BackoffKind::Exponential => "exponential",
    });
    json!({
        "kind": kind,
        "initial_ms": backoff.initial_ms,
        "max_ms": backoff.max_ms,
        "jitter_permille": backoff.jitter_permille,
    })
}

/// A JSON object in the making, as text: its fields keep their order, and a payload its digits.
#[derive(Default)]
struct Object(String);

impl Object {
    fn with(self, name: &str, value: impl Into<Value>) -> Self {
        self.with_text(name, &value.into().to_string())
    }

    fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// An end that leaves no copy says nothing of it.
    fn with_letter(self, item: Option<&DeadLetter<'_>>) -> Self {
        match item {
            Some(item) => self.with_object("dead_letter", &dead_letter(item)),
            None => self,
        }
    }

    /// A report without a checkpoint says nothing of it.
    fn with_checkpoint(self, bytes: &[u8]) -> Self {
        match bytes.is_empty() {
            true => self,
            false => self.with_payload("checkpoint", "checkpoint_base64", bytes),
        }
    }

    fn with_object(self, name: &str, object: &Object) -> Self {
        self.with_text(name, &object.to_string())
    }

    fn with_objects(self, name: &str, objects: &[Object]) -> Self {
        let objects: Vec<_> = objects.iter().map(Object::to_string).collect();
        self.with_text(name, &format!("[{}]", objects.join(",")))
    }

    /// A field whose value is JSON already.
    fn with_text(mut self, name: &str, json: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(&Value::from(name).to_string());
        self.0.push(':');
        self.0.push_str(json);
        self
    }

    /// A list that only some records have.
    fn and_some(self, name: &str, items: impl Iterator<Item = Object>) -> Self {
        let items: Vec<_> = items.collect();
        match items.is_empty() {
            true => self,
            false => self.with_objects(name, &items),
        }
    }

    fn and(mut self, other: &Object) -> Self {
        if !self.0.is_empty() && !other.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(&other.0);
        self
    }

    /// A lease and who holds it; null for both when there is none.
    fn under(self, lease_id: LeaseId, worker: &Text<'_>) -> Self {
        let lease_id = Some(lease_id.0).filter(|_| lease_id.is_some());
        let worker = Some(worker.as_str()).filter(|name| !name.is_empty());
        self.with("lease_id", lease_id).with("worker", worker)
    }

    /// Bytes from outside: JSON text as what it says, anything else in base64 and under the other
    /// name, so that the two are never mistaken for each other.
    fn with_payload(self, name: &str, name_base64: &str, bytes: &[u8]) -> Self {
        let raw = serde_json::from_slice::<&RawValue>(bytes).ok();
        match raw.and_then(|raw| on_one_line(raw.get())) {
            Some(json) => self.with_text(name, &json),
            None => self.with(name_base64, STANDARD.encode(bytes)),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.0)
    }
}

/// JSON text without the space between its parts; nothing if it is so deep that a reader of the
/// dump could stumble over it.
fn on_one_line(json: &str) -> Option<String> {
    let mut line = String::with_capacity(json.len());
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for c in json.chars() {
        if in_string {
            in_string = is_escaped || c != '"';
            is_escaped = c == '\\' && !is_escaped;
        } else {
            match c {
                ' ' | '\t' | '\n' | '\r' => continue,
                '"' => in_string = true,
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if depth > PAYLOAD_DEPTH_MAX {
            return None;
        }
        line.push(c);
    }
    Some(line)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;

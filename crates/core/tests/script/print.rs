//! What a story shows: records, transitions, answers and what there is to see.

use std::fmt::{Display, Write as _};

use tenure_core::command::{
    Extended, Leased, Reply, Reported, Rest, Started, SubmitOutcome, Submitted,
};
use tenure_core::state::{QueueView, TaskView, TimerRef};
use tenure_core::{Rejection, State};
use tenure_record::event::{Event, LeaseExtended, QueueSettings, Record, Report};
use tenure_record::state::TaskState;
use tenure_record::terms::Budget;
use tenure_record::time::{Clock, Timestamp};
use tenure_record::transition::{Transition, transitions};

use super::run;
use super::story::EPOCH_MS;
use super::words::span_text;

/// More lines of a kind than this are told in one.
const LINES_MAX: usize = 8;

pub(crate) fn time(at: Timestamp) -> String {
    span_text(at.0 as i64 - EPOCH_MS as i64)
}

pub(crate) fn clocks(log: Timestamp, wall: Timestamp, out: &mut String) {
    let _ = match log == wall {
        true => writeln!(out, "now {}", time(log)),
        false => writeln!(out, "now {}, by the wall clock {}", time(log), time(wall)),
    };
}

/// A record's number and event, and what it did.
pub(crate) fn record(record: &Record<'_>, out: &mut String) {
    let name = name(&record.event);
    let _ = writeln!(out, "{} {name}", record.lsn);
    match &record.event {
        Event::ReportsApplied(event) => {
            for report in &event.reports {
                if let Report::LeaseExtended(item) = report {
                    extended(item, out);
                }
            }
        }
        Event::QueueConfigured(event) => {
            let _ =
                writeln!(out, "  queue {}: {}", event.queue.as_str(), settings(&event.settings));
        }
        Event::TasksPurged(event) => {
            let _ = writeln!(out, "  tasks {}", numbers(event.tasks.iter().map(|id| id.0)));
        }
        Event::QueueDeleted(event) => {
            let _ = writeln!(out, "  queue {}", event.queue.as_str());
        }
        Event::WorkflowDeleted(event) => {
            let version = match event.version {
                0 => "all versions".to_owned(),
                version => format!("version {version}"),
            };
            let _ = writeln!(out, "  workflow {}, {version}", event.name.as_str());
        }
        Event::IdsSkipped(event) => {
            let (task, lease) = (event.next_task_id, event.next_lease_id);
            let _ = writeln!(out, "  next task {task}, next lease {lease}");
        }
        Event::TaskCreated(_)
        | Event::LeaseGranted(_)
        | Event::LeaseExpired(_)
        | Event::CancelRequested(_)
        | Event::TaskRetried(_)
        | Event::TimerFired(_)
        | Event::RunStarted(_)
        | Event::RunsStarted(_)
        | Event::RunStartedBySignal(_)
        | Event::SignalReceived(_)
        | Event::RunCancelRequested(_)
        | Event::DispatchContinued(_)
        | Event::EndContinued(_)
        | Event::RunParked(_)
        | Event::RunUnparked(_)
        | Event::WorkflowRegistered(_) => {}
    }
    run::decisions(record, out);
    let steps = transitions(record);
    for many in steps.chunk_by(|a, b| (a.event, a.from, a.to) == (b.event, b.from, b.to)) {
        if many.len() > LINES_MAX {
            let ids = numbers(many.iter().map(|step| step.task_id.0));
            let (from, to) = (from(&many[0]), many[0].to);
            let _ = writeln!(out, "  {} tasks {ids}: {from} -> {to}", many.len());
            continue;
        }
        for step in many {
            out.push_str("  ");
            if name != step.event {
                let _ = write!(out, "{} ", step.event);
            }
            transition(step, out);
        }
    }
}

/// The name of an event. A report that is alone goes by its own.
fn name(event: &Event<'_>) -> &'static str {
    if let Event::ReportsApplied(event) = event
        && let [report] = event.reports.as_slice()
    {
        return report.name();
    }
    event.name()
}

fn extended(item: &LeaseExtended<'_>, out: &mut String) {
    let LeaseExtended { task_id, lease_id, expires_at, lease_ms, checkpoint } = item;
    let _ = write!(out, "  task {task_id}: lease {lease_id} until {}", time(*expires_at));
    if *lease_ms > 0 {
        let _ = write!(out, ", as asked");
    }
    if !checkpoint.is_empty() {
        let _ = write!(out, ", checkpoint {}", String::from_utf8_lossy(checkpoint));
    }
    out.push('\n');
}

fn from(step: &Transition<'_>) -> &'static str {
    step.from.map_or("-", TaskState::as_str)
}

/// One step of a task: where from, where to, and whose doing it was.
pub(crate) fn transition(step: &Transition<'_>, out: &mut String) {
    let (id, queue) = (step.task_id, step.queue);
    let _ = write!(out, "task {id} {queue}: {} -> {}", from(step), step.to);
    let mut fact = Facts::new(out, "  ", ", ");
    fact.add_if(step.attempt > 0, format_args!("attempt {}", step.attempt));
    if let Some(lease) = step.lease_id {
        fact.add(format_args!("lease {lease}"));
    }
    if let Some(worker) = step.worker {
        fact.add(format_args!("worker {worker}"));
    }
    if step.priority.get() != 0 {
        fact.add(format_args!("priority {}", step.priority.get()));
    }
    if let Some(code) = step.code {
        fact.add(code);
    }
    if let Some(reason) = step.reason.filter(|reason| !reason.is_empty()) {
        fact.add(format_args!("{reason:?}"));
    }
    if let Some(of) = step.dead_letter_of {
        fact.add(format_args!("dead letter of {of}"));
    }
    out.push('\n');
}

/// Facts in a row, each after a mark.
struct Facts<'o> {
    out: &'o mut String,
    mark: &'static str,
    next: &'static str,
}

impl<'o> Facts<'o> {
    fn new(out: &'o mut String, mark: &'static str, next: &'static str) -> Self {
        Self { out, mark, next }
    }

    fn add(&mut self, fact: impl Display) {
        let _ = write!(self.out, "{}{fact}", self.mark);
        self.mark = self.next;
    }

    fn add_if(&mut self, is_so: bool, fact: impl Display) {
        if is_so {
            self.add(fact);
        }
    }

    fn add_time(&mut self, what: &str, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.add(format_args!("{what} {}", time(at)));
        }
    }
}

pub(crate) fn refusal(refusal: &Rejection, out: &mut String) {
    let _ = writeln!(out, "no: {}: {refusal}", refusal.code());
}

pub(crate) fn reply(reply: &Reply, out: &mut String) {
    match reply {
        Reply::Submitted(tasks) => submitted(tasks, out),
        Reply::Leased(leases) => leased(leases, out),
        Reply::Extended(extended) => {
            let _ = writeln!(out, "ok: lease {}", until(extended));
        }
        Reply::Task(id, state) => {
            let _ = writeln!(out, "ok: task {id} is {state}");
        }
        Reply::LeaseLost(lost) => refusal(lost, out),
        Reply::Reported { reports, .. } => reports.iter().for_each(|report| reported(report, out)),
        Reply::Swept(swept) => {
            let rest = match swept.rest {
                Rest::Nothing => "",
                Rest::More => ", and there is more",
            };
            let _ = writeln!(out, "ok: {} done{rest}", swept.items);
        }
        Reply::Skipped(next) => {
            let (task, lease) = (next.next_task_id, next.next_lease_id);
            let _ = writeln!(out, "ok: task {task} and lease {lease} come next");
        }
        Reply::Registered(registered) => run::registered(registered, out),
        Reply::Started(started) => run::started(started, out),
        Reply::Run(id, state) => {
            let _ = writeln!(out, "ok: run {id} is {state}");
        }
        Reply::Signaled(signaled) => run::signaled(*signaled, out),
        Reply::StartedMany(all) => all.iter().for_each(|started| run::started(started, out)),
        Reply::Deleted => out.push_str("ok: deleted\n"),
        Reply::SignaledByKey { run_id, outcome, signaled } => {
            run::started(&Started { run_id: *run_id, outcome: *outcome }, out);
            run::signaled(*signaled, out);
        }
        Reply::Queue(now) => {
            let _ = writeln!(out, "ok: {}", settings(now));
        }
    }
}

fn submitted(tasks: &[Submitted], out: &mut String) {
    if tasks.is_empty() {
        out.push_str("ok: no tasks\n");
    }
    for many in tasks.chunk_by(|a, b| a.outcome == b.outcome) {
        let outcome = match many[0].outcome {
            SubmitOutcome::Created => "created",
            SubmitOutcome::Existed => "existed",
        };
        let ids = numbers(many.iter().map(|task| task.task_id.0));
        let task = if many.len() > 1 { "tasks" } else { "task" };
        let _ = writeln!(out, "ok: {task} {ids} {outcome}");
    }
}

fn leased(leases: &[Leased], out: &mut String) {
    if leases.is_empty() {
        out.push_str("ok: nothing to do\n");
    }
    if leases.len() > LINES_MAX {
        let tasks = numbers(leases.iter().map(|lease| lease.task_id.0));
        let ids = numbers(leases.iter().map(|lease| lease.lease_id.0));
        let _ = writeln!(out, "ok: {} leases {ids} of tasks {tasks}", leases.len());
        return;
    }
    for Leased { task_id, lease_id, expires_at } in leases {
        let _ = writeln!(out, "ok: lease {lease_id} of task {task_id} until {}", time(*expires_at));
    }
}

fn reported(report: &Reported, out: &mut String) {
    match &report.result {
        Ok(accepted) => {
            let lease = accepted.extended.as_ref().map(|extended| format!(" {}", until(extended)));
            let (id, state) = (report.task_id, accepted.state);
            let _ = writeln!(out, "ok: task {id} is {state}{}", lease.unwrap_or_default());
        }
        Err(refused) => refusal(refused, out),
    }
}

fn until(extended: &Extended) -> String {
    let stop = if extended.cancel_requested { ", cancel requested" } else { "" };
    format!("until {}{stop}", time(extended.expires_at))
}

fn settings(settings: &QueueSettings) -> String {
    let paused = match (settings.paused, settings.paused_until) {
        (true, _) => "paused".to_owned(),
        (false, Timestamp::ZERO) => "open".to_owned(),
        (false, until) => format!("paused until {}", time(until)),
    };
    let retention = settings.retention_ms.map(|ms| format!(", retention {}", span_text(ms as i64)));
    let to = settings.dead_letter_queue.as_ref().map(|name| format!(", dead letters to {name}"));
    let waiting = settings.max_waiting.map(|count| format!(", at most {count} waiting"));
    [Some(paused), retention, to, waiting].into_iter().flatten().collect()
}

/// All that a task has beyond the defaults.
pub(crate) fn task(task: &TaskView<'_>, out: &mut String) {
    let _ = write!(out, "task {} {}: {}", task.id, task.queue(), task.state());
    let mut fact = Facts::new(out, ", ", ", ");
    fact.add(format_args!("attempt {}", task.attempt()));
    let (failures, expiries) = (task.failures(), task.expiries());
    let budgets = task.budgets();
    let of = |budget: Option<Budget>| {
        budget.map(|budget| format!(" of {}", budget.get())).unwrap_or_default()
    };
    fact.add_if(failures > 0, format_args!("failures {failures}{}", of(budgets.max_failures)));
    fact.add_if(expiries > 0, format_args!("expiries {expiries}{}", of(budgets.max_expiries)));
    if let Some(attempts) = budgets.max_attempts {
        fact.add(format_args!("attempts at most {}", attempts.get()));
    }
    if let Some(name) = task.name() {
        fact.add(format_args!("name {name}"));
    }
    if let Some(lease) = task.lease() {
        fact.add(format_args!("lease {} of {}", lease.lease_id, lease.worker));
        fact.add_time("until", Some(lease.expires_at));
    }
    fact.add_if(task.cancel_requested(), "cancel requested");
    fact.add_time("revoked at", task.revoke_at());
    fact.add_time("not before", task.not_before().filter(|at| *at > Timestamp::ZERO));
    fact.add_time("deadline", task.deadline_at());
    fact.add_time("created", Some(task.created_at()));
    fact.add_time("run at", task.run_at());
    fact.add_time("started", task.started_at());
    fact.add_time("finished", task.finished_at());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    fact.add_if(*task.payload() != *b"null", format_args!("payload {}", text(&task.payload())));
    fact.add_if(!task.output().is_empty(), format_args!("output {}", text(&task.output())));
    if let Some(checkpoint) = task.checkpoint() {
        fact.add(format_args!("checkpoint {}", text(checkpoint)));
    }
    if let Some(key) = task.key() {
        fact.add(format_args!("key {key}"));
    }
    for (key, value) in task.tags() {
        fact.add(format_args!("tag {key}:{value}"));
    }
    if let Some(copy) = task.dead_letter() {
        fact.add(format_args!("dead letter {copy}"));
    }
    if let Some(of) = task.dead_letter_of() {
        fact.add(format_args!("dead letter of {of}"));
    }
    for error in task.errors() {
        fact.add(format_args!("error {} {:?}", error.code, error.message));
    }
    out.push('\n');
}

pub(crate) fn queue(queue: &QueueView, out: &mut String) {
    let _ = write!(out, "queue {}: {}", queue.name, settings(&queue.settings));
    let mut fact = Facts::new(out, "; ", ", ");
    for state in TaskState::ALL {
        let count = queue.counts.of(state);
        fact.add_if(count > 0, format_args!("{count} {state}"));
    }
    fact.add_time("oldest waits since", queue.oldest_waiting_at);
    out.push('\n');
}

/// What the clock will do next.
pub(crate) fn next(state: &State, out: &mut String) {
    let first = |clock, what: &str| {
        let mut timers = state.timers(clock);
        timers.find(|(_, timer)| kind(*timer) == what).map(|(at, _)| at)
    };
    let moments = [
        ("a lease ends at", first(Clock::Log, "lease")),
        ("a deadline passes at", first(Clock::Log, "deadline")),
        ("a timer is due at", first(Clock::Log, "timer")),
        ("a timer is due, by the wall clock, at", first(Clock::Wall, "timer")),
        ("a delay ends at", state.next_wakeup(Clock::Log)),
        ("an appointment is due at", state.next_wakeup(Clock::Wall)),
    ];
    for (what, at) in moments {
        if let Some(at) = at {
            let _ = writeln!(out, "{what} {}", time(at));
        }
    }
    if moments.iter().all(|(_, at)| at.is_none()) {
        out.push_str("nothing to wait for\n");
    }
}

/// Numbers in a row, as ranges where they follow each other.
fn numbers(all: impl Iterator<Item = u64>) -> String {
    let all: Vec<_> = all.collect();
    let ranges = all.chunk_by(|a, b| a + 1 == *b).map(|range| match range {
        [one] => one.to_string(),
        [one, two] => format!("{one} {two}"),
        _ => format!("{}..{}", range[0], range[range.len() - 1]),
    });
    ranges.collect::<Vec<_>>().join(" ")
}

fn kind(timer: TimerRef) -> &'static str {
    match timer {
        TimerRef::Task(_) | TimerRef::Run(_) | TimerRef::Join(..) | TimerRef::Node(..) => {
            "deadline"
        }
        TimerRef::Timer(..) => "timer",
        TimerRef::Lease(_) => "lease",
    }
}

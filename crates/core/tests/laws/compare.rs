//! Holds the state against the model: every task, queue, count and list that can be seen.

use std::collections::BTreeSet;

use tenure_core::State;
use tenure_core::state::{Filter, Phase, StateCounts, TaskView};
use tenure_record::state::TaskState;
use tenure_record::time::{Clock, Timestamp};

use crate::model::{Model, Task};
use crate::world::{Look, QUEUES};

/// Says so if the two are not the same.
macro_rules! same {
    ($what:expr, $real:expr, $expected:expr) => {
        let (real, expected) = (&$real, &$expected);
        if real != expected {
            let what = $what;
            return Err(format!("{what} is {real:?}, but {expected:?} in the model"));
        }
    };
}

pub(crate) fn everything(state: &State, model: &Model) -> Result<(), String> {
    let mut tasks = model.tasks.iter();
    for view in state.facts().tasks() {
        let Some((id, task)) = tasks.next() else {
            return Err(format!("task {} is not in the model", view.id));
        };
        same!("the next task", view.id.0, *id);
        same_task(task, &view).map_err(|difference| format!("task {id}: {difference}"))?;
        let mut phase = model.phase(task);
        if phase.is_some() && model.is_paused(task.terms.queue.as_str(), model.clocks.wall) {
            phase = Some("paused");
        }
        same!("the phase", state.phase(view.id).map(Phase::as_str), phase);
    }
    if let Some((id, _)) = tasks.next() {
        return Err(format!("task {id} is in the model only"));
    }
    same!("the number of tasks", state.facts().task_count(), model.tasks.len() as u64);
    same!("the last LSN", state.last_lsn().0, model.lsn);
    let states = |queue: Option<&str>| {
        let of_queue = move |task: &&Task| queue.is_none_or(|q| task.terms.queue.as_str() == q);
        TaskState::ALL.map(|name| {
            model.tasks.values().filter(of_queue).filter(|task| task.state == name).count() as u64
        })
    };
    same!("the count by state", by_state(&state.counts()), states(None));
    same_queues(state, model, states)?;
    moments(state, model)
}

fn same_task(task: &Task, view: &TaskView<'_>) -> Result<(), String> {
    let terms = &task.terms;
    same!("the queue", **view.queue(), *terms.queue.as_str());
    same!("the state", view.state(), task.state);
    same!("the priority", view.priority(), task.priority);
    same!("the payload", *view.payload(), *terms.payload.as_bytes());
    let kept = view.shared_payload();
    same!(
        "the payload to keep",
        *kept.read().expect("the shelf gives what it took"),
        *terms.payload.as_bytes()
    );
    same!("its length", (kept.len(), view.payload_bytes()), {
        let bytes = terms.payload.as_bytes().len();
        (bytes, bytes)
    });
    same!("the output", *view.output(), task.output[..]);
    same!("attempt", view.attempt(), task.attempt);
    same!("failures", view.failures(), task.failures);
    same!("expiries", view.expiries(), task.expiries);
    same!("the budgets", view.budgets(), terms.budgets);
    same!("lease_ms", view.lease_ms(), terms.lease_ms.get());
    same!("cancel_requested", view.cancel_requested(), task.cancel_requested);
    let lease = view.lease();
    let lease = lease.as_ref().map(|l| (l.lease_id.0, &*l.worker, l.expires_at.0));
    let expected = task.lease.as_ref().map(|l| (task.last_lease, l.worker.as_str(), l.expires_at));
    same!("the lease", lease, expected);
    same!("the last lease", view.last_lease_id().0, task.last_lease);
    let waits = task.state == TaskState::Waiting;
    same!("not_before", view.not_before(), waits.then_some(Timestamp(task.not_before)));
    same!("created_at", view.created_at().0, task.created_at);
    same!("run_at", view.run_at(), task.run_at.map(Timestamp));
    same!("started_at", view.started_at(), task.started_at.map(Timestamp));
    same!("finished_at", view.finished_at(), task.finished_wall_at.map(Timestamp));
    same!("total_timeout_ms", view.total_timeout_ms(), terms.total_timeout_ms.map(|ms| ms.get()));
    let attempt_timeout_ms = terms.attempt_timeout_ms.map(|ms| ms.get());
    same!("attempt_timeout_ms", view.attempt_timeout_ms(), attempt_timeout_ms);
    let attempt_deadline = task.lease.as_ref().and_then(|lease| lease.attempt_deadline);
    same!("the attempt's deadline", view.attempt_deadline_at(), attempt_deadline.map(Timestamp));
    let name = terms.name.as_ref().map(|name| name.as_str());
    same!("the name", view.name().map(|name| &**name), name);
    let traceparent = terms.traceparent.as_ref().map(|text| text.as_str());
    let shown = view.traceparent();
    same!("traceparent", shown.as_deref(), traceparent);
    same!("holds its key", view.holds_key(), terms.key.is_some() && !task.key_is_lost);
    same!("deadline_at", view.deadline_at(), task.deadline_at.map(Timestamp));
    same!("revoke_at", view.revoke_at(), task.revoke_at.map(Timestamp));
    let backoff = view.backoff();
    let backoff_kind = backoff.kind.unwrap_or_default();
    same!("the backoff's kind", Some(backoff_kind), task.backoff().kind);
    let spans = |b: &tenure_record::terms::Backoff| (b.initial_ms, b.max_ms, b.jitter_permille);
    same!("the backoff", spans(&backoff), spans(&task.backoff()));
    same!("the key", view.key(), terms.key.as_ref().map(|key| key.as_str()));
    let tags = terms.tags.as_slice().iter().map(|(k, v)| (k.as_str(), v.as_str()));
    if !view.tags().iter().map(|(k, v)| (&**k, &**v)).eq(tags) {
        return Err(format!("the tags are {:?}", view.tags()));
    }
    let errors = task.errors.iter().map(|(code, message)| (code.as_str(), message.as_str()));
    if !view.errors().iter().map(|e| (&*e.code, &*e.message)).eq(errors) {
        return Err(format!("the errors are {:?}, but {:?}", view.errors(), task.errors));
    }
    let checkpoint = view.checkpoint().map(|bytes| bytes.to_vec());
    same!("the checkpoint", checkpoint, task.checkpoint.clone());
    same!("the last stale lease", view.stale_lease_id().0, task.stale_lease);
    same!("the dead letter", view.dead_letter().map(|id| id.0), task.dead_letter);
    same!("dead_letter_of", view.dead_letter_of().map(|id| id.0), task.dead_letter_of);
    same!("the last LSN", view.last_lsn().0, task.last_lsn);
    Ok(())
}

fn same_queues(
    state: &State,
    model: &Model,
    states: impl Fn(Option<&str>) -> [u64; 6],
) -> Result<(), String> {
    let mut names: BTreeSet<&str> = model.configured.keys().map(String::as_str).collect();
    names.extend(model.tasks.values().map(|task| task.terms.queue.as_str()));
    let queues = state.queues();
    let real: Vec<&str> = queues.iter().map(|queue| &*queue.name).collect();
    same!("the list of queues", real, names.iter().copied().collect::<Vec<_>>());
    for queue in &queues {
        let name = &*queue.name;
        same!(format!("the settings of {name}"), queue.settings, model.settings(name));
        same!(format!("the counts of {name}"), by_state(&queue.counts), states(Some(name)));
        let mut waiting = model
            .tasks
            .values()
            .filter(|task| task.terms.queue.as_str() == name && task.state == TaskState::Waiting);
        let oldest = waiting.next().map(|task| Timestamp(task.created_at));
        same!(format!("the oldest of {name}"), queue.oldest_waiting_at, oldest);
    }
    for name in QUEUES {
        same!(format!("whether {name} exists"), state.queue(name).is_some(), names.contains(name));
    }
    Ok(())
}

/// What is next, and what is ready.
pub(crate) fn moments(state: &State, model: &Model) -> Result<(), String> {
    for name in QUEUES {
        let mut tasks = model.tasks.values();
        let ready = tasks.any(|task| task.terms.queue.as_str() == name && model.is_ready(task));
        same!(format!("whether {name} has something ready"), state.has_ready(name), ready);
    }
    let tasks = || model.tasks.values();
    let live = || tasks().filter(|task| !task.state.is_terminal());
    let ends = tasks().filter_map(|task| Some(task.lease.as_ref()?.expires_at));
    let deadlines = live().filter_map(|task| task.deadline_at);
    let mut timers: Vec<_> = ends.chain(deadlines).map(Timestamp).collect();
    timers.sort_unstable();
    let kept: Vec<_> = state.timers(Clock::Log).map(|(at, _)| at).collect();
    same!("the moments of timers", kept, timers);
    for clock in [Clock::Log, Clock::Wall] {
        let starts = tasks().filter_map(|task| model.start(task, clock));
        // A queue that opens by itself is looked at again when it does.
        let openings = model.configured.values().map(|settings| settings.paused_until);
        let ahead = openings.filter(|at| clock == Clock::Wall && *at > model.clocks.wall);
        let next = starts.map(Timestamp).chain(ahead).min();
        same!("the next wakeup", state.next_wakeup(clock), next);
    }
    Ok(())
}

fn by_state(counts: &StateCounts) -> [u64; 6] {
    TaskState::ALL.map(|state| counts.of(state))
}

/// Turns the pages of a list to its end and compares it with a plain filter.
pub(crate) fn list(state: &State, model: &Model, look: &Look) -> Result<(), String> {
    let Look { queue, state: named, name, tag, worker, code, retrying, limit } = *look;
    let filter = Filter { queue, state: named, name, tag, worker, code, retrying, run: None };
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let page = state.list(&filter, before, limit);
        listed.extend(page.tasks.iter().map(|task| task.id.0));
        if page.tasks.len() > limit {
            return Err(format!("a page of {limit} has {} tasks", page.tasks.len()));
        }
        if page.next.is_some() && page.next >= before && before.is_some() {
            return Err("a list does not come to an end".to_owned());
        }
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    let fits = |task: &Task| {
        let lease = task.lease.as_ref();
        let mut tags = task.terms.tags.as_slice().iter();
        queue.is_none_or(|queue| task.terms.queue.as_str() == queue)
            && named.is_none_or(|named| task.state == named)
            && name
                .is_none_or(|name| task.terms.name.as_ref().is_some_and(|it| it.as_str() == name))
            && worker.is_none_or(|worker| lease.is_some_and(|lease| lease.worker == worker))
            && retrying.is_none_or(|wanted| wanted == (model.phase(task) == Some("retrying")))
            && code.is_none_or(|code| task.errors.last().is_some_and(|(last, _)| last == code))
            && tag.is_none_or(|(key, value)| {
                tags.any(|(k, v)| k.as_str() == key && v.as_str() == value)
            })
    };
    let expected: Vec<u64> =
        model.tasks.iter().rev().filter(|(_, task)| fits(task)).map(|(id, _)| *id).collect();
    same!(format!("the list of {look:?}"), listed, expected);
    Ok(())
}

//! A run's history: the decisions of each record about it, with what caused them, as JSON. Worked
//! out from records alone; the chain of records is walked by whoever has the log.

use std::sync::Arc;

use tenure_value::Value;

use crate::event::{
    ArtifactItem, BranchValue, Decision, Dispatched, EndScope, Event, Json, MergeBranches,
    MergeInto, NewToken, Record, Report, RunBegun, SetTimer, Spawned, Step, TimerFired,
    TokenUpdate,
};
use crate::id::{GroupId, Lsn, RunId};
use crate::name::Text;
use crate::time::{Clock, WallOffset};

/// What one record did to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// What happened: the event, and whom it came from, such as `{event, task_id, lease_id}`.
    pub cause: Value,
    /// The decisions about the run, in the order in which they were taken.
    pub decisions: Vec<Value>,
    /// The record before this one in the run's history.
    pub previous: Lsn,
}

/// What a record did to a run; nothing if it is about others.
#[must_use]
pub fn run_record(record: &Record<'_>, run: RunId) -> Option<RunRecord> {
    let (mut decisions, mut previous, mut cause) = (Vec::new(), Lsn::NONE, None);
    for (about, cascade) in cascades(&record.event) {
        for decision in cascade.iter().filter(|decision| decision.run_id == run) {
            previous = previous.max(decision.previous);
            decisions.push(shown_at(decision, record.now().offset()));
            cause.get_or_insert_with(|| about.clone());
        }
    }
    // One that is kept is part of the history too, though nothing was decided.
    if let Event::SignalReceived(item) = &record.event
        && item.run_id == run
    {
        previous = item.previous;
        cause.get_or_insert_with(|| signal(item));
    }
    if let Event::RunParked(item) = &record.event
        && item.run_id == run
    {
        previous = item.previous;
        let entries = vec![named("event", "RunParked"), named("reason", item.reason.as_str())];
        cause = Some(object(entries));
    }
    if let Event::RunUnparked(item) = &record.event
        && item.run_id == run
    {
        previous = item.previous;
        cause = Some(object(vec![named("event", "RunUnparked")]));
    }
    cause.map(|cause| RunRecord { cause, decisions, previous })
}

/// The cascades of an event, each with what caused it.
#[must_use]
pub fn cascades<'r, 'a>(event: &'r Event<'a>) -> Vec<(Value, &'r [Decision<'a>])> {
    let name = event.name();
    let plain = || object(vec![named("event", name)]);
    match event {
        Event::CancelRequested(item) => {
            vec![(task(name, item.about.task_id.0, item.lease_id.0), &item.cascade)]
        }
        Event::LeaseExpired(event) => {
            let leases = event.leases.iter();
            let shown = |item: &crate::event::Expired<'_>| {
                task(name, item.about.task_id.0, item.lease_id.0)
            };
            leases.map(|item| (shown(item), item.cascade.as_slice())).collect()
        }
        Event::ReportsApplied(event) => event.reports.iter().filter_map(of_report).collect(),
        Event::TimerFired(event) => of_timers(event),
        Event::RunStarted(event) => vec![(plain(), &event.cascade)],
        Event::RunsStarted(event) => {
            let started = || object(vec![named("event", "RunStarted")]);
            event.runs.iter().map(|run| (started(), run.cascade.as_slice())).collect()
        }
        Event::RunStartedBySignal(event) => {
            let signal_name = named("signal", event.signal.name.as_str());
            let started = object(vec![named("event", "RunStarted"), signal_name]);
            vec![(started, &event.start.cascade), (signal(&event.signal), &event.signal.cascade)]
        }
        Event::SignalReceived(item) => vec![(signal(item), &item.cascade)],
        Event::RunCancelRequested(event) => vec![(plain(), &event.cascade)],
        Event::DispatchContinued(event) => vec![(plain(), &event.cascade)],
        Event::EndContinued(event) => vec![(plain(), &event.cascade)],
        Event::TaskCreated(_)
        | Event::LeaseGranted(_)
        | Event::TaskRetried(_)
        | Event::QueueConfigured(_)
        | Event::TasksPurged(_)
        | Event::IdsSkipped(_)
        | Event::WorkflowRegistered(_)
        | Event::RunParked(_)
        | Event::RunUnparked(_)
        | Event::QueueDeleted(_)
        | Event::WorkflowDeleted(_) => Vec::new(),
    }
}

fn of_report<'r, 'a>(report: &'r Report<'a>) -> Option<(Value, &'r [Decision<'a>])> {
    let (about, lease, cascade) = match report {
        Report::TaskCompleted(item) => (&item.about, item.lease_id, &item.cascade),
        Report::TaskFailed(item) => (&item.about, item.lease_id, &item.cascade),
        Report::LeaseReleased(item) => (&item.about, item.lease_id, &item.cascade),
        Report::LeaseExtended(_) | Report::StaleReportRejected(_) => return None,
    };
    Some((task(report.name(), about.task_id.0, lease.0), cascade))
}

fn of_timers<'r, 'a>(event: &'r TimerFired<'a>) -> Vec<(Value, &'r [Decision<'a>])> {
    let fired = |what: &str, id: u64| {
        object(vec![named("event", "TimerFired"), named("what", what), number("of", id)])
    };
    let tasks = event.deadlines.iter();
    let tasks = tasks.map(|it| (fired("task", it.about.task_id.0), it.cascade.as_slice()));
    let runs = event.runs.iter().map(|it| (fired("run", it.run_id.0), it.cascade.as_slice()));
    let joins = event.joins.iter();
    let joins = joins.map(|it| (fired("join", it.group.0.into()), it.cascade.as_slice()));
    let nodes = event.nodes.iter();
    let nodes = nodes.map(|it| (fired("node", it.token.0.into()), it.cascade.as_slice()));
    let timers = event.timers.iter();
    let timers = timers.map(|it| (fired("timer", it.token.0.into()), it.cascade.as_slice()));
    tasks.chain(runs).chain(joins).chain(nodes).chain(timers).collect()
}

fn task(event: &str, task_id: u64, lease_id: u64) -> Value {
    let lease = (lease_id > 0).then(|| number("lease_id", lease_id));
    let entries = vec![named("event", event), number("task_id", task_id)];
    object(entries.into_iter().chain(lease).collect())
}

fn signal(item: &crate::event::SignalReceived<'_>) -> Value {
    object(vec![named("event", "SignalReceived"), named("signal", item.name.as_str())])
}

type Entry = (Arc<str>, Value);

fn object(entries: Vec<Entry>) -> Value {
    Value::map(entries)
}

fn named(name: &str, text: &str) -> Entry {
    (name.into(), Value::text(text))
}

fn number(name: &str, number: u64) -> Entry {
    (name.into(), Value::uint(number))
}

fn flag(name: &str, is_set: bool) -> Option<Entry> {
    is_set.then(|| (name.into(), Value::Bool(true)))
}

fn json(name: &str, json: &Option<Json>) -> Option<Entry> {
    json.as_ref().map(|json| (name.into(), json.0.clone()))
}

/// What a condition read, which is JSON already.
fn why(text: &Text<'_>) -> Option<Entry> {
    let read = Value::from_json(text.as_str().as_bytes()).ok()?;
    Some(("why".into(), read))
}

fn list<T>(name: &str, items: &[T], one: impl Fn(&T) -> Value) -> Entry {
    (name.into(), Value::list(items.iter().map(one).collect()))
}

/// A decision as an object, with the moment of a timer by the wall clock.
fn shown_at(decision: &Decision<'_>, offset: WallOffset) -> Value {
    if offset != WallOffset::ZERO
        && let Step::SetTimer(step) = &decision.step
        && step.clock == Clock::Log
    {
        let step = Step::SetTimer(SetTimer { at: offset.shown(step.at), ..step.clone() });
        return shown(&Decision { step, ..*decision });
    }
    shown(decision)
}

/// A decision as an object: its name, and what it says.
#[must_use]
pub fn shown(decision: &Decision<'_>) -> Value {
    let name = named("decision", decision.step.name());
    let run = number("run_id", decision.run_id.0);
    object([name, run].into_iter().chain(said(&decision.step)).collect())
}

fn said(step: &Step<'_>) -> Vec<Entry> {
    match step {
        Step::CreateTokens(step) => vec![list("tokens", &step.tokens, new_token)],
        Step::OpenGroup(step) => vec![
            number("group", step.group.0.into()),
            named("name", step.name.as_str()),
            number("origin", step.origin.0.into()),
            number("total", step.total.into()),
            number("need", step.need.into()),
            list("spawns", &step.spawns, spawned),
        ],
        Step::CreateFanInToken(step) => {
            vec![number("group", step.group.0.into()), number("token", step.token.0.into())]
        }
        Step::ActivateFanInToken(step) => {
            vec![number("group", step.group.0.into()), number("token", step.token.0.into())]
        }
        Step::UpdateTokenStates(step) => vec![list("tokens", &step.tokens, update)],
        Step::SettleBranch(step) => {
            let entries = vec![
                number("group", step.group.0.into()),
                number("index", step.index.into()),
                number("count", step.count.into()),
                named("outcome", step.outcome.as_str()),
                list("values", &step.values, branch_value),
            ];
            let rest = flag("rest", step.rest);
            entries.into_iter().chain(json("error", &step.error)).chain(rest).collect()
        }
        Step::MarkForDispatch(step) => vec![list("tokens", &step.tokens, dispatched)],
        Step::ApplyNodeOutput(step) => {
            let token = number("token", step.token.0.into());
            std::iter::once(token).chain(json("output", &step.output)).collect()
        }
        Step::SetContext(step) => vec![
            number("group", step.group.0.into()),
            number("index", step.index.into()),
            list("writes", &step.writes, |write| {
                let value = ("value".into(), write.value.0.clone());
                object(vec![named("path", write.path.as_str()), value])
            }),
        ],
        Step::MergeBranches(step) => merge_branches(step),
        Step::DropBranches(step) => {
            vec![number("group", step.group.0.into()), named("state", step.state.as_str())]
        }
        Step::CancelTokens(step) => {
            let tasks = step.tasks.iter().flat_map(|tasks| tasks.tasks.iter());
            let tasks = tasks.map(|task| Value::uint(task.task_id.0)).collect();
            let tokens = step.tokens.iter().map(|token| Value::uint(token.0.into())).collect();
            vec![("tokens".into(), Value::list(tokens)), ("tasks".into(), Value::list(tasks))]
        }
        Step::SetTimer(step) => vec![
            named("kind", step.kind.as_str()),
            number("token", step.token.0.into()),
            number("group", step.group.0.into()),
            number("at_ms", step.at.0),
        ],
        Step::StartChild(step) => {
            vec![number("token", step.token.0.into()), ("run".into(), begun(&step.run))]
        }
        Step::FinishRun(step) => {
            let state = named("state", step.state.as_str());
            let artifacts = (!step.artifacts.is_empty()).then(|| {
                list("artifacts", &step.artifacts, |it| {
                    let mut entries = artifact(&it.artifact);
                    entries[0] = named("name", it.name.as_str());
                    object(entries)
                })
            });
            let rest = [json("output", &step.output), json("error", &step.error), artifacts];
            std::iter::once(state).chain(rest.into_iter().flatten()).collect()
        }
        Step::StageArtifact(step) => {
            let token = number("token", step.token.0.into());
            std::iter::once(token).chain(artifact(&step.artifact)).collect()
        }
        Step::PromoteArtifacts(step) => vec![
            number("group", step.group.0.into()),
            list("branches", &step.branches, |index| Value::uint((*index).into())),
        ],
        Step::EndScope(step) => end_scope(step),
        Step::CloseScope(step) => {
            let group = number("group", step.group.0.into());
            let index = step.index.map(|index| number("index", index.into()));
            std::iter::once(group).chain(index).collect()
        }
        Step::TakeSignal(step) => {
            vec![number("token", step.token.0.into()), number("signal", step.signal.into())]
        }
    }
}

fn end_scope(step: &EndScope) -> Vec<Entry> {
    let group = number("group", step.group.0.into());
    let index = step.index.map(|index| number("index", index.into()));
    let is_root = step.group == GroupId::NONE;
    let state = is_root.then(|| named("state", step.state.as_str()));
    let rest = [index, state, json("error", &step.error)];
    std::iter::once(group).chain(rest.into_iter().flatten()).collect()
}

fn merge_branches(step: &MergeBranches<'_>) -> Vec<Entry> {
    let entries = vec![
        number("group", step.group.0.into()),
        number("arrived", step.arrived.into()),
        list("merges", &step.merges, merge_into),
    ];
    let promote = step.promote.map(|index| number("promote", index.into()));
    entries.into_iter().chain(promote).collect()
}

fn artifact(item: &ArtifactItem<'_>) -> Vec<Entry> {
    vec![
        named("name", item.name.as_str()),
        named("media_type", item.media_type.as_str()),
        number("bytes", item.bytes),
        named("sha256", &item.sha256.to_string()),
    ]
}

fn new_token(new: &NewToken<'_>) -> Value {
    let entries = vec![
        number("token", new.token.0.into()),
        number("node", new.node.into()),
        number("group", new.group.0.into()),
        number("index", new.index.into()),
        number("parent", new.parent.0.into()),
    ];
    let via = new.via.map(|via| number("via", via.into()));
    let rest = [via, json("error", &new.error), why(&new.why)];
    object(entries.into_iter().chain(rest.into_iter().flatten()).collect())
}

fn spawned(spawned: &Spawned<'_>) -> Value {
    let entries = vec![
        number("transition", spawned.transition.into()),
        number("node", spawned.node.into()),
        number("count", spawned.count.into()),
    ];
    object(entries.into_iter().chain(why(&spawned.why)).collect())
}

fn update(update: &TokenUpdate) -> Value {
    let entries =
        vec![number("token", update.token.0.into()), named("state", update.state.as_str())];
    let arrives = (!update.arrives.is_empty())
        .then(|| list("arrives", &update.arrives, |group| Value::uint(group.0.into())));
    object(entries.into_iter().chain(json("error", &update.error)).chain(arrives).collect())
}

fn branch_value(given: &BranchValue) -> Value {
    let value = json("value", &given.value);
    object(value.into_iter().chain(flag("is_output", given.is_output)).collect())
}

fn dispatched(item: &Dispatched<'_>) -> Value {
    let entries = vec![number("token", item.token.0.into()), named("state", item.state.as_str())];
    let task = item.task.as_ref().map(|task| number("task_id", task.task_id.0));
    let signal = item.signal.as_ref().map(|signal| named("signal", signal.as_str()));
    let correlation = item.correlation.as_ref().map(|text| named("correlation", text.as_str()));
    object(entries.into_iter().chain(task).chain(signal).chain(correlation).collect())
}

fn merge_into(into: &MergeInto<'_>) -> Value {
    object(vec![
        named("target", into.target.as_str()),
        named("strategy", into.strategy.as_str()),
        named("mode", into.mode.as_str()),
    ])
}

/// A run as it begins.
#[must_use]
pub fn begun(run: &RunBegun<'_>) -> Value {
    object(vec![
        number("run_id", run.run_id.0),
        named("workflow", run.workflow.as_str()),
        number("version", run.version.into()),
        ("input".into(), run.input.0.clone()),
        number("parent", run.parent.0),
    ])
}

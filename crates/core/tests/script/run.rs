//! What a story shows of runs: the decisions of a record in the order they were taken, and runs,
//! tokens and groups as they stand.

use std::fmt::Write as _;

use tenure_core::State;
use tenure_core::command::{Registered, Signaled, Started, SubmitOutcome};
use tenure_record::event::{
    Decision, Event, Json, NewToken, OpenGroup, Record, Report, SetTimer, SettleBranch, Step,
    TimerKind, TokenUpdate,
};
use tenure_record::id::{GroupId, RunId, TokenId};

use super::print::time;

/// More of a kind than this are told in one.
const SHOWN_MAX: usize = 6;

/// The decisions of a record, a line for each item that has some.
pub(crate) fn decisions(record: &Record<'_>, out: &mut String) {
    for cascade in cascades(&record.event) {
        for about in cascade.chunk_by(|a, b| a.run_id == b.run_id) {
            let steps: Vec<_> = about.iter().map(|decision| step(&decision.step)).collect();
            let _ = writeln!(out, "  run {}: {}", about[0].run_id, steps.join("; "));
        }
    }
}

/// The cascades of a record, in order.
pub(crate) fn cascades<'r, 'a>(event: &'r Event<'a>) -> Vec<&'r [Decision<'a>]> {
    match event {
        Event::LeaseExpired(event) => event.leases.iter().map(|it| &*it.cascade).collect(),
        Event::ReportsApplied(event) => event.reports.iter().map(of_report).collect(),
        Event::CancelRequested(item) => vec![&item.cascade],
        Event::TimerFired(event) => {
            let tasks = event.deadlines.iter().map(|item| &*item.cascade);
            let runs = event.runs.iter().map(|item| &*item.cascade);
            let joins = event.joins.iter().map(|item| &*item.cascade);
            let tokens = event.nodes.iter().chain(&event.timers).map(|item| &*item.cascade);
            tasks.chain(runs).chain(joins).chain(tokens).collect()
        }
        Event::RunStarted(event) => vec![&event.cascade],
        Event::RunsStarted(event) => event.runs.iter().map(|run| &*run.cascade).collect(),
        Event::RunStartedBySignal(event) => vec![&event.start.cascade],
        Event::SignalReceived(event) => vec![&event.cascade],
        Event::RunCancelRequested(event) => vec![&event.cascade],
        Event::DispatchContinued(event) => vec![&event.cascade],
        Event::EndContinued(event) => vec![&event.cascade],
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
        | Event::RunUnparked(_) => Vec::new(),
    }
}

fn of_report<'r, 'a>(report: &'r Report<'a>) -> &'r [Decision<'a>] {
    match report {
        Report::TaskCompleted(item) => &item.cascade,
        Report::TaskFailed(item) => &item.cascade,
        Report::LeaseReleased(item) => &item.cascade,
        Report::LeaseExtended(_) | Report::StaleReportRejected(_) => &[],
    }
}

fn many<T>(items: &[T], one: impl Fn(&T) -> String) -> String {
    if items.len() > SHOWN_MAX {
        let (first, last) = (&items[0], &items[items.len() - 1]);
        return format!("{} … {} ({})", one(first), one(last), items.len());
    }
    items.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn code(error: &Option<Json>) -> String {
    let error = error.as_ref().and_then(|error| error.0.as_map());
    let code = error.and_then(|error| error.get("code")?.as_text());
    code.map_or(String::new(), |code| format!(" {code}"))
}

fn scope(group: GroupId, index: u32) -> String {
    match group.is_some() {
        true => format!("(g{group},{index})"),
        false => "(root)".to_owned(),
    }
}

fn ending(group: GroupId, index: Option<u32>) -> String {
    match index {
        Some(index) => scope(group, index),
        None if group.is_some() => format!("(g{group})"),
        None => scope(group, 0),
    }
}

fn step(step: &Step<'_>) -> String {
    match step {
        Step::CreateTokens(step) => format!("CreateTokens {}", many(&step.tokens, new_token)),
        Step::OpenGroup(step) => open_group(step),
        Step::CreateFanInToken(step) => format!("CreateFanInToken g{} t{}", step.group, step.token),
        Step::ActivateFanInToken(step) => {
            format!("ActivateFanInToken g{} t{}", step.group, step.token)
        }
        Step::UpdateTokenStates(step) => many(&step.tokens, update),
        Step::SettleBranch(step) => settle(step),
        Step::MarkForDispatch(step) => {
            format!(
                "MarkForDispatch {}",
                many(&step.tokens, |item| match &item.task {
                    Some(task) => format!("t{} task {}", item.token, task.task_id),
                    None => format!("t{} {}", item.token, item.state),
                })
            )
        }
        Step::ApplyNodeOutput(step) => {
            let output = step.output.as_ref().map(|output| format!(" {}", output.0.to_json()));
            format!("ApplyNodeOutput t{}{}", step.token, output.unwrap_or_default())
        }
        Step::SetContext(step) => {
            let writes = many(&step.writes, |write| {
                format!("{} = {}", write.path.as_str(), write.value.0.to_json())
            });
            format!("SetContext {} {writes}", scope(step.group, step.index))
        }
        Step::MergeBranches(step) => {
            let into =
                many(&step.merges, |into| format!("{} -> {}", into.strategy, into.target.as_str()));
            let promote = step.promote.map(|index| format!("promote {index}"));
            format!(
                "MergeBranches g{} of {} {into}{}",
                step.group,
                step.arrived,
                promote.unwrap_or_default()
            )
        }
        Step::DropBranches(step) => format!("DropBranches g{} {}", step.group, step.state),
        Step::CancelTokens(step) => {
            let tasks = step.tasks.iter().flat_map(|tasks| tasks.tasks.iter());
            let tasks: Vec<_> = tasks.collect();
            let tokens: Vec<_> = step.tokens.iter().collect();
            let tokens = many(&tokens, |token| format!("t{token}"));
            match tasks.is_empty() {
                true => format!("CancelTokens {tokens}"),
                false => {
                    let tasks = many(&tasks, |task| task.task_id.to_string());
                    format!("CancelTokens {tokens} tasks {tasks}")
                }
            }
        }
        Step::EndScope(step) => {
            let at = ending(step.group, step.index);
            let is_root = !step.group.is_some();
            let state = if is_root { format!(" {}", step.state) } else { String::new() };
            format!("EndScope {at}{state}{}", code(&step.error))
        }
        Step::CloseScope(step) => format!("CloseScope {}", ending(step.group, step.index)),
        Step::SetTimer(step) => timer(step),
        Step::StartChild(step) => {
            let run = &step.run;
            format!("StartChild t{} run {} of {}", step.token, run.run_id, run.workflow.as_str())
        }
        Step::FinishRun(step) => {
            let output = step.output.as_ref().map(|output| format!(" {}", output.0.to_json()));
            let artifacts = step.artifacts.iter().map(|it| format!(" +{}", it.name.as_str()));
            let output = output.unwrap_or_default();
            let artifacts: String = artifacts.collect();
            format!("FinishRun {}{output}{}{artifacts}", step.state, code(&step.error))
        }
        Step::StageArtifact(step) => {
            let (name, bytes) = (step.artifact.name.as_str(), step.artifact.bytes);
            format!("StageArtifact t{} {name} {bytes} bytes", step.token)
        }
        Step::PromoteArtifacts(step) => {
            let branches = many(&step.branches, |index| index.to_string());
            format!("PromoteArtifacts g{} {branches}", step.group)
        }
        Step::TakeSignal(step) => format!("TakeSignal t{} signal {}", step.token, step.signal),
    }
}

fn new_token(new: &NewToken<'_>) -> String {
    let scope = scope(new.group, new.index);
    match new.why.as_str() {
        "" => format!("t{} {scope}", new.token),
        why => format!("t{} {scope} because {why}", new.token),
    }
}

fn open_group(step: &OpenGroup<'_>) -> String {
    format!("OpenGroup g{} {} n={} need={}", step.group, step.name.as_str(), step.total, step.need)
}

fn update(update: &TokenUpdate) -> String {
    let arrives = many(&update.arrives, |group| format!(" at g{group}"));
    format!("t{} {}{}{arrives}", update.token, update.state, code(&update.error))
}

fn settle(step: &SettleBranch) -> String {
    let last = (step.index + step.count).saturating_sub(1);
    let which = match step.count {
        count if step.rest => format!("{count} left"),
        1 => step.index.to_string(),
        _ => format!("{}..{last}", step.index),
    };
    format!("SettleBranch g{}[{which}] {}{}", step.group, step.outcome, code(&step.error))
}

fn timer(step: &SetTimer) -> String {
    let whose = match step.kind {
        TimerKind::Node | TimerKind::Wake => format!("t{}", step.token),
        TimerKind::Join => format!("g{}", step.group),
    };
    format!("SetTimer {whose} {} at {}", step.kind, time(step.at))
}

pub(crate) fn registered(registered: &Registered, out: &mut String) {
    let outcome = outcome(registered.outcome);
    let _ = writeln!(out, "ok: {} version {} {outcome}", registered.name, registered.version);
}

pub(crate) fn started(started: &Started, out: &mut String) {
    let _ = writeln!(out, "ok: run {} {}", started.run_id, outcome(started.outcome));
}

fn outcome(outcome: SubmitOutcome) -> &'static str {
    match outcome {
        SubmitOutcome::Created => "created",
        SubmitOutcome::Existed => "existed",
    }
}

pub(crate) fn signaled(signaled: Signaled, out: &mut String) {
    let _ = match signaled {
        Signaled::Given(token) => writeln!(out, "ok: token {token} got it"),
        Signaled::Kept => writeln!(out, "ok: it is kept"),
        Signaled::Known => writeln!(out, "ok: it came before"),
    };
}

/// A run as it is read.
pub(crate) fn run(state: &State, id: RunId, out: &mut String) {
    let Some(run) = state.run(id) else { return out.push_str("no such run\n") };
    let _ = write!(out, "run {id} {} v{}: {}", run.workflow(), run.version(), run.state());
    let _ = write!(out, ", context {}", run.context().to_json());
    if let Some(output) = run.output() {
        let _ = write!(out, ", output {}", output.to_json());
    }
    if let Some(error) = run.error() {
        let _ = write!(out, ", error {}", error.to_json());
    }
    if let Some((parent, token)) = run.parent() {
        let _ = write!(out, ", child of run {parent} token {token}");
    }
    out.push('\n');
}

/// A run's tokens as they are listed.
pub(crate) fn tokens(state: &State, id: RunId, out: &mut String) {
    let Some(run) = state.run(id) else { return out.push_str("no such run\n") };
    for token in run.tokens(TokenId(1)) {
        let _ = write!(out, "t{} {} {}: {}", token.id, token.node(), token.path(), token.state());
        if let Some(parent) = token.parent() {
            let _ = write!(out, ", from t{parent}");
        }
        if let Some(task) = token.task_id() {
            let _ = write!(out, ", task {task}");
        }
        if let Some(child) = token.child() {
            let _ = write!(out, ", run {child}");
        }
        out.push('\n');
    }
    for group in run.groups() {
        let [open, arrived, failed, canceled, timed_out, ended] = group.counts();
        let _ = writeln!(
            out,
            "g{} {} {}: {}, {open} open, {arrived} arrived, {failed} failed, {canceled} canceled, \
             {timed_out} timed out, {ended} ended",
            group.id,
            group.name(),
            group.path(),
            group.state()
        );
    }
}

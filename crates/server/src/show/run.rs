//! Runs, their tokens and history, and the outcomes of signals.

use tenure_api as api;
use tenure_coordinator::limits::HISTORY_BYTES;
use tenure_coordinator::request::{ListTokens, SignaledRun};
use tenure_coordinator::{EndingInfo, Redecided, RunHistory, RunInfo, RunStep, TokenInfo};
use tenure_core::command::{Signaled, SubmitOutcome};
use tenure_core::redecide::Pair;
use tenure_record::id::{RunId, TokenId};

use super::{json, maybe_json, tags, text, time};
use crate::admission::response_budget;
use crate::app::App;
use crate::problem::Problem;
use crate::wire::list;
use crate::wire::page::{cut_tokens, of_history};

/// A run.
pub(crate) fn run(run: &RunInfo) -> api::Run {
    let (tokens, live_tokens) = run.tokens;
    api::Run {
        id: run.id.0,
        workflow: run.workflow.to_string(),
        version: run.version,
        state: run.state.into(),
        input: json(&run.input),
        context: json(&run.context),
        output: maybe_json(run.output.as_ref()),
        error: maybe_json(run.error.as_ref()),
        started_at: time(run.started_at),
        finished_at: run.finished_at.map(time),
        deadline_at: run.deadline_at.map(time),
        parent: run.parent.map(|(run, token)| api::Parent { run_id: run.0, token: token.0 }),
        root: run.root.0,
        ending: run.ending.as_ref().map(ending),
        parked: run
            .parked
            .as_ref()
            .map(|parked| api::Parking { reason: parked.reason.to_string(), at: time(parked.at) }),
        key: text(run.key.as_ref()),
        tags: tags(&run.tags),
        tokens: tokens as u64,
        live_tokens,
        kept_signals: run.kept_signals as u64,
    }
}

fn ending(ending: &EndingInfo) -> api::Ending {
    api::Ending {
        state: ending.state.as_str().into(),
        error: maybe_json(ending.error.as_ref()),
        since: time(ending.since),
    }
}

fn token(token: &TokenInfo) -> api::Token {
    let signal = token.signal.as_ref();
    api::Token {
        id: token.id.0,
        node: token.node.to_string(),
        path: token.path.clone(),
        parent: token.parent.map(|parent| parent.0),
        state: token.state.into(),
        via: text(token.via.as_ref()),
        group: token.branch.map(|(group, ..)| group.0),
        branch_index: token.branch.map(|(_, index, _)| index),
        branch_total: token.branch.map(|(.., total)| total),
        task_id: token.task_id.map(|task| task.0),
        child_run_id: token.child.map(|run| run.0),
        signal: signal.map(|(name, correlation)| api::SignalWait {
            name: name.clone(),
            correlation: correlation.clone(),
        }),
        wakes_at: token.wakes_at.map(time),
        deadline_at: token.deadline_at.map(time),
        error: maybe_json(token.error.as_ref()),
    }
}

/// A page of a run's history, which is read from the log's files.
pub(crate) async fn read_history(
    app: &App,
    run_id: RunId,
    page: api::PageQuery,
) -> Result<api::History<api::RunStep>, Problem> {
    let limit = list::limit(page.limit)?;
    let tenure = app.tenure.clone();
    response_budget::reserve(HISTORY_BYTES).await?;
    let whole = tokio::task::spawn_blocking(move || tenure.run_history(run_id)).await;
    let whole = whole.map_err(|_| Problem::stopping())??;
    let (steps, next_cursor) =
        of_history(&whole.steps, |step| step.lsn.0, page.cursor.as_deref(), limit)?;
    Ok(history(steps, next_cursor, &whole))
}

/// Tokens of a run, and where the next page continues.
pub(crate) async fn tokens(
    app: &App,
    run_id: RunId,
    page: api::PageQuery,
) -> Result<api::Page<api::Token>, Problem> {
    let after = list::cursor(page.cursor.as_deref())?.map_or(TokenId::NONE, TokenId);
    let request = ListTokens { run_id, after, limit: list::limit(page.limit)? };
    let found = cut_tokens(app.ask(request).await?);
    let next_cursor = found.next.map(|id| id.to_string());
    Ok(api::Page { items: found.tokens.iter().map(token).collect(), next_cursor })
}

/// Steps of a run's history, and where the next page continues.
pub(crate) fn history(
    steps: &[RunStep],
    next_cursor: Option<String>,
    whole: &RunHistory,
) -> api::History<api::RunStep> {
    let step = |step: &RunStep| api::RunStep {
        lsn: step.lsn.0,
        at: time(step.at),
        cause: json(&step.cause),
        decisions: step.decisions.iter().map(json).collect(),
    };
    api::History {
        items: steps.iter().map(step).collect(),
        next_cursor,
        truncated_before: whole.truncated_before.map(|lsn| lsn.0),
    }
}

/// The outcome of a signal.
pub(crate) fn signaled(signal: String, found: SignaledRun) -> api::Signaled {
    let SignaledRun { run_id, outcome, signaled } = found;
    let (became, token) = match signaled {
        Signaled::Given(token) => (api::SignalOutcome::Given, Some(token.0)),
        Signaled::Kept => (api::SignalOutcome::Kept, None),
        Signaled::Known => (api::SignalOutcome::Known, None),
    };
    let started = outcome == SubmitOutcome::Created;
    api::Signaled { run_id: run_id.0, signal, outcome: became, token, started }
}

/// What was decided in a record of a run, and what the present rules decide.
pub(crate) fn redecided(run_id: RunId, found: &Redecided) -> api::Redecided {
    let pair = |pair: &Pair| api::DecisionPair {
        same: pair.is_same,
        recorded: maybe_json(pair.recorded.as_ref()),
        decided: maybe_json(pair.decided.as_ref()),
    };
    api::Redecided {
        run_id: run_id.0,
        lsn: found.lsn.0,
        at: time(found.at),
        same: found.is_same(),
        cause: json(&found.cause),
        decisions: found.pairs.iter().map(pair).collect(),
        refused: found.refused.as_ref().map(|rejection| api::Refusal {
            code: rejection.code().to_string(),
            detail: rejection.to_string(),
        }),
    }
}

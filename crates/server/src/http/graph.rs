//! The graph of a run: nodes and edges with positions, states and counts.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use tenure_coordinator::request::{GetRun, GetWorkflow, ListTokens};
use tenure_coordinator::{Refusal, TokenInfo};
use tenure_core::Rejection;
use tenure_core::limits::LIST_ITEMS_MAX;
use tenure_graph::{Graph, Tally, Token};
use tenure_record::id::{RunId, TokenId};

use super::{Path, json, number};
use crate::admission::response_budget;
use crate::app::App;
use crate::limits::{GRAPH_BYTES, GRAPH_TOKENS_MAX};
use crate::problem::Problem;

#[utoipa::path(get, path = "/v1/runs/{id}/graph", tag = "runs", summary = "The graph of a run: nodes and edges with positions, states and counts", params(("id" = u64, Path)), responses((status = 200, description = "The graph of the run's version, with its tokens counted", body = Graph), (status = "default", description = "A refusal", body = tenure_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let run_id = RunId(number(&id)?);
    response_budget::reserve(GRAPH_BYTES).await?;
    // The responses are not sent on, so they take no further room.
    let run = app.tenure.ask(GetRun { run_id, wait_ms: 0 }).await?;
    let version = Some(run.version);
    let workflow = app.tenure.ask(GetWorkflow { name: run.workflow, version }).await?;
    if let Some(fault) = workflow.faults.first() {
        let (name, message) = (workflow.name, fault.to_string());
        let broken = Rejection::WorkflowBroken { name, version: run.version, message };
        return Err(Refusal::from(broken).into());
    }
    let mut tally = Tally::new(workflow.definition);
    let is_complete = count(&app, run_id, &mut tally).await?;
    // A large graph takes its time, so it is laid out beside other requests.
    let graph = tokio::task::spawn_blocking(move || Graph::of_tally(tally, Vec::new())).await;
    let graph = graph.map_err(|_| Problem::stopping())?;
    Ok(json(&Graph { is_complete, ..graph }))
}

/// Counts the tokens of a run up to the bound, and says whether these are all.
async fn count(app: &App, run_id: RunId, tally: &mut Tally) -> Result<bool, Problem> {
    let mut after = TokenId::NONE;
    for _ in 0..GRAPH_TOKENS_MAX / LIST_ITEMS_MAX {
        let request = ListTokens { run_id, after, limit: LIST_ITEMS_MAX };
        let page = app.tenure.ask(request).await?;
        page.tokens.iter().for_each(|token| tally.add(counted(token)));
        match page.next {
            Some(next) => after = next,
            None => return Ok(true),
        }
    }
    Ok(false)
}

fn counted(token: &TokenInfo) -> Token<'_> {
    let error = token.error.as_ref().and_then(|error| error.as_map()?.get("code")?.as_text());
    Token {
        id: token.id.0,
        parent: token.parent.map(|parent| parent.0),
        node: &token.node,
        state: token.state,
        via: token.via.as_deref(),
        path: &token.path,
        branch_total: token.branch.map(|(.., total)| total),
        error,
    }
}

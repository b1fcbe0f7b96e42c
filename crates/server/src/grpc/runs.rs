//! Runs of workflows: start, look at, list, cancel, unpark, signal, decide again.

use tenure_coordinator::RunInfo;
use tenure_coordinator::limits::HISTORY_BYTES;
use tenure_coordinator::request::{
    CancelRun, FindRun, GetRun, ListRuns, ListTokens, SignaledRun, UnparkRun,
};
use tenure_core::command::{StartRuns, SubmitOutcome};
use tenure_proto::v1;
use tenure_record::id::{Lsn, RunId, TokenId};
use tenure_record::name::TaskKey;
use tonic::{Request, Response, Status};

use super::parse_run::Signal;
use super::{Door, Outcome, parse, parse_run, show_run};
use crate::admission::response_budget;
use crate::problem::Problem;
use crate::redecide::redecide;
use crate::wire::{list, page};

#[tonic::async_trait]
impl v1::runs_server::Runs for Door {
    async fn start(&self, request: Request<v1::StartRunRequest>) -> Outcome<v1::StartRunResponse> {
        let started = self.app.ask(parse_run::start(request.into_inner())?).await?;
        let existed = started.outcome == SubmitOutcome::Existed;
        let run = Some(show_run::run(&started.run));
        Ok(Response::new(v1::StartRunResponse { run, existed }))
    }

    async fn start_batch(
        &self,
        request: Request<v1::StartRunBatchRequest>,
    ) -> Outcome<v1::StartRunBatchResponse> {
        let runs = parse_run::start_batch(request.into_inner())?;
        let started = self.app.ask(StartRuns { runs }).await?;
        let ids = started.iter().map(|started| started.run_id.0).collect();
        Ok(Response::new(v1::StartRunBatchResponse { ids }))
    }

    async fn get(&self, request: Request<v1::GetRunRequest>) -> Outcome<v1::Run> {
        let v1::GetRunRequest { run_id, wait_ms, by_key } = request.into_inner();
        let (run_id, wait_ms) = (self.meant(run_id, by_key).await?, parse::wait(wait_ms)?);
        self.one_run(GetRun { run_id, wait_ms }).await
    }

    async fn list(&self, request: Request<v1::ListRunsRequest>) -> Outcome<v1::ListRunsResponse> {
        let filter = parse_run::runs(&request.into_inner())?;
        let runs = page::cut_runs(self.app.ask(ListRuns(filter)).await?);
        Ok(Response::new(v1::ListRunsResponse {
            runs: runs.runs.iter().map(show_run::run).collect(),
            next_cursor: runs.next.map_or_else(String::new, |id| id.to_string()),
        }))
    }

    async fn list_tokens(
        &self,
        request: Request<v1::ListTokensRequest>,
    ) -> Outcome<v1::ListTokensResponse> {
        let v1::ListTokensRequest { run_id, limit, cursor, by_key } = request.into_inner();
        let run_id = self.meant(run_id, by_key).await?;
        let limit = list::limit(limit.map(|limit| limit as usize))?;
        let after = list::cursor(parse::given(&cursor))?.map_or(TokenId::NONE, TokenId);
        let tokens = self.app.ask(ListTokens { run_id, after, limit }).await?;
        let tokens = page::cut_tokens(tokens);
        let next_cursor = tokens.next.map_or_else(String::new, |id| id.to_string());
        let tokens = tokens.tokens.into_iter().map(show_run::token).collect();
        Ok(Response::new(v1::ListTokensResponse { tokens, next_cursor }))
    }

    async fn history(
        &self,
        request: Request<v1::RunHistoryRequest>,
    ) -> Outcome<v1::RunHistoryResponse> {
        let v1::RunHistoryRequest { run_id, limit, cursor, by_key } = request.into_inner();
        let run_id = self.meant(run_id, by_key).await?;
        let limit = list::limit(limit.map(|limit| limit as usize))?;
        let tenure = self.app.tenure.clone();
        response_budget::reserve(HISTORY_BYTES).await?;
        // It reads files.
        let history = tokio::task::spawn_blocking(move || tenure.run_history(run_id)).await;
        let history = history.map_err(|_| Problem::stopping())?.map_err(Problem::from)?;
        let (steps, next) =
            page::of_history(&history.steps, |step| step.lsn.0, parse::given(&cursor), limit)?;
        let next_cursor = next.unwrap_or_default();
        Ok(Response::new(v1::RunHistoryResponse {
            next_cursor,
            ..show_run::history(steps, history.truncated_before)
        }))
    }

    async fn cancel(&self, request: Request<v1::CancelRunRequest>) -> Outcome<v1::Run> {
        let v1::CancelRunRequest { run_id, by_key } = request.into_inner();
        let run_id = self.meant(run_id, by_key).await?;
        self.one_run(CancelRun(run_id)).await
    }

    async fn unpark(&self, request: Request<v1::UnparkRunRequest>) -> Outcome<v1::Run> {
        let v1::UnparkRunRequest { run_id, by_key } = request.into_inner();
        let run_id = self.meant(run_id, by_key).await?;
        self.one_run(UnparkRun(run_id)).await
    }

    async fn signal(&self, request: Request<v1::SignalRequest>) -> Outcome<v1::SignalResponse> {
        let request = request.into_inner();
        let name = request.name.clone();
        let SignaledRun { run_id, outcome, signaled } = match parse_run::signal(request)? {
            Signal::ByKey(signal) => self.app.ask(signal).await?,
            Signal::Run(signal) => {
                let (run_id, outcome) = (signal.run_id, SubmitOutcome::Existed);
                SignaledRun { run_id, outcome, signaled: self.app.ask(signal).await? }
            }
        };
        Ok(Response::new(show_run::signaled(run_id, name, outcome, signaled)))
    }

    async fn redecide(
        &self,
        request: Request<v1::RedecideRequest>,
    ) -> Outcome<v1::RedecideResponse> {
        let v1::RedecideRequest { run_id, lsn, by_key } = request.into_inner();
        let run_id = self.meant(run_id, by_key).await?;
        let found = redecide(&self.app, run_id, Lsn(lsn)).await?;
        Ok(Response::new(show_run::redecided(run_id, &found)))
    }
}

impl Door {
    /// The run that a request is about: by its number, or by its key.
    async fn meant(&self, run_id: u64, by_key: Option<v1::RunKey>) -> Result<RunId, Problem> {
        let Some(v1::RunKey { workflow, key }) = by_key else { return Ok(RunId(run_id)) };
        if run_id > 0 {
            return Err(Problem::invalid("run_id and by_key are both given; keep one"));
        }
        let find = FindRun { workflow: workflow.into(), key: TaskKey::parse(&key)? };
        self.app.ask(find).await
    }

    /// Serves a request whose response is a run.
    async fn one_run<R>(&self, request: R) -> Result<Response<v1::Run>, Status>
    where
        R: tenure_coordinator::Request<Response = Box<RunInfo>>,
    {
        Ok(Response::new(show_run::run(&*self.app.ask(request).await?)))
    }
}

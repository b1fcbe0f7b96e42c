//! Runs of workflows: start, look at, list, cancel, unpark, signal, decide again.

use tenure_api::{Page, PageQuery, RunRef};
use tenure_coordinator::RunInfo;
use tenure_coordinator::request::{CancelRun, FindRun, GetRun, ListRuns, SignaledRun, UnparkRun};
use tenure_core::command::SubmitOutcome;
use tenure_proto::{run_ref, v1};
use tenure_record::id::{Lsn, RunId};
use tenure_record::name::TaskKey;
use tonic::{Request, Response, Status};

use super::{Door, Outcome};
use crate::problem::Problem;
use crate::redecide::redecide;
use crate::show;
use crate::wire::flow::{self, SignalCommand};
use crate::wire::{page, terms};

#[tonic::async_trait]
impl v1::runs_server::Runs for Door {
    async fn start(&self, request: Request<v1::StartRunRequest>) -> Outcome<v1::StartRunResponse> {
        let (workflow, run) = request.into_inner().into();
        let started = self.app.ask(flow::start(&workflow, run)?).await?;
        let existed = started.outcome == SubmitOutcome::Existed;
        let run = Some(show::run::run(&started.run).into());
        Ok(Response::new(v1::StartRunResponse { run, existed }))
    }

    async fn start_batch(
        &self,
        request: Request<v1::StartRunBatchRequest>,
    ) -> Outcome<v1::StartRunBatchResponse> {
        let v1::StartRunBatchRequest { workflow, runs } = request.into_inner();
        let start = flow::start_batch(&workflow, runs.into_iter().map(Into::into))?;
        let started = self.app.ask(start).await?;
        let ids = started.iter().map(|started| started.run_id.0).collect();
        Ok(Response::new(v1::StartRunBatchResponse { ids }))
    }

    async fn get(&self, request: Request<v1::GetRunRequest>) -> Outcome<v1::Run> {
        let v1::GetRunRequest { run_id, wait_ms, by_key } = request.into_inner();
        let (run_id, wait_ms) = (self.meant(run_id, by_key).await?, terms::wait(Some(wait_ms))?);
        self.one_run(GetRun { run_id, wait_ms }).await
    }

    async fn list(&self, request: Request<v1::ListRunsRequest>) -> Outcome<v1::ListRunsResponse> {
        let filter = flow::filter(request.into_inner().into())?;
        let runs = page::cut_runs(self.app.ask(ListRuns(filter)).await?);
        let next_cursor = runs.next.map(|id| id.to_string());
        let items = runs.runs.iter().map(show::run::run).collect();
        Ok(Response::new(Page { items, next_cursor }.into()))
    }

    async fn list_tokens(
        &self,
        request: Request<v1::ListTokensRequest>,
    ) -> Outcome<v1::ListTokensResponse> {
        let v1::ListTokensRequest { run_id, limit, cursor, by_key } = request.into_inner();
        let run_id = self.meant(run_id, by_key).await?;
        let tokens = show::run::tokens(&self.app, run_id, query(limit, cursor)).await?;
        Ok(Response::new(tokens.into()))
    }

    async fn history(
        &self,
        request: Request<v1::RunHistoryRequest>,
    ) -> Outcome<v1::RunHistoryResponse> {
        let v1::RunHistoryRequest { run_id, limit, cursor, by_key } = request.into_inner();
        let run_id = self.meant(run_id, by_key).await?;
        let history = show::run::read_history(&self.app, run_id, query(limit, cursor)).await?;
        Ok(Response::new(history.into()))
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
        let (run, name, signal) = request.into_inner().try_into().map_err(Problem::from)?;
        let signaled = match flow::signal(run, &name, signal)? {
            SignalCommand::ByKey(signal) => self.app.ask(signal).await?,
            SignalCommand::Run(signal) => {
                let (run_id, outcome) = (signal.run_id, SubmitOutcome::Existed);
                SignaledRun { run_id, outcome, signaled: self.app.ask(signal).await? }
            }
        };
        Ok(Response::new(show::run::signaled(name, signaled).into()))
    }

    async fn redecide(
        &self,
        request: Request<v1::RedecideRequest>,
    ) -> Outcome<v1::RedecideResponse> {
        let v1::RedecideRequest { run_id, lsn, by_key } = request.into_inner();
        let run_id = self.meant(run_id, by_key).await?;
        let found = redecide(&self.app, run_id, Lsn(lsn)).await?;
        Ok(Response::new(show::run::redecided(run_id, &found).into()))
    }
}

/// Which page of a list.
pub(super) fn query(limit: Option<u32>, cursor: String) -> PageQuery {
    PageQuery { limit, cursor: Some(cursor).filter(|cursor| !cursor.is_empty()) }
}

impl Door {
    /// The run that a request is about: by its id, or by its key.
    async fn meant(&self, run_id: u64, by_key: Option<v1::RunKey>) -> Result<RunId, Problem> {
        match run_ref(run_id, by_key)? {
            RunRef::Id(run_id) => Ok(RunId(run_id)),
            RunRef::Key { workflow, key } => {
                let find = FindRun { workflow: workflow.into(), key: TaskKey::parse(&key)? };
                self.app.ask(find).await
            }
        }
    }

    /// Serves a request whose response is a run.
    async fn one_run<R>(&self, request: R) -> Result<Response<v1::Run>, Status>
    where
        R: tenure_coordinator::Request<Response = Box<RunInfo>>,
    {
        Ok(Response::new(show::run::run(&*self.app.ask(request).await?).into()))
    }
}

//! Runs of workflows: start, look at, list, cancel, unpark, signal, decide again.

use tenure_coordinator::limits::HISTORY_BYTES;
use tenure_coordinator::{Answer, Ask, Query};
use tenure_core::command::{Command, StartRuns, SubmitOutcome};
use tenure_proto::v1;
use tenure_record::id::{Lsn, RunId, TokenId};
use tenure_record::name::TaskKey;
use tonic::{Request, Response, Status};

use super::{Door, Outcome, parse, parse_run, show_run, unexpected};
use crate::answers;
use crate::problem::Problem;
use crate::redecide::redecide;
use crate::wire::{list, page};

#[tonic::async_trait]
impl v1::runs_server::Runs for Door {
    async fn start(&self, request: Request<v1::StartRunRequest>) -> Outcome<v1::StartRunResponse> {
        let start = Ask::StartRun(parse_run::start(request.into_inner())?);
        let Answer::Began(outcome, run) = self.ask(start).await? else { return unexpected() };
        let existed = outcome == SubmitOutcome::Existed;
        Ok(Response::new(v1::StartRunResponse { run: Some(show_run::run(&run)), existed }))
    }

    async fn start_batch(
        &self,
        request: Request<v1::StartRunBatchRequest>,
    ) -> Outcome<v1::StartRunBatchResponse> {
        let runs = parse_run::start_batch(request.into_inner())?;
        let start = Ask::Command(Command::StartRuns(StartRuns { runs }));
        let Answer::StartedMany(started) = self.ask(start).await? else { return unexpected() };
        let ids = started.iter().map(|started| started.run_id.0).collect();
        Ok(Response::new(v1::StartRunBatchResponse { ids }))
    }

    async fn get(&self, request: Request<v1::GetRunRequest>) -> Outcome<v1::Run> {
        let v1::GetRunRequest { run_id, wait_ms, by_key } = request.into_inner();
        let (run_id, wait_ms) = (self.meant(run_id, by_key).await?, parse::wait(wait_ms)?);
        self.one_run(Ask::Query(Query::RunEnd { run_id, wait_ms })).await
    }

    async fn list(&self, request: Request<v1::ListRunsRequest>) -> Outcome<v1::ListRunsResponse> {
        let filter = parse_run::runs(&request.into_inner())?;
        let Answer::Runs(runs) = self.ask(Ask::Query(Query::Runs(filter))).await? else {
            return unexpected();
        };
        let runs = page::cut_runs(runs);
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
        let query = Ask::Query(Query::Tokens { run_id, after, limit });
        let Answer::Tokens(tokens) = self.ask(query).await? else { return unexpected() };
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
        answers::reserve(HISTORY_BYTES).await?;
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
        self.one_run(Ask::ChangeRun { command: Command::CancelRun(run_id), run_id }).await
    }

    async fn unpark(&self, request: Request<v1::UnparkRunRequest>) -> Outcome<v1::Run> {
        let v1::UnparkRunRequest { run_id, by_key } = request.into_inner();
        let run_id = self.meant(run_id, by_key).await?;
        self.one_run(Ask::ChangeRun { command: Command::UnparkRun(run_id), run_id }).await
    }

    async fn signal(&self, request: Request<v1::SignalRequest>) -> Outcome<v1::SignalResponse> {
        let request = request.into_inner();
        let run_id = request.run_id;
        let signal = parse_run::signal(request)?;
        let answer = self.ask(Ask::Command(signal)).await?;
        if let Answer::SignaledByKey(run_id, outcome, signaled) = answer {
            return Ok(Response::new(show_run::signaled(run_id, outcome, signaled)));
        }
        let Answer::Signaled(signaled) = answer else { return unexpected() };
        let outcome = SubmitOutcome::Existed;
        Ok(Response::new(show_run::signaled(RunId(run_id), outcome, signaled)))
    }

    async fn redecide(
        &self,
        request: Request<v1::RedecideRequest>,
    ) -> Outcome<v1::RedecideResponse> {
        let v1::RedecideRequest { run_id, lsn, by_key } = request.into_inner();
        let run_id = self.meant(run_id, by_key).await?;
        let found = redecide(&self.app, run_id, Lsn(lsn)).await?;
        Ok(Response::new(show_run::redecided(&found)))
    }
}

impl Door {
    /// The run that a request is about: by its number, or by its key.
    async fn meant(&self, run_id: u64, by_key: Option<v1::RunKey>) -> Result<RunId, Problem> {
        let Some(v1::RunKey { workflow, key }) = by_key else { return Ok(RunId(run_id)) };
        if run_id > 0 {
            return Err(Problem::invalid("run_id and by_key are both given; keep one"));
        }
        let query = Query::RunWithKey { workflow: workflow.into(), key: TaskKey::parse(&key)? };
        let Answer::RunWithKey(run_id) = self.ask(Ask::Query(query)).await? else {
            unreachable!("every ask has its own kind of answer")
        };
        Ok(run_id)
    }

    /// Asks for something that is answered with a run.
    async fn one_run(&self, ask: Ask) -> Result<Response<v1::Run>, Status> {
        let Answer::Run(run) = self.ask(ask).await? else { return unexpected() };
        Ok(Response::new(show_run::run(&run)))
    }
}

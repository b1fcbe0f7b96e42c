//! The client's verbs for workflows and runs.

use std::time::Duration;

use tenure_code::Code;
use tenure_proto::v1;

use crate::client::{Client, PAGE_ITEMS_MAX, WAIT_MAX};
use crate::error::Error;
use crate::new_run::{Definition, NewRun, RunRef, Signal};
use crate::retry::{Idempotency, retry};

impl Client {
    /// Registers a definition: a new version, unless the newest says the same. A faulty one is
    /// refused; [`Error::faults`] has what is wrong with it.
    pub async fn put_workflow(
        &self,
        definition: Definition,
    ) -> Result<v1::PutWorkflowResponse, Error> {
        let put = || {
            let (request, mut workflows) = (definition.wire.clone(), self.workflows_rpc());
            async move { workflows.put(request).await }
        };
        Ok(retry(Idempotency::Idempotent, put).await?.into_inner())
    }

    /// A workflow with its definition as JSON; the newest version if none is given.
    pub async fn workflow(&self, name: &str, version: Option<u32>) -> Result<v1::Workflow, Error> {
        let get = || {
            let (name, mut workflows) = (name.to_owned(), self.workflows_rpc());
            async move { workflows.get(v1::GetWorkflowRequest { name, version }).await }
        };
        Ok(retry(Idempotency::Idempotent, get).await?.into_inner())
    }

    /// The newest version of each workflow, by name, without the definitions.
    pub async fn list_workflows(
        &self,
        list: v1::ListWorkflowsRequest,
    ) -> Result<v1::ListWorkflowsResponse, Error> {
        let list = || {
            let (list, mut workflows) = (list.clone(), self.workflows_rpc());
            async move { workflows.list(list).await }
        };
        Ok(retry(Idempotency::Idempotent, list).await?.into_inner())
    }

    /// Deletes a workflow that no run and no other definition needs: one version, or all of them.
    pub async fn delete_workflow(&self, name: &str, version: Option<u32>) -> Result<(), Error> {
        let delete = || {
            let (name, mut workflows) = (name.to_owned(), self.workflows_rpc());
            async move { workflows.delete(v1::DeleteWorkflowRequest { name, version }).await }
        };
        retry(Idempotency::NotIdempotent, delete).await?;
        Ok(())
    }

    /// Begins runs of one workflow, all or none; their ids come in the same order. The workflow that
    /// each of them names has to be this one.
    pub async fn start_runs(
        &self,
        workflow: &str,
        runs: impl IntoIterator<Item = NewRun>,
    ) -> Result<Vec<u64>, Error> {
        let mut batch =
            v1::StartRunBatchRequest { workflow: workflow.to_owned(), runs: Vec::new() };
        for NewRun { wire } in runs {
            let v1::StartRunRequest { workflow: named, version, input, key, tags } = wire;
            if named != workflow {
                let detail =
                    format!("a batch is of workflow {workflow:?}, and has a run of {named:?}");
                return Err(Error::new(Code::InvalidRequest, detail));
            }
            batch.runs.push(v1::BatchRun { version, input, key, tags });
        }
        let has_keys = batch.runs.iter().all(|run| run.key.is_some());
        let idempotency =
            if has_keys { Idempotency::Idempotent } else { Idempotency::NotIdempotent };
        let start = || {
            let (batch, mut runs) = (batch.clone(), self.runs_rpc());
            async move { runs.start_batch(batch).await }
        };
        Ok(retry(idempotency, start).await?.into_inner().ids)
    }

    /// Begins a run. With a key, the same start again gives the run that is there.
    pub async fn start_run(&self, run: NewRun) -> Result<v1::Run, Error> {
        let idempotency = if run.wire.key.is_some() {
            Idempotency::Idempotent
        } else {
            Idempotency::NotIdempotent
        };
        let start = || {
            let (request, mut runs) = (run.wire.clone(), self.runs_rpc());
            async move { runs.start(request).await }
        };
        let answer = retry(idempotency, start).await?.into_inner();
        answer.run.ok_or_else(|| Error::new(Code::Unavailable, "the server's answer has no run"))
    }

    /// A run as it is.
    pub async fn run(&self, run: impl Into<RunRef>) -> Result<v1::Run, Error> {
        self.run_within(run.into(), Duration::ZERO).await
    }

    /// A run once it is over, or as it is when the time is up.
    pub async fn wait_for_run(
        &self,
        run: impl Into<RunRef>,
        timeout: Duration,
    ) -> Result<v1::Run, Error> {
        let named = run.into();
        let until = tokio::time::Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let run = self.run_within(named.clone(), left.min(WAIT_MAX)).await?;
            if run.finished_at.is_some() || left <= WAIT_MAX {
                return Ok(run);
            }
        }
    }

    async fn run_within(&self, run: RunRef, wait: Duration) -> Result<v1::Run, Error> {
        let wait_ms = wait.as_millis() as u64;
        let get = || {
            let ((run_id, by_key), mut runs) = (run.clone().into_wire(), self.runs_rpc());
            async move { runs.get(v1::GetRunRequest { run_id, wait_ms, by_key }).await }
        };
        Ok(retry(Idempotency::Idempotent, get).await?.into_inner())
    }

    /// Runs, newest first. A page may be short while there is a next one.
    pub async fn list_runs(
        &self,
        filter: v1::ListRunsRequest,
    ) -> Result<v1::ListRunsResponse, Error> {
        let list = || {
            let (filter, mut runs) = (filter.clone(), self.runs_rpc());
            async move { runs.list(filter).await }
        };
        Ok(retry(Idempotency::Idempotent, list).await?.into_inner())
    }

    /// Where a run stands and has stood: its tokens, by number.
    pub async fn list_tokens(
        &self,
        list: v1::ListTokensRequest,
    ) -> Result<v1::ListTokensResponse, Error> {
        let list = || {
            let (list, mut runs) = (list.clone(), self.runs_rpc());
            async move { runs.list_tokens(list).await }
        };
        Ok(retry(Idempotency::Idempotent, list).await?.into_inner())
    }

    /// What was decided about a run and why, oldest first.
    /// All of it that the server still tells.
    pub async fn run_history(
        &self,
        run: impl Into<RunRef>,
    ) -> Result<v1::RunHistoryResponse, Error> {
        let ((run_id, by_key), limit) = (run.into().into_wire(), Some(PAGE_ITEMS_MAX));
        let mut page = v1::RunHistoryRequest { run_id, limit, cursor: String::new(), by_key };
        let mut whole = self.run_history_page(page.clone()).await?;
        while !whole.next_cursor.is_empty() {
            page.cursor = std::mem::take(&mut whole.next_cursor);
            let next = self.run_history_page(page.clone()).await?;
            whole.steps.extend(next.steps);
            whole.next_cursor = next.next_cursor;
        }
        Ok(whole)
    }

    /// What was decided about a run, page by page.
    pub async fn run_history_page(
        &self,
        page: v1::RunHistoryRequest,
    ) -> Result<v1::RunHistoryResponse, Error> {
        let history = || {
            let (page, mut runs) = (page.clone(), self.runs_rpc());
            async move { runs.history(page).await }
        };
        Ok(retry(Idempotency::Idempotent, history).await?.into_inner())
    }

    /// Ends a run and all that is live in it.
    pub async fn cancel_run(&self, run: impl Into<RunRef>) -> Result<v1::Run, Error> {
        let run = run.into();
        let cancel = || {
            let ((run_id, by_key), mut runs) = (run.clone().into_wire(), self.runs_rpc());
            async move { runs.cancel(v1::CancelRunRequest { run_id, by_key }).await }
        };
        Ok(retry(Idempotency::Idempotent, cancel).await?.into_inner())
    }

    /// Lets a parked run go on where it stood. A run that is not parked is left as it is.
    pub async fn unpark_run(&self, run: impl Into<RunRef>) -> Result<v1::Run, Error> {
        let run = run.into();
        let unpark = || {
            let ((run_id, by_key), mut runs) = (run.clone().into_wire(), self.runs_rpc());
            async move { runs.unpark(v1::UnparkRunRequest { run_id, by_key }).await }
        };
        Ok(retry(Idempotency::Idempotent, unpark).await?.into_inner())
    }

    /// Brings a run news from outside. With an id it counts once, however often it is sent. A signal
    /// for a run by key that says how to start it begins the run if there is none.
    pub async fn signal_run(
        &self,
        run: impl Into<RunRef>,
        signal: Signal,
    ) -> Result<v1::SignalResponse, Error> {
        let (run_id, by_key) = run.into().into_wire();
        let request = v1::SignalRequest { run_id, by_key, ..signal.wire };
        let idempotency = match request.signal_id {
            Some(_) => Idempotency::Idempotent,
            None => Idempotency::NotIdempotent,
        };
        let send = || {
            let (request, mut runs) = (request.clone(), self.runs_rpc());
            async move { runs.signal(request).await }
        };
        Ok(retry(idempotency, send).await?.into_inner())
    }

    /// What today's rules would decide in a record of a run, beside what was decided. Nothing is
    /// written.
    pub async fn redecide_run(
        &self,
        run: impl Into<RunRef>,
        lsn: u64,
    ) -> Result<v1::RedecideResponse, Error> {
        let run = run.into();
        let redecide = || {
            let ((run_id, by_key), mut runs) = (run.clone().into_wire(), self.runs_rpc());
            async move { runs.redecide(v1::RedecideRequest { run_id, lsn, by_key }).await }
        };
        Ok(retry(Idempotency::Idempotent, redecide).await?.into_inner())
    }
}

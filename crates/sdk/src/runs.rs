//! The client's verbs for workflows and runs.

use std::time::Duration;

use tenure_code::Code;
use tenure_proto::v1;

use crate::client::{Client, WAIT_MAX};
use crate::error::Error;
use crate::new_run::{Definition, NewRun, Signal};
use crate::retry::{Twice, again};

impl Client {
    /// Registers a definition: a new version, unless the newest says the same. A faulty one is
    /// refused; [`Error::faults`] has what is wrong with it.
    pub async fn put_workflow(
        &self,
        definition: Definition,
    ) -> Result<v1::PutWorkflowResponse, Error> {
        let put = || {
            let (request, mut workflows) = (definition.wire.clone(), self.workflows());
            async move { workflows.put(request).await }
        };
        Ok(again(Twice::IsTheSame, put).await?.into_inner())
    }

    /// A workflow with its definition as JSON; the newest version if none is given.
    pub async fn workflow(&self, name: &str, version: Option<u32>) -> Result<v1::Workflow, Error> {
        let get = || {
            let (name, mut workflows) = (name.to_owned(), self.workflows());
            async move { workflows.get(v1::GetWorkflowRequest { name, version }).await }
        };
        Ok(again(Twice::IsTheSame, get).await?.into_inner())
    }

    /// The newest version of each workflow, by name, without the definitions.
    pub async fn list_workflows(
        &self,
        list: v1::ListWorkflowsRequest,
    ) -> Result<v1::ListWorkflowsResponse, Error> {
        let list = || {
            let (list, mut workflows) = (list.clone(), self.workflows());
            async move { workflows.list(list).await }
        };
        Ok(again(Twice::IsTheSame, list).await?.into_inner())
    }

    /// Begins a run. With a key, the same start again gives the run that is there.
    pub async fn start_run(&self, run: NewRun) -> Result<v1::Run, Error> {
        let twice = if run.wire.key.is_some() { Twice::IsTheSame } else { Twice::IsDifferent };
        let start = || {
            let (request, mut runs) = (run.wire.clone(), self.runs());
            async move { runs.start(request).await }
        };
        let answer = again(twice, start).await?.into_inner();
        answer.run.ok_or_else(|| Error::local(Code::Unavailable, "the server's answer has no run"))
    }

    /// A run as it is.
    pub async fn run(&self, run_id: u64) -> Result<v1::Run, Error> {
        self.run_within(run_id, Duration::ZERO).await
    }

    /// A run once it is over, or as it is when the time is up.
    pub async fn wait_for_run(&self, run_id: u64, timeout: Duration) -> Result<v1::Run, Error> {
        let until = tokio::time::Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let run = self.run_within(run_id, left.min(WAIT_MAX)).await?;
            if run.finished_at.is_some() || left <= WAIT_MAX {
                return Ok(run);
            }
        }
    }

    async fn run_within(&self, run_id: u64, wait: Duration) -> Result<v1::Run, Error> {
        let wait_ms = wait.as_millis() as u64;
        let get = || {
            let mut runs = self.runs();
            async move { runs.get(v1::GetRunRequest { run_id, wait_ms }).await }
        };
        Ok(again(Twice::IsTheSame, get).await?.into_inner())
    }

    /// Runs, newest first. A page may be short while there is a next one.
    pub async fn list_runs(
        &self,
        filter: v1::ListRunsRequest,
    ) -> Result<v1::ListRunsResponse, Error> {
        let list = || {
            let (filter, mut runs) = (filter.clone(), self.runs());
            async move { runs.list(filter).await }
        };
        Ok(again(Twice::IsTheSame, list).await?.into_inner())
    }

    /// Where a run stands and has stood: its tokens, by number.
    pub async fn list_tokens(
        &self,
        list: v1::ListTokensRequest,
    ) -> Result<v1::ListTokensResponse, Error> {
        let list = || {
            let (list, mut runs) = (list.clone(), self.runs());
            async move { runs.list_tokens(list).await }
        };
        Ok(again(Twice::IsTheSame, list).await?.into_inner())
    }

    /// What was decided about a run and why, oldest first.
    pub async fn run_history(&self, run_id: u64) -> Result<v1::RunHistoryResponse, Error> {
        let history = || {
            let mut runs = self.runs();
            async move { runs.history(v1::RunHistoryRequest { run_id }).await }
        };
        Ok(again(Twice::IsTheSame, history).await?.into_inner())
    }

    /// Ends a run and all that is live in it.
    pub async fn cancel_run(&self, run_id: u64) -> Result<v1::Run, Error> {
        let cancel = || {
            let mut runs = self.runs();
            async move { runs.cancel(v1::CancelRunRequest { run_id }).await }
        };
        Ok(again(Twice::IsTheSame, cancel).await?.into_inner())
    }

    /// Lets a parked run go on where it stood. A run that is not parked is left as it is.
    pub async fn unpark_run(&self, run_id: u64) -> Result<v1::Run, Error> {
        let unpark = || {
            let mut runs = self.runs();
            async move { runs.unpark(v1::UnparkRunRequest { run_id }).await }
        };
        Ok(again(Twice::IsTheSame, unpark).await?.into_inner())
    }

    /// Brings a run news from outside. With an id it counts once, however often it is sent.
    pub async fn signal_run(
        &self,
        run_id: u64,
        signal: Signal,
    ) -> Result<v1::SignalResponse, Error> {
        let request = v1::SignalRequest { run_id, ..signal.wire };
        let twice = match request.signal_id {
            Some(_) => Twice::IsTheSame,
            None => Twice::IsDifferent,
        };
        let send = || {
            let (request, mut runs) = (request.clone(), self.runs());
            async move { runs.signal(request).await }
        };
        Ok(again(twice, send).await?.into_inner())
    }

    /// What today's rules would decide in a record of a run, beside what was decided. Nothing is
    /// written.
    pub async fn redecide_run(&self, run_id: u64, lsn: u64) -> Result<v1::RedecideResponse, Error> {
        let redecide = || {
            let mut runs = self.runs();
            async move { runs.redecide(v1::RedecideRequest { run_id, lsn }).await }
        };
        Ok(again(Twice::IsTheSame, redecide).await?.into_inner())
    }
}

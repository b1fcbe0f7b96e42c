//! Runs of workflows: start, read, wait for, signal, cancel.

use std::time::Duration;

use tenure_api::{
    History, Page, PageQuery, Redecided, Run, RunFilter, RunRef, RunState, RunStep, Signaled, Token,
};
use tenure_code::Code;
use tenure_proto::{v1, wire_ref};
use v1::runs_client::RunsClient;

use super::retry::Idempotency::{self, Idempotent, NotIdempotent};
use super::{PAGE_ITEMS_MAX, WAIT_MAX, send};
use crate::connection::Connection;
use crate::error::Error;
use crate::new_run::{NewRun, Signal};

/// The runs of a server; see [`Client::runs`](crate::Client::runs).
///
/// A run is named by its id, or by its workflow and key: see [`RunRef`].
#[derive(Clone, Debug)]
pub struct Runs {
    rpc: RunsClient<Connection>,
}

impl Runs {
    pub(super) fn new(connection: Connection) -> Self {
        Self { rpc: RunsClient::new(connection).max_decoding_message_size(usize::MAX) }
    }

    /// Starts a run. Starting a run with an equal input under the same key returns the existing run.
    pub async fn start(&self, run: NewRun) -> Result<Run, Error> {
        let idempotency = Idempotency::of_key(run.run.key.as_deref());
        let request = v1::StartRunRequest::from((run.workflow, run.run));
        let response = send!(idempotency, self.rpc, start(request))?;
        let run = response.run.ok_or_else(|| Error::incomplete("a start without the run"))?;
        Ok(run.into())
    }

    /// Starts runs of one workflow, all or none, and returns their ids in the same order.
    pub async fn start_batch(
        &self,
        workflow: &str,
        runs: impl IntoIterator<Item = NewRun>,
    ) -> Result<Vec<u64>, Error> {
        let (mut batch, mut has_keys) = (Vec::new(), true);
        for NewRun { workflow: named, run } in runs {
            if named != workflow {
                let detail =
                    format!("a batch is of workflow {workflow:?}, and has a run of {named:?}");
                return Err(Error::new(Code::InvalidRequest, detail));
            }
            has_keys &= run.key.is_some();
            batch.push(v1::BatchRun::from(run));
        }
        let idempotency = if has_keys { Idempotent } else { NotIdempotent };
        let request = v1::StartRunBatchRequest { workflow: workflow.to_owned(), runs: batch };
        Ok(send!(idempotency, self.rpc, start_batch(request))?.ids)
    }

    /// A run.
    pub async fn get(&self, run: impl Into<RunRef>) -> Result<Run, Error> {
        self.get_within(run.into(), Duration::ZERO).await
    }

    /// Waits for the end of a run, at most for this time, and returns the run.
    pub async fn wait(&self, run: impl Into<RunRef>, timeout: Duration) -> Result<Run, Error> {
        let named = run.into();
        let until = tokio::time::Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let run = self.get_within(named.clone(), left.min(WAIT_MAX)).await?;
            if run.finished_at.is_some() || left <= WAIT_MAX {
                return Ok(run);
            }
        }
    }

    async fn get_within(&self, run: RunRef, wait: Duration) -> Result<Run, Error> {
        let (run_id, by_key) = wire_ref(run);
        let wait_ms = wait.as_millis() as u64;
        let request = v1::GetRunRequest { run_id, wait_ms, by_key };
        send!(Idempotent, self.rpc, get(request)).map(Run::from)
    }

    /// A page of runs, newest first.
    pub async fn list(&self, filter: RunFilter) -> Result<Page<Run>, Error> {
        if let Some(RunState::Other(state)) = &filter.state {
            return Err(Error::unknown("state", state));
        }
        let request = v1::ListRunsRequest::from(filter);
        send!(Idempotent, self.rpc, list(request)).map(Page::from)
    }

    /// A page of the tokens of a run, by number: where its execution is and has been.
    pub async fn tokens(
        &self,
        run: impl Into<RunRef>,
        page: PageQuery,
    ) -> Result<Page<Token>, Error> {
        let (run_id, by_key) = wire_ref(run.into());
        let cursor = page.cursor.unwrap_or_default();
        let request = v1::ListTokensRequest { run_id, limit: page.limit, cursor, by_key };
        send!(Idempotent, self.rpc, list_tokens(request)).map(Page::from)
    }

    /// The history of a run, oldest first, as far back as the server has it: each cause, and the
    /// decisions that followed.
    pub async fn history(&self, run: impl Into<RunRef>) -> Result<History<RunStep>, Error> {
        let run = run.into();
        let mut page = PageQuery { limit: Some(PAGE_ITEMS_MAX), cursor: None };
        let mut history = self.history_page(run.clone(), page.clone()).await?;
        while let Some(cursor) = history.next_cursor.take() {
            page.cursor = Some(cursor);
            let next = self.history_page(run.clone(), page.clone()).await?;
            history.items.extend(next.items);
            history.next_cursor = next.next_cursor;
        }
        Ok(history)
    }

    /// A page of the history of a run.
    pub async fn history_page(
        &self,
        run: impl Into<RunRef>,
        page: PageQuery,
    ) -> Result<History<RunStep>, Error> {
        let (run_id, by_key) = wire_ref(run.into());
        let cursor = page.cursor.unwrap_or_default();
        let request = v1::RunHistoryRequest { run_id, limit: page.limit, cursor, by_key };
        send!(Idempotent, self.rpc, history(request)).map(History::from)
    }

    /// Cancels a run and everything that is live in it.
    pub async fn cancel(&self, run: impl Into<RunRef>) -> Result<Run, Error> {
        let (run_id, by_key) = wire_ref(run.into());
        let request = v1::CancelRunRequest { run_id, by_key };
        send!(Idempotent, self.rpc, cancel(request)).map(Run::from)
    }

    /// Unparks a parked run, which continues where it stood. Another run stays as it is.
    pub async fn unpark(&self, run: impl Into<RunRef>) -> Result<Run, Error> {
        let (run_id, by_key) = wire_ref(run.into());
        let request = v1::UnparkRunRequest { run_id, by_key };
        send!(Idempotent, self.rpc, unpark(request)).map(Run::from)
    }

    /// Sends a signal to a run. An equal signal with the same id counts once. A signal for a run by
    /// key that says how to start it starts the run if there is none.
    pub async fn signal(&self, run: impl Into<RunRef>, signal: Signal) -> Result<Signaled, Error> {
        let idempotency = Idempotency::of_key(signal.signal.signal_id.as_deref());
        let request = v1::SignalRequest::from((run.into(), signal.name, signal.signal));
        send!(idempotency, self.rpc, signal(request)).map(Signaled::from)
    }

    /// What the present rules decide in a record of a run, beside what was decided then. Nothing is
    /// written.
    pub async fn redecide(&self, run: impl Into<RunRef>, lsn: u64) -> Result<Redecided, Error> {
        let (run_id, by_key) = wire_ref(run.into());
        let request = v1::RedecideRequest { run_id, lsn, by_key };
        send!(Idempotent, self.rpc, redecide(request)).map(Redecided::from)
    }
}

//! Workflows and runs for a program that has Tenure inside.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::command::{
    DeleteWorkflow, RegisterWorkflow, Registered, SignalByKey, SignalRun, Signaled, StartRun,
    StartRuns, Started,
};
use tenure_flow::Definition;
use tenure_record::id::RunId;
use tenure_record::name::TaskKey;

use crate::embedded::{Error, Tenure};
use crate::filter::RunFilter;
use crate::request::{CancelRun, FindRun, GetRun, ListRuns, SignaledRun, UnparkRun};
use crate::run_history::{RunHistory, run_history};
use crate::run_info::{RunInfo, RunPage};

impl Tenure {
    /// Takes a definition of a workflow: a new version, unless the newest says the same.
    pub fn register_workflow(&self, definition: Definition) -> Result<Registered, Error> {
        self.serve(RegisterWorkflow { definition: Arc::new(definition) })
    }

    /// Begins a run, or gives the one that holds the key.
    pub fn start_run(&self, start: StartRun) -> Result<RunInfo, Error> {
        Ok(*self.serve(start)?.run)
    }

    /// Begins runs of a workflow, all or none.
    pub fn start_runs(&self, runs: Vec<StartRun>) -> Result<Vec<Started>, Error> {
        self.serve(StartRuns { runs })
    }

    /// Deletes a workflow that nothing needs: one version, or all of them.
    pub fn delete_workflow(&self, name: &str, version: Option<u32>) -> Result<(), Error> {
        self.serve(DeleteWorkflow { name: Arc::from(name), version })
    }

    /// The run of a workflow that holds a key.
    pub fn run_with_key(&self, workflow: &str, key: &str) -> Result<RunInfo, Error> {
        let (workflow, key) = (Arc::from(workflow), TaskKey::parse(key)?);
        self.run(self.serve(FindRun { workflow, key })?)
    }

    /// Brings the run that holds a key news from outside, and begins it if there is none and the
    /// signal says how.
    pub fn signal_by_key(&self, signal: SignalByKey) -> Result<SignaledRun, Error> {
        self.serve(signal)
    }

    /// Ends a run and all that is live in it.
    pub fn cancel_run(&self, run_id: RunId) -> Result<RunInfo, Error> {
        Ok(*self.serve(CancelRun(run_id))?)
    }

    /// Lets a parked run go on where it stood. A run that is not parked is left as it is.
    pub fn unpark_run(&self, run_id: RunId) -> Result<RunInfo, Error> {
        Ok(*self.serve(UnparkRun(run_id))?)
    }

    /// Brings a run news from outside.
    pub fn signal_run(&self, signal: SignalRun) -> Result<Signaled, Error> {
        self.serve(signal)
    }

    /// A run.
    pub fn run(&self, run_id: RunId) -> Result<RunInfo, Error> {
        Ok(*self.serve(GetRun { run_id, wait_ms: 0 })?)
    }

    /// A run once it is over, or as it is when the time is up.
    pub fn wait_for_run(&self, run_id: RunId, timeout: Duration) -> Result<RunInfo, Error> {
        Ok(*self.serve(GetRun { run_id, wait_ms: timeout.as_millis() as u64 })?)
    }

    /// Runs, newest first.
    pub fn runs(&self, filter: RunFilter) -> Result<RunPage, Error> {
        self.serve(ListRuns(filter))
    }

    /// What was decided about a run, and why. It reads the log.
    pub fn run_history(&self, run_id: RunId) -> Result<RunHistory, Error> {
        let run = self.run(run_id)?;
        Ok(run_history(&mut self.reader(), run_id, run.last_lsn, &run.definition)?)
    }
}

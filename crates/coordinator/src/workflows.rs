//! Workflows and runs for a program that has Tenure inside.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::command::{
    Command, DeleteWorkflow, RegisterWorkflow, Registered, SignalByKey, SignalRun, Signaled,
    StartRun, StartRuns, Started,
};
use tenure_flow::Definition;
use tenure_record::id::RunId;
use tenure_record::name::TaskKey;

use crate::ask::{Answer, Ask, Query};
use crate::embedded::{Error, Tenure, unexpected};
use crate::filter::RunFilter;
use crate::run_history::{RunHistory, run_history};
use crate::run_info::{RunInfo, RunPage};

impl Tenure {
    /// Takes a definition of a workflow: a new version, unless the newest says the same.
    pub fn register_workflow(&self, definition: Definition) -> Result<Registered, Error> {
        let register = RegisterWorkflow { definition: Arc::new(definition) };
        let ask = Ask::Command(Command::RegisterWorkflow(register));
        let Answer::WorkflowVersion(registered) = self.ask(ask).wait()? else {
            return unexpected();
        };
        Ok(registered)
    }

    /// Begins a run, or gives the one that holds the key.
    pub fn start_run(&self, start: StartRun) -> Result<RunInfo, Error> {
        let Answer::Began(_, run) = self.ask(Ask::StartRun(start)).wait()? else {
            return unexpected();
        };
        Ok(*run)
    }

    /// Begins runs of a workflow, all or none.
    pub fn start_runs(&self, runs: Vec<StartRun>) -> Result<Vec<Started>, Error> {
        let ask = Ask::Command(Command::StartRuns(StartRuns { runs }));
        let Answer::StartedMany(started) = self.ask(ask).wait()? else { return unexpected() };
        Ok(started)
    }

    /// Deletes a workflow that nothing needs: one version, or all of them.
    pub fn delete_workflow(&self, name: &str, version: Option<u32>) -> Result<(), Error> {
        let delete = DeleteWorkflow { name: Arc::from(name), version };
        let ask = Ask::Command(Command::DeleteWorkflow(delete));
        let Answer::Deleted = self.ask(ask).wait()? else { return unexpected() };
        Ok(())
    }

    /// The run of a workflow that holds a key.
    pub fn run_with_key(&self, workflow: &str, key: &str) -> Result<RunInfo, Error> {
        let (workflow, key) = (Arc::from(workflow), TaskKey::parse(key)?);
        let ask = Ask::Query(Query::RunWithKey { workflow, key });
        let Answer::RunWithKey(run_id) = self.ask(ask).wait()? else { return unexpected() };
        self.run(run_id)
    }

    /// Brings the run that holds a key news from outside, and begins it if there is none and the
    /// signal says how.
    pub fn signal_by_key(&self, signal: SignalByKey) -> Result<(RunId, Signaled), Error> {
        let ask = Ask::Command(Command::SignalByKey(signal));
        let Answer::SignaledByKey(run_id, _, signaled) = self.ask(ask).wait()? else {
            return unexpected();
        };
        Ok((run_id, signaled))
    }

    /// Ends a run and all that is live in it.
    pub fn cancel_run(&self, run_id: RunId) -> Result<RunInfo, Error> {
        self.one_run(Ask::ChangeRun { command: Command::CancelRun(run_id), run_id })
    }

    /// Lets a parked run go on where it stood. A run that is not parked is left as it is.
    pub fn unpark_run(&self, run_id: RunId) -> Result<RunInfo, Error> {
        self.one_run(Ask::ChangeRun { command: Command::UnparkRun(run_id), run_id })
    }

    /// Brings a run news from outside.
    pub fn signal_run(&self, signal: SignalRun) -> Result<Signaled, Error> {
        let ask = Ask::Command(Command::SignalRun(signal));
        let Answer::Signaled(signaled) = self.ask(ask).wait()? else { return unexpected() };
        Ok(signaled)
    }

    /// A run.
    pub fn run(&self, run_id: RunId) -> Result<RunInfo, Error> {
        self.one_run(Ask::Query(Query::Run(run_id)))
    }

    /// A run once it is over, or as it is when the time is up.
    pub fn wait_for_run(&self, run_id: RunId, timeout: Duration) -> Result<RunInfo, Error> {
        let wait_ms = timeout.as_millis() as u64;
        self.one_run(Ask::Query(Query::RunEnd { run_id, wait_ms }))
    }

    /// Runs, newest first.
    pub fn runs(&self, filter: RunFilter) -> Result<RunPage, Error> {
        let Answer::Runs(page) = self.ask(Ask::Query(Query::Runs(filter))).wait()? else {
            return unexpected();
        };
        Ok(page)
    }

    /// What was decided about a run, and why. It reads the log.
    pub fn run_history(&self, run_id: RunId) -> Result<RunHistory, Error> {
        let run = self.run(run_id)?;
        Ok(run_history(&mut self.reader(), run_id, run.last_lsn, &run.definition)?)
    }

    fn one_run(&self, ask: Ask) -> Result<RunInfo, Error> {
        let Answer::Run(run) = self.ask(ask).wait()? else { return unexpected() };
        Ok(*run)
    }
}

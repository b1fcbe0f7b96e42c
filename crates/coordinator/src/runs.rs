//! Requests about runs and workflows: start, change, get, list.

use std::sync::Arc;

use tenure_core::command::{Command, StartRun, Started};
use tenure_core::limits::LIST_ITEMS_MAX;
use tenure_core::{Rejection, state};
use tenure_log::Log;
use tenure_record::id::{RunId, TokenId};
use tenure_record::time::Now;

use crate::filter::RunFilter;
use crate::names::NameRange;
use crate::refusal::Refusal;
use crate::request::{FindRun, GetWorkflow, ListTokens, StartedRun};
use crate::run_info::{RunInfo, RunPage, TokenInfo, TokenPage, WorkflowInfo, WorkflowPage};
use crate::step::Coordinator;

impl<L: Log> Coordinator<L> {
    pub(crate) fn start_run(&mut self, start: StartRun, now: Now) -> Result<StartedRun, Refusal> {
        let Started { run_id, outcome } = self.run_as(&Command::StartRun(start), now)?;
        Ok(StartedRun { outcome, run: self.run_info(run_id)? })
    }

    /// Changes a run, and shows it after that.
    pub(crate) fn change_run(
        &mut self,
        command: &Command,
        run_id: RunId,
        now: Now,
    ) -> Result<Box<RunInfo>, Refusal> {
        self.run(command, now)?;
        self.run_info(run_id)
    }

    pub(crate) fn run_info(&self, run_id: RunId) -> Result<Box<RunInfo>, Refusal> {
        match self.state.run(run_id) {
            Some(run) => Ok(Box::new(RunInfo::of(&run, self.clock.offset()))),
            None => Err(Rejection::RunNotFound { run_id }.into()),
        }
    }

    pub(crate) fn find_run(&self, FindRun { workflow, key }: FindRun) -> Result<RunId, Refusal> {
        let found = self.state.run_with_key(&workflow, key.as_str());
        found.ok_or_else(|| Rejection::RunKeyNotFound { workflow, key }.into())
    }

    pub(crate) fn runs(&self, filter: &RunFilter) -> RunPage {
        let wanted = state::RunFilter {
            workflow: filter.workflow.as_deref(),
            state: filter.state,
            tag: filter.tag.as_ref().map(|(key, value)| (key.as_str(), value.as_str())),
            key: filter.key.as_ref().map(|key| key.as_str()),
        };
        let offset = self.clock.offset();
        let page = self.state.list_runs(&wanted, filter.before, filter.limit);
        RunPage {
            runs: page.runs.iter().map(|run| RunInfo::of(run, offset)).collect(),
            next: page.next,
        }
    }

    pub(crate) fn tokens(&self, request: ListTokens) -> Result<TokenPage, Refusal> {
        let ListTokens { run_id, after, limit } = request;
        let Some(run) = self.state.run(run_id) else {
            return Err(Rejection::RunNotFound { run_id }.into());
        };
        let limit = limit.clamp(1, LIST_ITEMS_MAX);
        let mut tokens: Vec<_> =
            run.tokens(TokenId(after.0.saturating_add(1))).take(limit + 1).collect();
        let offset = self.clock.offset();
        let has_more = tokens.len() > limit;
        tokens.truncate(limit);
        let next = tokens.last().filter(|_| has_more).map(|token| token.id);
        let definition = run.definition();
        let tokens = tokens.iter().map(|token| TokenInfo::of(token, definition, offset)).collect();
        Ok(TokenPage { tokens, next })
    }

    pub(crate) fn workflow(&self, request: GetWorkflow) -> Result<Box<WorkflowInfo>, Refusal> {
        let GetWorkflow { name, version } = request;
        match self.state.workflow(&name, version) {
            Some(workflow) => Ok(Box::new(WorkflowInfo::of(&workflow))),
            None => Err(Rejection::WorkflowNotFound { name, version }.into()),
        }
    }

    pub(crate) fn workflows(&self, range: &NameRange) -> WorkflowPage {
        let limit = range.limit.clamp(1, LIST_ITEMS_MAX);
        let mut workflows: Vec<_> = self
            .state
            .workflows_after(range.after.as_deref())
            .take(limit + 1)
            .map(|workflow| WorkflowInfo::of(&workflow))
            .collect();
        let has_more = workflows.len() > limit;
        workflows.truncate(limit);
        let next = workflows.last().filter(|_| has_more).map(|workflow| Arc::clone(&workflow.name));
        WorkflowPage { workflows, next }
    }
}

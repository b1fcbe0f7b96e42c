//! Asks about runs and workflows: begun, changed, looked at, listed.

use std::sync::Arc;

use tenure_core::command::{Command, StartRun, Started};
use tenure_core::limits::LIST_ITEMS_MAX;
use tenure_core::{Rejection, state};
use tenure_log::Log;
use tenure_record::id::{RunId, TokenId};
use tenure_record::name::TaskKey;
use tenure_record::time::Now;

use crate::ask::{Answer, Caller, Outcome};
use crate::filter::RunFilter;
use crate::run_info::{RunInfo, RunPage, TokenInfo, TokenPage, WorkflowInfo, WorkflowPage};
use crate::step::Coordinator;

impl<L: Log, C: Caller> Coordinator<L, C> {
    pub(crate) fn start_run(&mut self, start: StartRun, now: Now) -> Outcome {
        let Answer::Started(Started { run_id, outcome }) =
            self.run(&Command::StartRun(start), now)?
        else {
            unreachable!("a start is answered so")
        };
        let run = self.state.run(run_id).expect("a run that just began exists");
        Ok(Answer::Began(outcome, Box::new(RunInfo::of(&run, self.clock.offset()))))
    }

    pub(crate) fn run_info(&self, run_id: RunId) -> Outcome {
        match self.state.run(run_id) {
            Some(run) => Ok(Answer::Run(Box::new(RunInfo::of(&run, self.clock.offset())))),
            None => Err(Rejection::RunNotFound { run_id }.into()),
        }
    }

    pub(crate) fn run_with_key(&self, workflow: &Arc<str>, key: &TaskKey) -> Outcome {
        match self.state.run_with_key(workflow, key.as_str()) {
            Some(run_id) => Ok(Answer::RunWithKey(run_id)),
            None => {
                let (workflow, key) = (Arc::clone(workflow), key.clone());
                Err(Rejection::RunKeyNotFound { workflow, key }.into())
            }
        }
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

    pub(crate) fn tokens(&self, run_id: RunId, after: TokenId, limit: usize) -> Outcome {
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
        Ok(Answer::Tokens(TokenPage { tokens, next }))
    }

    pub(crate) fn workflow(&self, name: &Arc<str>, version: Option<u32>) -> Outcome {
        match self.state.workflow(name, version) {
            Some(workflow) => Ok(Answer::Workflow(Box::new(WorkflowInfo::of(&workflow)))),
            None => Err(Rejection::WorkflowNotFound { name: Arc::clone(name), version }.into()),
        }
    }

    pub(crate) fn workflows(&self, after: Option<&Arc<str>>, limit: usize) -> WorkflowPage {
        let limit = limit.clamp(1, LIST_ITEMS_MAX);
        let mut workflows: Vec<_> = self
            .state
            .workflows_after(after.map(|name| &**name))
            .take(limit + 1)
            .map(|workflow| WorkflowInfo::of(&workflow))
            .collect();
        let has_more = workflows.len() > limit;
        workflows.truncate(limit);
        let next = workflows.last().filter(|_| has_more).map(|workflow| Arc::clone(&workflow.name));
        WorkflowPage { workflows, next }
    }
}

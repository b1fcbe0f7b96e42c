//! Whether a run is over, and what came out.

use std::sync::Arc;

use tenure_flow::definition::{NodeKind, OnFailure};
use tenure_flow::expression::Reads;
use tenure_record::event::{Committed, FinishRun, Json, RunState, Step};
use tenure_record::id::RunId;
use tenure_value::Value;

use super::cascade::{At, Cascade, Source, Task};
use super::conditions::{self, ExpressionRoots};
use super::context::sentence;
use super::error::RunFault;
use crate::state::ScopeRef;

impl Cascade<'_, '_> {
    /// No token of a run is live: its output is worked out.
    pub(super) fn complete_run(&mut self, run: RunId) {
        self.close_scopes(run);
        let finish = match self.outcome(run) {
            Ok((output, artifacts)) => FinishRun {
                state: RunState::Completed,
                output: Some(Json(output)),
                error: None,
                artifacts,
            },
            Err(fault) => {
                let error = Some(Json(fault.at(None, 0, None)));
                let artifacts = self.manifest(run, RunState::Failed).unwrap_or_default();
                FinishRun { state: RunState::Failed, output: None, error, artifacts }
            }
        };
        self.emit(run, Step::FinishRun(finish));
        self.tell_parent(run);
    }

    fn outcome(&self, run: RunId) -> Result<(Value, Vec<Committed<'static>>), RunFault> {
        let output = self.output(run)?;
        Ok((output, self.manifest(run, RunState::Completed)?))
    }

    fn output(&self, run: RunId) -> Result<Value, RunFault> {
        let definition = self.definition(run);
        let place = ExpressionRoots::new(self.draft, run, ScopeRef::ROOT);
        let output = match &definition.output_mapping {
            Some(mapping) => {
                let mut reads = Reads::unnoted();
                let output = mapping.object_of_present(&place, &mut reads);
                self.draft.count_steps(reads.steps());
                output.map_err(|error| {
                    RunFault::new("MAPPING_ERROR", format!("the run's output_mapping, {error}"))
                })?
            }
            None => Value::empty_map(),
        };
        conditions::check_depth(&output, "the run's output")?;
        if let Some(schema) = &definition.output_schema {
            self.draft.check(schema, &output).map_err(|complaints| {
                RunFault::new("OUTPUT_INVALID", sentence("the run's output", &complaints))
            })?;
        }
        self.check_record(output.bytes())?;
        Ok(output)
    }

    /// A token hears how its child ended.
    pub(super) fn hear_child(&mut self, at: At, child: RunId) {
        // Which way it goes on from here is not known any more.
        if self.run(at.run).workflow.is_broken() {
            let message =
                "a child run ended, and the definition that waits for it no longer compiles";
            let error = RunFault::new("WORKFLOW_BROKEN", message).at(None, 0, None);
            return self.cancel_run(at.run, RunState::Failed, Some(error));
        }
        let head = self.run(child);
        if head.state == RunState::Completed {
            let output = head.output.clone().unwrap_or_default();
            return self.push(Task::Accept(at, output, Source::Decision));
        }
        let error = self.child_error(at, child);
        let definition = self.definition(at.run);
        let node = &definition.nodes[self.token(at).node as usize];
        let catches = matches!(
            &node.kind, NodeKind::Workflow(rule) if rule.on_failure == OnFailure::Catch
        );
        match catches {
            true => {
                let output = Value::map(vec![("error".into(), error)]);
                self.push(Task::Accept(at, output, Source::Decision));
            }
            false => self.push_fail(at, error),
        }
    }

    /// The failure of a child is that of its node: the same code, with the child in the details.
    fn child_error(&self, at: At, child: RunId) -> Value {
        let head = self.run(child);
        // One that failed says why itself.
        let (code, message) = match head.state == RunState::TimedOut {
            true => ("RUN_TIMEOUT", "the child's time was over"),
            false => ("RUN_CANCELED", "the child was canceled"),
        };
        let known = head.error.as_ref().and_then(Value::as_map);
        let text = |name: &str| known.and_then(|map| map.get(name)?.as_text());
        let workflow = Value::Text(Arc::clone(&head.workflow.name));
        let details =
            Value::map(vec![("run".into(), Value::uint(child.0)), ("workflow".into(), workflow)]);
        let fault = RunFault {
            details,
            ..RunFault::new(text("code").unwrap_or(code), text("message").unwrap_or(message))
        };
        fault.at(Some(&self.node_name(at)), 0, head.error.as_ref())
    }
}

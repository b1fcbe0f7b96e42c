//! What a node's result changes: it is checked, kept, mapped to the context, and then the token is
//! routed on what it finds there.

use std::sync::Arc;

use tenure_flow::definition::{Definition, Node};
use tenure_flow::expression::Reads;
use tenure_flow::schema::Complaint;
use tenure_record::event::{ApplyNodeOutput, Json, SetContext, Step, TokenState, Write};
use tenure_record::name::Text;
use tenure_value::Value;

use super::cascade::{At, Cascade, Source};
use super::conditions::{self, ExpressionRoots};
use super::error::RunFault;
use crate::apply::precomputed::ValueOf;
use crate::limits::{CASCADE_BYTES_MAX, CONTEXT_BYTES_MAX};
use crate::state::Runs;

impl Cascade<'_, '_> {
    /// A node gave its result.
    pub(super) fn accept(&mut self, at: At, output: &Value, source: Source) {
        if self.live_token(at).is_none() {
            return;
        }
        let definition = self.definition(at.run);
        let node = &definition.nodes[self.token(at).node as usize];
        match self.take_output(at, &definition, node, output, source) {
            Ok(()) => {
                if source == Source::Item {
                    self.stage_artifacts(at);
                }
                self.route_success(at);
            }
            Err(fault) => self.fail_node(at, self.attempts(at), &fault, TokenState::Failed),
        }
    }

    /// How often the token's task was tried.
    pub(crate) fn attempts(&self, at: At) -> u32 {
        let crate::state::Work::Task(task_id) = self.token(at).work else { return 0 };
        crate::state::Ledger::task(self.draft, task_id).map_or(0, |task| task.attempt)
    }

    fn take_output(
        &mut self,
        at: At,
        definition: &Arc<Definition>,
        node: &Node,
        output: &Value,
        source: Source,
    ) -> Result<(), RunFault> {
        if let Some(schema) = &node.output_schema {
            self.draft.check(schema, output).map_err(|complaints| {
                RunFault::new("OUTPUT_INVALID", sentence("the output", &complaints))
            })?;
        }
        let scope = self.token(at).scope;
        let held = self.draft.scope(at.run, scope).map_or(0, |scope| scope.bytes());
        fits(held.saturating_add(output.bytes()))?;
        match source {
            Source::Decision => self.check_record(output.bytes())?,
            Source::Item => self.check_artifacts(at.run)?,
        }
        let step = ApplyNodeOutput {
            token: at.token,
            output: (source == Source::Decision).then(|| Json(output.clone())),
            keep: node.keeps_branches,
        };
        if source == Source::Item {
            self.precomputed.value(at.run, ValueOf::Item(at.token), output.clone());
        }
        self.emit(at.run, Step::ApplyNodeOutput(step));
        self.map_output(at, definition, node, output)
    }

    fn map_output(
        &mut self,
        at: At,
        definition: &Arc<Definition>,
        node: &Node,
        output: &Value,
    ) -> Result<(), RunFault> {
        if node.output_mapping.entries().is_empty() {
            return Ok(());
        }
        let (scope, error) = (self.token(at).scope, self.token(at).error.clone());
        let mut place = ExpressionRoots::new(self.draft, at.run, scope);
        (place.result, place.error) = (Some(output), error.as_deref());
        let mut reads = Reads::unnoted();
        let written = node.output_mapping.evaluate(&place, &mut reads);
        self.draft.count_steps(reads.steps());
        let written = written
            .map_err(|error| RunFault::new("MAPPING_ERROR", format!("output_mapping, {error}")))?;
        let held = self.draft.scope(at.run, scope).expect("a live token has a scope");
        let (mut context, outputs) = (held.context.clone(), held.outputs.bytes());
        let mut bytes = 0;
        for (path, value) in &written {
            conditions::check_depth(value, "a mapped value")?;
            bytes += value.bytes();
            if &*path.segments()[0] == "context" {
                context = path
                    .set_below(&context, value.clone())
                    .map_err(|fault| RunFault::new("MAPPING_ERROR", fault.message))?;
            } else if scope.is_root() {
                let message = format!("`{path}` is set outside of any branch");
                return Err(RunFault::new("MAPPING_ERROR", message));
            }
        }
        if let Some(schema) = &definition.context_schema {
            self.draft.check(schema, &context).map_err(|complaints| {
                RunFault::new("MAPPING_ERROR", sentence("the context", &complaints))
            })?;
        }
        fits(context.bytes().saturating_add(outputs))?;
        self.check_record(bytes)?;
        let writes = written.into_iter().map(|(path, value)| {
            let text = Text::Shared(Arc::clone(path.text()));
            self.precomputed.path(path);
            Write { path: text, value: Json(value) }
        });
        let step = SetContext { group: scope.group, index: scope.index, writes: writes.collect() };
        self.emit(at.run, Step::SetContext(step));
        Ok(())
    }

    /// Refuses what would make the record too long.
    pub(super) fn check_record(&self, bytes: usize) -> Result<(), RunFault> {
        match self.has_room_for(bytes) {
            true => Ok(()),
            false => Err(RunFault::new(
                "LIMIT_RECORD",
                format!(
                    "{bytes} bytes are more than is left of the {CASCADE_BYTES_MAX} of one record; \
                     write less, or put a task, a signal or a timer before this step"
                ),
            )),
        }
    }
}

/// Refuses a scope that would be too large.
pub(super) fn fits(bytes: usize) -> Result<(), RunFault> {
    match bytes <= CONTEXT_BYTES_MAX {
        true => Ok(()),
        false => Err(RunFault::new(
            "LIMIT_CONTEXT",
            format!(
                "context and outputs would take {bytes} bytes; at most {CONTEXT_BYTES_MAX} are allowed"
            ),
        )),
    }
}

/// What is wrong with a value, in one sentence.
pub(crate) fn sentence(what: &str, complaints: &[Complaint]) -> String {
    let complaints = complaints.iter().map(|complaint| match complaint.pointer.as_str() {
        "" => complaint.message.clone(),
        pointer => format!("{pointer}: {}", complaint.message),
    });
    format!("{what} does not satisfy its schema: {}", complaints.collect::<Vec<_>>().join("; "))
}

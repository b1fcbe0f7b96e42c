//! What an expression sees: the roots of a scope in a run, as the draft has them.

use std::sync::Arc;

use tenure_flow::Expression;
use tenure_flow::expression::{EvaluationError, Reads, Scope as Roots};
use tenure_record::id::RunId;
use tenure_record::name::Text;
use tenure_value::Value;

use super::error::RunFault;
use crate::state::{Draft, Group, Run, Runs, Scope, ScopeRef};

/// The roots that expressions read at a scope of a run.
pub(crate) struct ExpressionRoots<'a, 's> {
    draft: &'a Draft<'s>,
    run_id: RunId,
    run: &'a Run,
    at: ScopeRef,
    scope: &'a Scope,
    /// The error that the token deals with.
    pub error: Option<&'a Value>,
    /// What the node gave.
    pub result: Option<&'a Value>,
    /// An item before its branch exists.
    pub item: Option<(Arc<str>, Value)>,
}

impl<'a, 's> ExpressionRoots<'a, 's> {
    pub(crate) fn new(draft: &'a Draft<'s>, run_id: RunId, at: ScopeRef) -> Self {
        let run = Runs::run(draft, run_id).expect("expressions are evaluated in runs that exist");
        let scope = draft.scope(run_id, at).expect("expressions are evaluated in live scopes");
        Self { draft, run_id, run, at, scope, error: None, result: None, item: None }
    }

    fn group(&self, at: ScopeRef) -> Option<&'a Group> {
        Runs::group(self.draft, self.run_id, at.group)
    }

    fn branch(&self) -> Option<Value> {
        let group = self.group(self.at)?;
        let mut entries: Vec<(Arc<str>, Value)> = vec![
            ("index".into(), Value::Int(self.at.index.into())),
            ("total".into(), Value::Int(group.total.into())),
            ("group".into(), Value::Text(Arc::clone(&group.name))),
        ];
        let rest = [
            ("key", group.key(self.at.index)),
            ("item", group.item(self.at.index)),
            ("output", self.scope.branch_output()),
            ("error", self.error),
        ];
        let rest = rest.into_iter().filter_map(|(name, value)| Some((name.into(), value?.clone())));
        entries.extend(rest);
        Some(Value::map(entries))
    }

    /// The item of the nearest branch that calls its item so.
    fn item_named(&self, name: &str) -> Option<Value> {
        let mut at = self.at;
        while let Some(group) = self.group(at) {
            if &*group.spawn_of(at.index).item_var == name {
                return group.item(at.index).cloned();
            }
            at = group.scope;
        }
        None
    }

    fn outputs(&self) -> Value {
        let definition = self.run.workflow.definition();
        let mut outputs = self.scope.outputs.as_map().cloned().unwrap_or_default();
        let kept = definition.nodes.iter().zip(0..).filter(|(node, _)| node.keeps_branches);
        for (node, index) in kept {
            let list = self.draft.kept_outputs(self.run_id, index, &self.around());
            let own = outputs.get(&node.name).and_then(Value::as_map).cloned();
            let with = own.unwrap_or_default().with("_branches", Value::list(list));
            outputs = outputs.with(&node.name, Value::Map(with));
        }
        Value::Map(outputs)
    }

    /// The outermost group and the indices of this scope.
    fn around(&self) -> Vec<u32> {
        let (mut indices, mut at) = (Vec::new(), self.at);
        let mut outermost = None;
        while let Some(group) = self.group(at) {
            indices.push(at.index);
            outermost = Some(at.group.0);
            at = group.scope;
        }
        indices.extend(outermost);
        indices.reverse();
        indices
    }

    fn about_run(&self) -> Value {
        Value::map(vec![
            ("id".into(), Value::uint(self.run_id.0)),
            ("workflow".into(), Value::Text(Arc::clone(&self.run.workflow.name))),
            ("version".into(), Value::Int(self.run.workflow.version.into())),
        ])
    }
}

impl Roots for ExpressionRoots<'_, '_> {
    fn root(&self, name: &str) -> Option<Value> {
        match name {
            "input" => Some(self.run.input.clone()),
            "context" => Some(self.scope.context.clone()),
            "outputs" => Some(self.outputs()),
            "result" => self.result.cloned(),
            "error" => self.error.cloned(),
            "branch" => self.branch(),
            "run" => Some(self.about_run()),
            name => match &self.item {
                Some((there, item)) if &**there == name => Some(item.clone()),
                _ => self.item_named(name),
            },
        }
    }
}

/// Whether a condition holds, and what it read.
pub(crate) fn holds(
    condition: &Expression,
    place: &ExpressionRoots<'_, '_>,
) -> Result<(bool, Text<'static>), RunFault> {
    let mut reads = Reads::noted();
    let held = condition.condition(place, &mut reads);
    place.draft.count_steps(reads.steps());
    match held {
        Ok(holds) => Ok((holds, Text::Shared(reads.shown().to_json().into()))),
        Err(error) => {
            let message = format!("`{}`: {error}", condition.text());
            Err(RunFault { details: reads.shown(), ..RunFault::new("CONDITION_ERROR", message) })
        }
    }
}

/// The value of an expression, which may be too deep to keep.
pub(crate) fn value(
    expression: &Expression,
    place: &ExpressionRoots<'_, '_>,
) -> Result<Value, EvaluationError> {
    let mut reads = Reads::unnoted();
    let value = expression.evaluate(place, &mut reads);
    place.draft.count_steps(reads.steps());
    value
}

/// A value that cannot be kept because it is too deep.
pub(crate) fn check_depth(value: &Value, what: &str) -> Result<(), RunFault> {
    match value.is_too_deep() {
        true => {
            Err(RunFault::new("MAPPING_ERROR", format!("{what} is nested too deep to be kept")))
        }
        false => Ok(()),
    }
}

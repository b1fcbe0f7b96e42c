//! The evaluator: from a tree and a scope to a value, in bounded steps.
#![allow(clippy::wildcard_enum_match_arm, reason = "what is not named is of the wrong type")]

use std::sync::Arc;

use tenure_value::limits::VALUE_DEPTH_MAX;
use tenure_value::{Map, Value};

use super::functions::{is_match, too_large};
use super::tree::{Macro, MacroTree, StaticPath, Tree};
use super::{EvaluationError, Reads, Scope, operators};
use crate::limits::{EXPRESSION_OUTPUT_BYTES_MAX, EXPRESSION_STEPS_MAX};

type Result<T> = std::result::Result<T, EvaluationError>;

pub(super) fn evaluate(tree: &Tree, scope: &dyn Scope, reads: &mut Reads) -> Result<Value> {
    // Most expressions are a path; they need none of the rest.
    let value = match tree {
        Tree::Path(path) => {
            reads.spent(1);
            read(path, scope, reads)?
        }
        tree => {
            let meter = Meter { left: EXPRESSION_STEPS_MAX };
            let mut walk = Walk { scope, reads, meter, locals: Vec::new() };
            let value = walk.value(tree);
            let steps = EXPRESSION_STEPS_MAX - walk.meter.left;
            walk.reads.spent(steps);
            value?
        }
    };
    if value.is_too_deep() { Err(too_deep()) } else { Ok(value) }
}

fn too_deep() -> EvaluationError {
    EvaluationError::limit(format!("the value is nested deeper than {VALUE_DEPTH_MAX} levels"))
}

/// What an evaluation may still cost.
pub(super) struct Meter {
    left: u64,
}

impl Meter {
    pub(super) fn spend(&mut self, steps: u64) -> Result<()> {
        let Some(left) = self.left.checked_sub(steps) else {
            return Err(EvaluationError::limit(format!(
                "the expression costs more than {EXPRESSION_STEPS_MAX} steps; let a task do it"
            )));
        };
        self.left = left;
        Ok(())
    }
}

/// The steps that reading so many bytes costs.
pub(super) fn text_cost(bytes: usize) -> u64 {
    1 + bytes as u64 / 64
}

/// A list or object that was put together, if it is not too deep and not too large.
pub(super) fn made(value: Value) -> Result<Value> {
    if value.is_too_deep() {
        return Err(too_deep());
    }
    if value.bytes() > EXPRESSION_OUTPUT_BYTES_MAX {
        return Err(too_large(value.kind(), value.bytes()));
    }
    Ok(value)
}

struct Walk<'a> {
    scope: &'a dyn Scope,
    reads: &'a mut Reads,
    meter: Meter,
    /// The elements that the macros around are at, the innermost last.
    locals: Vec<Value>,
}

impl Walk<'_> {
    fn value(&mut self, tree: &Tree) -> Result<Value> {
        self.meter.spend(1)?;
        match tree {
            Tree::Literal(value) => Ok(value.clone()),
            Tree::Path(path) => read(path, self.scope, self.reads),
            Tree::Local { out, .. } => Ok(self.locals[self.locals.len() - 1 - out].clone()),
            Tree::Select(of, field) => {
                let value = self.value(of)?;
                select(&value, field, || of.shown())
            }
            Tree::Index(pair) => self.index(tree, &pair[0], &pair[1]),
            Tree::Has(of, field) => self.has(of, field).map(Value::Bool),
            Tree::List(parts) => made(Value::list(self.values(parts)?)),
            Tree::Map(entries) => self.map(entries),
            Tree::Not(of) => match self.value(of)? {
                Value::Bool(truth) => Ok(Value::Bool(!truth)),
                other => Err(EvaluationError::other(format!("! does not take {}", other.kind()))),
            },
            Tree::Negate(of) => operators::negate(&self.value(of)?),
            Tree::And(pair) => self.logical(&pair[0], &pair[1], false),
            Tree::Or(pair) => self.logical(&pair[0], &pair[1], true),
            Tree::Binary(operator, pair) => {
                let (left, right) = (self.value(&pair[0])?, self.value(&pair[1])?);
                operators::binary(*operator, &left, &right, &mut self.meter)
            }
            Tree::Conditional(three) => match self.value(&three[0])? {
                Value::Bool(true) => self.value(&three[1]),
                Value::Bool(false) => self.value(&three[2]),
                other => Err(EvaluationError::other(format!(
                    "what stands before ? is {}; it must be true or false",
                    other.kind()
                ))),
            },
            Tree::Call(function, args) => {
                let args = self.values(args)?;
                function.call(&args, &mut self.meter)
            }
            Tree::Matches(of, pattern) => {
                let text = self.value(of)?;
                is_match(pattern, &text, &mut self.meter)
            }
            Tree::Macro(tree) => self.expand(tree),
        }
    }

    fn values(&mut self, trees: &[Tree]) -> Result<Vec<Value>> {
        trees.iter().map(|tree| self.value(tree)).collect()
    }

    fn map(&mut self, entries: &[(Tree, Tree)]) -> Result<Value> {
        let mut pairs: Vec<(Arc<str>, Value)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Value::Text(key) = self.value(key)? else {
                return Err(EvaluationError::other("a key of an object must be a string"));
            };
            pairs.push((key, self.value(value)?));
        }
        let map = Map::new(pairs);
        if map.len() < entries.len() {
            return Err(EvaluationError::other("an object has a key twice"));
        }
        made(Value::Map(map))
    }

    fn index(&mut self, whole: &Tree, of: &Tree, index: &Tree) -> Result<Value> {
        let (value, index) = (self.value(of)?, self.value(index)?);
        let missing = || EvaluationError::missing(&whole.shown());
        match (&value, &index) {
            (Value::Map(map), Value::Text(key)) => map.get(key).cloned().ok_or_else(missing),
            (Value::List(list), Value::Int(at)) => {
                let at = usize::try_from(*at).ok();
                at.and_then(|at| list.as_slice().get(at)).cloned().ok_or_else(missing)
            }
            _ => {
                let (value, index) = (value.kind(), index.kind());
                Err(EvaluationError::other(format!(
                    "`{}`: {value} has no element by {index}",
                    whole.shown()
                )))
            }
        }
    }

    /// Is it there? Absent or null on the way is a no; a wrong type is an error.
    fn has(&mut self, of: &Tree, field: &str) -> Result<bool> {
        let value = match of {
            // Of a path only what was asked for is noted, not all that stands around it.
            Tree::Path(path) => read(path, self.scope, &mut Reads::unnoted()),
            of => self.value(of),
        };
        let value = match value {
            Ok(value) => value,
            Err(error) if error.is_missing() => return Ok(false),
            Err(error) => return Err(error),
        };
        match &value {
            Value::Map(map) => {
                if let (Some(value), Tree::Path(path)) = (map.get(field), of) {
                    self.reads.note(&format!("{}.{field}", path.text).into(), value);
                }
                Ok(map.get(field).is_some())
            }
            Value::Null => Ok(false),
            other => Err(no_fields(other, field, &of.shown())),
        }
    }

    /// `&&` and `||` as CEL has them: whichever side settles it does, even if the other is an
    /// error. A limit is never overruled.
    fn logical(&mut self, left: &Tree, right: &Tree, settles: bool) -> Result<Value> {
        let left = self.truth(left);
        match &left {
            Ok(truth) if *truth == settles => return Ok(Value::Bool(settles)),
            Err(error) if is_final(error) => return left.map(Value::Bool),
            _ => {}
        }
        let right = self.truth(right);
        match &right {
            Ok(truth) if *truth == settles => Ok(Value::Bool(settles)),
            Err(error) if is_final(error) => right.map(Value::Bool),
            _ => left.and(right).map(Value::Bool),
        }
    }

    fn truth(&mut self, tree: &Tree) -> Result<bool> {
        match self.value(tree)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(EvaluationError::other(format!(
                "{} stands where true or false must",
                other.kind()
            ))),
        }
    }

    fn expand(&mut self, tree: &MacroTree) -> Result<Value> {
        let elements: Vec<Value> = match self.value(&tree.range)? {
            Value::List(list) => list.as_slice().to_vec(),
            Value::Map(map) => {
                map.entries().iter().map(|(key, _)| Value::Text(Arc::clone(key))).collect()
            }
            other => {
                return Err(EvaluationError::other(format!(
                    "`{}` is {}; only lists and objects can be walked",
                    tree.range.shown(),
                    other.kind()
                )));
            }
        };
        self.meter.spend(elements.len() as u64)?;
        match tree.kind {
            Macro::All => self.quantify(tree, elements, false),
            Macro::Exists => self.quantify(tree, elements, true),
            Macro::ExistsOne => {
                let mut count = 0;
                for element in elements {
                    count += u32::from(self.ask(tree.body.as_ref(), element)?);
                }
                Ok(Value::Bool(count == 1))
            }
            Macro::Filter | Macro::Map => self.gather(tree, elements),
        }
    }

    /// `all` and `exists`: a row of `&&` or `||`, with their errors.
    fn quantify(&mut self, tree: &MacroTree, elements: Vec<Value>, settles: bool) -> Result<Value> {
        let mut error = None;
        for element in elements {
            match self.ask(tree.body.as_ref(), element) {
                Ok(truth) if truth == settles => return Ok(Value::Bool(settles)),
                Ok(_) => {}
                Err(reason) if is_final(&reason) => return Err(reason),
                Err(reason) => error = error.or(Some(reason)),
            }
        }
        error.map_or(Ok(Value::Bool(!settles)), Err)
    }

    fn gather(&mut self, tree: &MacroTree, elements: Vec<Value>) -> Result<Value> {
        let mut gathered = Vec::new();
        let mut bytes = 0_usize;
        for element in elements {
            if tree.filter.is_some() && !self.ask(tree.filter.as_ref(), element.clone())? {
                continue;
            }
            let value = match &tree.body {
                Some(body) => self.with(element, |walk| walk.value(body))?,
                None => element,
            };
            // Counted on the way: what is shared takes no memory and could grow without end.
            bytes = bytes.saturating_add(value.bytes() + 1);
            if bytes > EXPRESSION_OUTPUT_BYTES_MAX {
                return Err(too_large("a list", bytes));
            }
            gathered.push(value);
        }
        made(Value::list(gathered))
    }

    fn ask(&mut self, tree: Option<&Tree>, element: Value) -> Result<bool> {
        let Some(tree) = tree else { return Ok(true) };
        self.with(element, |walk| walk.truth(tree))
    }

    fn with<T>(&mut self, element: Value, ask: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.locals.push(element);
        let answer = ask(self);
        self.locals.pop();
        answer
    }
}

fn is_final(error: &EvaluationError) -> bool {
    error.kind == super::EvaluationErrorKind::Limit
}

fn read(path: &StaticPath, scope: &dyn Scope, reads: &mut Reads) -> Result<Value> {
    let Some((root, fields)) = path.segments.split_first() else {
        return Err(EvaluationError::missing(&path.text));
    };
    let mut value = scope.root(root).ok_or_else(|| EvaluationError::missing(root))?;
    for (at, field) in fields.iter().enumerate() {
        value = select(&value, field, || path.segments[..=at].join("."))?;
    }
    reads.note(&path.text, &value);
    Ok(value)
}

fn select(value: &Value, field: &str, of: impl FnOnce() -> String) -> Result<Value> {
    match value {
        Value::Map(map) => match map.get(field) {
            Some(value) => Ok(value.clone()),
            None => Err(EvaluationError::missing(&format!("{}.{field}", of()))),
        },
        Value::Null => Err(EvaluationError::missing(&format!("{}.{field}", of()))),
        other => Err(no_fields(other, field, &of())),
    }
}

fn no_fields(value: &Value, field: &str, of: &str) -> EvaluationError {
    let kind = value.kind();
    EvaluationError::other(format!("`{of}` is {kind}; it has no field `{field}`"))
}

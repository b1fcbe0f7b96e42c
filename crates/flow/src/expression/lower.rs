//! From text to our tree: the `cel` crate parses, and what it found is checked and put in order.
//! Its macros are switched off, so that `map` and its like come as they are written.
#![allow(clippy::wildcard_enum_match_arm, reason = "what is not named is no plain name")]

use std::sync::Arc;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use tenure_value::Value;
use tenure_value::limits::PATH_SEGMENTS_MAX;

use super::ExpressionFault;
use super::functions::{Function, compile_pattern};
use super::tree::{Binary, Macro, MacroTree, StaticPath, Tree};
use crate::fault::FaultCode;
use crate::limits::EXPRESSION_BYTES_MAX;

/// Names that CEL keeps for itself.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The tree of `context.a.b`, without a parser. Anything that is not plainly a path is left to it.
pub(super) fn plain_path(text: &str) -> Option<Tree> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return None;
    }
    let segments: Vec<Arc<str>> = text.split('.').map(Arc::from).collect();
    let is_plain = segments.len() <= PATH_SEGMENTS_MAX && segments.iter().all(|s| is_name(s));
    is_plain.then(|| Tree::Path(StaticPath::of(segments)))
}

pub(crate) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !RESERVED.contains(&text)
}

/// Parses a text whose bounds were checked.
pub(super) fn parse(text: &str) -> Result<Tree, ExpressionFault> {
    let parser = cel::Env::default().with_optional_support(false).parser();
    let parsed = parser.parse(text).map_err(|errors| {
        let first = errors.errors.first();
        let reason = first.map_or_else(String::new, |error| {
            let (line, column) = error.pos;
            let reason = error.msg.lines().next().unwrap_or_default();
            let at =
                if line > 0 { format!(" (line {line}, column {column})") } else { String::new() };
            format!(": {reason}{at}")
        });
        ExpressionFault::bad(format!("the expression does not parse{reason}"))
    })?;
    Lower { variables: Vec::new() }.tree(&parsed)
}

struct Lower {
    /// The variables of the macros around, the innermost last.
    variables: Vec<Arc<str>>,
}

impl Lower {
    fn tree(&mut self, expression: &IdedExpr) -> Result<Tree, ExpressionFault> {
        match &expression.expr {
            Expr::Ident(name) => Ok(self.ident(name)),
            Expr::Literal(literal) => value_of(literal).map(Tree::Literal),
            Expr::Select(select) if select.test => {
                Ok(Tree::Has(Box::new(self.tree(&select.operand)?), select.field.as_str().into()))
            }
            Expr::Select(select) => {
                Ok(self.tree(&select.operand)?.select(select.field.as_str().into()))
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                if !list.optional_indices.is_empty() {
                    return Err(ExpressionFault::bad("there are no optional elements here"));
                }
                Ok(Tree::List(self.trees(&list.elements)?))
            }
            Expr::Map(map) => {
                let entries = map.entries.iter().map(|entry| self.entry(&entry.expr));
                Ok(Tree::Map(entries.collect::<Result<_, _>>()?))
            }
            Expr::Struct(object) => Err(ExpressionFault::bad(format!(
                "there are no types here, so none called `{}`; write an object as {{'key': value}}",
                object.type_name
            ))),
            Expr::Comprehension(_) | Expr::Unspecified => {
                Err(ExpressionFault::bad("the expression does not parse"))
            }
        }
    }

    fn trees(&mut self, expressions: &[IdedExpr]) -> Result<Vec<Tree>, ExpressionFault> {
        expressions.iter().map(|expression| self.tree(expression)).collect()
    }

    fn pair(&mut self, expressions: &[IdedExpr]) -> Result<Box<[Tree; 2]>, ExpressionFault> {
        let [left, right] = expressions else { return Err(malformed()) };
        Ok(Box::new([self.tree(left)?, self.tree(right)?]))
    }

    fn ident(&self, name: &str) -> Tree {
        match self.variables.iter().rev().position(|variable| &**variable == name) {
            Some(out) => Tree::Local { name: name.into(), out },
            // A leading dot asks for a root past all variables; there is nothing else it could be.
            None => Tree::Path(StaticPath::of(vec![name.trim_start_matches('.').into()])),
        }
    }

    fn entry(&mut self, entry: &EntryExpr) -> Result<(Tree, Tree), ExpressionFault> {
        let EntryExpr::MapEntry(entry) = entry else { return Err(malformed()) };
        let key = self.tree(&entry.key)?;
        if let Tree::Literal(literal) = &key
            && literal.as_text().is_none()
        {
            let literal = literal.to_json();
            return Err(ExpressionFault::bad(format!(
                "the key {literal} is no string; write it in quotes"
            )));
        }
        Ok((key, self.tree(&entry.value)?))
    }

    fn call(&mut self, call: &CallExpr) -> Result<Tree, ExpressionFault> {
        let (name, args) = (call.func_name.as_str(), call.args.as_slice());
        if let Some(target) = &call.target {
            return self.method(name, target, args);
        }
        if let Some(operator) = binary(name) {
            return Ok(Tree::Binary(operator, self.pair(args)?));
        }
        match (name, args) {
            (operators::LOGICAL_AND, _) => Ok(Tree::And(self.pair(args)?)),
            (operators::LOGICAL_OR, _) => Ok(Tree::Or(self.pair(args)?)),
            (operators::INDEX, _) => Ok(Tree::Index(self.pair(args)?)),
            (operators::LOGICAL_NOT, [of]) => Ok(Tree::Not(Box::new(self.tree(of)?))),
            (operators::NEGATE, [of]) => Ok(Tree::Negate(Box::new(self.tree(of)?))),
            (operators::CONDITIONAL, [condition, then, otherwise]) => {
                let three = [self.tree(condition)?, self.tree(then)?, self.tree(otherwise)?];
                Ok(Tree::Conditional(Box::new(three)))
            }
            (operators::HAS, [of]) => self.has(of),
            (operators::HAS, _) => Err(ExpressionFault::bad("has() takes one path, as has(a.b)")),
            _ => self.function(name, args),
        }
    }

    fn has(&mut self, of: &IdedExpr) -> Result<Tree, ExpressionFault> {
        match &of.expr {
            Expr::Select(select) if !select.test => {
                Ok(Tree::Has(Box::new(self.tree(&select.operand)?), select.field.as_str().into()))
            }
            _ => Err(ExpressionFault::bad("has() takes a path with a dot, as has(a.b)")),
        }
    }

    fn function(&mut self, name: &str, args: &[IdedExpr]) -> Result<Tree, ExpressionFault> {
        let Some(function) = Function::named(name) else { return Err(unknown(name)) };
        let trees = self.trees(args)?;
        function.check_count(trees.len())?;
        finish(function, trees)
    }

    fn method(
        &mut self,
        name: &str,
        target: &IdedExpr,
        args: &[IdedExpr],
    ) -> Result<Tree, ExpressionFault> {
        if let Some(kind) = macro_named(name) {
            return self.macro_call(kind, name, target, args);
        }
        let Some(function) = Function::named(name).filter(|function| function.is_method()) else {
            return Err(unknown(name));
        };
        let mut trees = vec![self.tree(target)?];
        trees.extend(self.trees(args)?);
        function.check_count(trees.len())?;
        finish(function, trees)
    }

    fn macro_call(
        &mut self,
        kind: Macro,
        name: &str,
        target: &IdedExpr,
        args: &[IdedExpr],
    ) -> Result<Tree, ExpressionFault> {
        let (variable, filter, body) = match (kind, args) {
            (Macro::Filter, [variable, filter]) => (variable, Some(filter), None),
            (Macro::Map, [variable, filter, body]) => (variable, Some(filter), Some(body)),
            (_, [variable, body]) => (variable, None, Some(body)),
            _ => {
                return Err(ExpressionFault::bad(format!(
                    "{name}() takes a variable and an expression, as list.{name}(x, x.ok)"
                )));
            }
        };
        let Expr::Ident(variable) = &variable.expr else {
            return Err(ExpressionFault::bad(format!(
                "the first argument of {name}() is the name of its variable"
            )));
        };
        let variable: Arc<str> = variable.as_str().into();
        let range = self.tree(target)?;
        self.variables.push(variable);
        let filter = filter.map(|tree| self.tree(tree)).transpose();
        let body = body.map(|tree| self.tree(tree)).transpose();
        self.variables.pop();
        let (filter, body) = (filter?, body?);
        Ok(Tree::Macro(Box::new(MacroTree { kind, range, filter, body })))
    }
}

impl Tree {
    /// A field of this: the path grows as long as it is nothing else.
    fn select(self, field: Arc<str>) -> Tree {
        match self {
            Tree::Path(path) => {
                let mut segments = path.segments.to_vec();
                segments.push(field);
                Tree::Path(StaticPath::of(segments))
            }
            other => Tree::Select(Box::new(other), field),
        }
    }
}

/// A pattern that is known is compiled now, so that a bad one is a fault and not an error later.
fn finish(function: Function, mut trees: Vec<Tree>) -> Result<Tree, ExpressionFault> {
    if function == Function::Matches
        && let Some(Tree::Literal(Value::Text(pattern))) = trees.get(1)
    {
        let pattern = compile_pattern(pattern).map_err(ExpressionFault::bad)?;
        return Ok(Tree::Matches(Box::new(trees.swap_remove(0)), pattern));
    }
    Ok(Tree::Call(function, trees))
}

fn value_of(literal: &LiteralValue) -> Result<Value, ExpressionFault> {
    Ok(match literal {
        LiteralValue::Null => Value::Null,
        LiteralValue::Boolean(truth) => Value::Bool(*truth.inner()),
        LiteralValue::Int(number) => Value::Int(*number.inner()),
        LiteralValue::UInt(number) => Value::uint(*number.inner()),
        LiteralValue::String(text) => Value::text(text.inner()),
        LiteralValue::Double(number) => Value::float(*number.inner())
            .ok_or_else(|| ExpressionFault::bad("a number is too large"))?,
        LiteralValue::Bytes(_) => {
            return Err(ExpressionFault::bad("there are no bytes here; use a string"));
        }
    })
}

fn binary(name: &str) -> Option<Binary> {
    Some(match name {
        operators::ADD => Binary::Add,
        operators::SUBSTRACT => Binary::Subtract,
        operators::MULTIPLY => Binary::Multiply,
        operators::DIVIDE => Binary::Divide,
        operators::MODULO => Binary::Modulo,
        operators::EQUALS => Binary::Equals,
        operators::NOT_EQUALS => Binary::NotEquals,
        operators::LESS => Binary::Less,
        operators::LESS_EQUALS => Binary::LessEquals,
        operators::GREATER => Binary::Greater,
        operators::GREATER_EQUALS => Binary::GreaterEquals,
        operators::IN => Binary::In,
        _ => return None,
    })
}

fn macro_named(name: &str) -> Option<Macro> {
    Some(match name {
        operators::ALL => Macro::All,
        operators::EXISTS => Macro::Exists,
        operators::EXISTS_ONE | "existsOne" => Macro::ExistsOne,
        operators::FILTER => Macro::Filter,
        operators::MAP => Macro::Map,
        _ => return None,
    })
}

fn unknown(name: &str) -> ExpressionFault {
    let known = Function::names().join(", ");
    let message = format!(
        "there is no function `{name}`; there are {known}, has, all, exists, exists_one, filter, map"
    );
    ExpressionFault { code: FaultCode::UnknownFunction, message }
}

fn malformed() -> ExpressionFault {
    ExpressionFault::bad("the expression does not parse")
}

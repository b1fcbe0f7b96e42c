//! An expression as the evaluator walks it. No deeper than the text was allowed to be.
#![allow(clippy::wildcard_enum_match_arm, reason = "what is not named spells no name")]

use std::sync::Arc;

use regex::Regex;
use tenure_value::Value;

use super::functions::Function;

#[derive(Clone, Debug)]
pub(super) enum Tree {
    Literal(Value),
    /// A root and the fields below it: what is read from the scope.
    Path(StaticPath),
    /// A macro's variable, by how many macros stand between.
    Local {
        name: Arc<str>,
        out: usize,
    },
    Select(Box<Tree>, Arc<str>),
    Index(Box<[Tree; 2]>),
    Has(Box<Tree>, Arc<str>),
    List(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
    Not(Box<Tree>),
    Negate(Box<Tree>),
    And(Box<[Tree; 2]>),
    Or(Box<[Tree; 2]>),
    Binary(Binary, Box<[Tree; 2]>),
    Conditional(Box<[Tree; 3]>),
    Call(Function, Vec<Tree>),
    /// `matches` with a pattern that is known, compiled once.
    Matches(Box<Tree>, Regex),
    Macro(Box<MacroTree>),
}

#[derive(Clone, Debug)]
pub(super) struct StaticPath {
    /// `context.a.b`
    pub(super) text: Arc<str>,
    /// `context`, `a`, `b`
    pub(super) segments: Arc<[Arc<str>]>,
}

impl StaticPath {
    pub(super) fn of(segments: Vec<Arc<str>>) -> Self {
        Self { text: segments.join(".").into(), segments: segments.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equals,
    NotEquals,
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
    In,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Macro {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

#[derive(Clone, Debug)]
pub(super) struct MacroTree {
    pub(super) kind: Macro,
    pub(super) range: Tree,
    /// Which elements count: of `filter`, and of `map` with three arguments.
    pub(super) filter: Option<Tree>,
    /// What is asked or made of each element; nothing for `filter`.
    pub(super) body: Option<Tree>,
}

/// A root that an expression uses, and the fields asked of it as far as the text says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// `outputs`
    pub(crate) root: Arc<str>,
    /// `score`, `_branches`
    pub(crate) fields: Vec<Arc<str>>,
    /// Is it then asked for an element whose name the text does not say?
    pub(crate) is_open: bool,
}

impl Name {
    /// What follows an element that the text does not name is not known.
    fn push(&mut self, field: &Arc<str>) {
        if !self.is_open {
            self.fields.push(Arc::clone(field));
        }
    }
}

impl Tree {
    /// Every use of a root, in the order of the text.
    pub(super) fn names(&self) -> Vec<Name> {
        let mut names = Vec::new();
        self.collect(&mut names);
        names
    }

    fn collect(&self, names: &mut Vec<Name>) {
        if let Some(name) = self.name() {
            names.push(name);
            return self.collect_indexes(names);
        }
        match self {
            Tree::Literal(_) | Tree::Path(_) | Tree::Local { .. } => {}
            Tree::Select(of, _) | Tree::Has(of, _) | Tree::Not(of) | Tree::Negate(of) => {
                of.collect(names);
            }
            Tree::Matches(of, _) => of.collect(names),
            Tree::Index(pair) | Tree::And(pair) | Tree::Or(pair) | Tree::Binary(_, pair) => {
                pair.iter().for_each(|part| part.collect(names));
            }
            Tree::Conditional(three) => three.iter().for_each(|part| part.collect(names)),
            Tree::List(parts) | Tree::Call(_, parts) => {
                parts.iter().for_each(|part| part.collect(names));
            }
            Tree::Map(entries) => {
                for (key, value) in entries {
                    key.collect(names);
                    value.collect(names);
                }
            }
            Tree::Macro(tree) => {
                tree.range.collect(names);
                let parts = [&tree.filter, &tree.body];
                parts.into_iter().flatten().for_each(|part| part.collect(names));
            }
        }
    }

    /// What stands in the brackets of a name is an expression of its own.
    fn collect_indexes(&self, names: &mut Vec<Name>) {
        let mut tree = self;
        loop {
            tree = match tree {
                Tree::Select(of, _) | Tree::Has(of, _) => of,
                Tree::Index(pair) => {
                    pair[1].collect(names);
                    &pair[0]
                }
                _ => return,
            }
        }
    }

    /// The root and fields that this part spells: by dots, by strings in brackets, or in `has`.
    fn name(&self) -> Option<Name> {
        match self {
            Tree::Path(path) => {
                let (root, fields) = path.segments.split_first()?;
                Some(Name { root: Arc::clone(root), fields: fields.to_vec(), is_open: false })
            }
            Tree::Select(of, field) | Tree::Has(of, field) => {
                let mut name = of.name()?;
                name.push(field);
                Some(name)
            }
            Tree::Index(pair) => {
                let mut name = pair[0].name()?;
                match &pair[1] {
                    Tree::Literal(Value::Text(field)) => name.push(field),
                    _ => name.is_open = true,
                }
                Some(name)
            }
            Tree::Literal(_) | Tree::Local { .. } | Tree::List(_) | Tree::Map(_) => None,
            Tree::Not(_) | Tree::Negate(_) | Tree::And(_) | Tree::Or(_) | Tree::Binary(..) => None,
            Tree::Conditional(_) | Tree::Call(..) | Tree::Matches(..) | Tree::Macro(_) => None,
        }
    }

    /// How a path to this part is written, for the sentence that says what is missing.
    pub(super) fn shown(&self) -> String {
        match self {
            Tree::Path(path) => path.text.to_string(),
            Tree::Local { name, .. } => name.to_string(),
            Tree::Select(of, field) => format!("{}.{field}", of.shown()),
            Tree::Index(pair) => match &pair[1] {
                Tree::Literal(index) => format!("{}[{}]", pair[0].shown(), index.to_json()),
                _ => format!("{}[…]", pair[0].shown()),
            },
            Tree::Literal(_) | Tree::Has(..) | Tree::List(_) | Tree::Map(_) | Tree::Not(_) => {
                "(…)".to_owned()
            }
            Tree::Negate(_) | Tree::And(_) | Tree::Or(_) | Tree::Binary(..) => "(…)".to_owned(),
            Tree::Conditional(_) | Tree::Call(..) | Tree::Matches(..) | Tree::Macro(_) => {
                "(…)".to_owned()
            }
        }
    }
}

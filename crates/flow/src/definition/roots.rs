//! Which names mean something in which place.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::fields::Findings;
use super::graph::Graph;
use super::group::{Groups, Linked};
use super::name::suggestion;
use super::node::ReadNode;
use super::{GroupIndex, NodeIndex, Spawn};
use crate::expression::{Expression, Name};
use crate::fault::FaultCode;

/// An expression and where it stands.
pub(super) struct Use {
    pub(super) pointer: String,
    pub(super) expression: Expression,
    pub(super) site: Site,
}

/// What kind of place it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SiteKind {
    /// A condition, a collection, a key, a count: after a node, before the next.
    Routing,
    /// A payload, and what a wait begins with.
    InputMapping,
    /// After a result.
    OutputMapping,
    /// Once for each branch of a group.
    Merge,
    /// When the run is over.
    FinalOutput,
}

/// Which place it is.
#[derive(Clone, Debug)]
pub(super) struct Site {
    place: SiteKind,
    node: Option<usize>,
    transition: Option<usize>,
    /// Variables that are bound here and nowhere else.
    pub(super) variables: Vec<Arc<str>>,
}

impl Site {
    pub(super) fn of_node(place: SiteKind, node: usize) -> Self {
        Self { place, node: Some(node), transition: None, variables: Vec::new() }
    }

    pub(super) fn of_transition(place: SiteKind, transition: usize) -> Self {
        Self { place, node: None, transition: Some(transition), variables: Vec::new() }
    }

    pub(super) fn final_output() -> Self {
        Self { place: SiteKind::FinalOutput, node: None, transition: None, variables: Vec::new() }
    }
}

impl SiteKind {
    fn roots(self) -> &'static [&'static str] {
        match self {
            SiteKind::Routing | SiteKind::InputMapping => {
                &["input", "context", "outputs", "error", "branch", "run"]
            }
            SiteKind::OutputMapping => {
                &["input", "context", "outputs", "error", "branch", "run", "result"]
            }
            SiteKind::Merge => &["input", "context", "outputs", "branch", "run"],
            SiteKind::FinalOutput => &["input", "context", "outputs", "run"],
        }
    }
}

const BRANCH_FIELDS: [&str; 7] = ["index", "total", "key", "item", "output", "error", "group"];
const RUN_FIELDS: [&str; 3] = ["id", "workflow", "version"];

/// A foreach and where its variable can be in scope.
struct Variable {
    name: Arc<str>,
    group: Option<GroupIndex>,
    /// Nodes that its branches can come to.
    reached: Vec<bool>,
}

pub(super) struct Names<'a> {
    node_names: BTreeSet<&'a str>,
    nodes: &'a [ReadNode],
    transitions: &'a [Linked<'a>],
    groups: &'a Groups,
    variables: Vec<Variable>,
}

impl<'a> Names<'a> {
    pub(super) fn of(
        nodes: &'a [ReadNode],
        transitions: &'a [Linked<'a>],
        groups: &'a Groups,
        graph: &Graph,
    ) -> Self {
        let variable = |(place, transition): (usize, &Linked<'_>)| {
            let Some(Spawn::Foreach(each)) = &transition.read.spawn else { return None };
            Some(Variable {
                name: Arc::clone(&each.item_var),
                group: groups.opens[place],
                reached: graph.reached_from(transition.to.unwrap_or(NodeIndex(u32::MAX))),
            })
        };
        let variables = transitions.iter().enumerate().filter_map(variable).collect();
        let node_names = nodes.iter().filter_map(|node| node.name.as_deref()).collect();
        Self { node_names, nodes, transitions, groups, variables }
    }

    pub(super) fn check(&self, used: &Use, found: &mut Findings) {
        for name in used.expression.names() {
            self.check_name(&name, used, found);
        }
    }

    fn check_name(&self, name: &Name, used: &Use, found: &mut Findings) {
        let site = &used.site;
        let root = &*name.root;
        let is_root = site.place.roots().contains(&root);
        if !is_root && !self.is_variable(root, site) {
            found.add(&used.pointer, FaultCode::UnknownRoot, self.sentence(root, site));
            return;
        }
        let Some(field) = name.fields.first().filter(|_| is_root) else { return };
        let fields: &[&str] = match root {
            "outputs" if !self.node_names.contains(&**field) => {
                let near = suggestion(field, self.node_names.iter().copied());
                let message = format!("there is no node `{field}`{near}");
                return found.add(&used.pointer, FaultCode::UnknownRef, message);
            }
            "branch" => &BRANCH_FIELDS,
            "run" => &RUN_FIELDS,
            _ => return,
        };
        if !fields.contains(&&**field) {
            let near = suggestion(field, fields.iter().copied());
            let message = format!("`{root}` has no `{field}`{near}");
            found.add(&used.pointer, FaultCode::UnknownRoot, message);
        }
    }

    /// The names that mean something in a place.
    fn sentence(&self, root: &str, site: &Site) -> String {
        let variables = self.variables.iter().map(|variable| &*variable.name);
        let in_scope = variables.filter(|name| self.is_variable(name, site));
        let own = site.variables.iter().map(|name| &**name);
        let mut known: Vec<&str> =
            site.place.roots().iter().copied().chain(in_scope).chain(own).collect();
        known.sort_unstable();
        known.dedup();
        let near = suggestion(root, known.iter().copied());
        format!("`{root}` means nothing here; there are {}{near}", known.join(", "))
    }

    fn is_variable(&self, name: &str, site: &Site) -> bool {
        site.variables.iter().any(|own| &**own == name)
            || self.variables.iter().any(|v| &*v.name == name && self.is_in_scope(v, site))
    }

    fn is_in_scope(&self, variable: &Variable, site: &Site) -> bool {
        let reaches = |node: Option<usize>| {
            node.is_some_and(|node| variable.reached.get(node).copied().unwrap_or(false))
        };
        let from = |transition: usize| self.transitions[transition].from.map(NodeIndex::get);
        match site.place {
            SiteKind::FinalOutput => false,
            SiteKind::Routing | SiteKind::InputMapping | SiteKind::OutputMapping => {
                reaches(site.node) || site.transition.is_some_and(|t| reaches(from(t)))
            }
            SiteKind::Merge => site.transition.is_some_and(|transition| {
                let group = self.groups.joins[transition];
                (group.is_some() && group == variable.group) || reaches(from(transition))
            }),
        }
    }

    /// Which nodes' `_branches` some expression names, or may name.
    pub(super) fn kept_branches(&self, uses: &[Use]) -> Vec<bool> {
        let mut kept = vec![false; self.nodes.len()];
        let names = uses.iter().flat_map(|used| used.expression.names());
        for name in names.filter(|name| &*name.root == "outputs") {
            let is_named = |at: usize| match name.fields.get(at) {
                Some(field) => &**field == "_branches",
                // An element whose name only the values will tell.
                None => name.is_open,
            };
            match name.fields.first() {
                None if name.is_open => kept.fill(true),
                Some(node) if is_named(1) => {
                    let place = self.nodes.iter().position(|n| n.name.as_ref() == Some(node));
                    if let Some(place) = place {
                        kept[place] = true;
                    }
                }
                Some(_) | None => {}
            }
        }
        kept
    }
}

//! A workflow as it was written, checked and made ready for the engine: names are indexes,
//! expressions and schemas are compiled, defaults are filled in, the outgoing transitions of each
//! node are in the order in which they are tried.

mod compile;
mod fields;
mod graph;
mod group;
mod join;
mod kinds;
mod name;
mod node;
mod roots;
mod synchronization;
mod transition;

use std::fmt;
use std::sync::Arc;

pub use kinds::*;
pub use synchronization::*;

use tenure_value::Value;

use crate::expression::Expression;
use crate::fault::{Fault, FaultCode, TextPosition};
use crate::limits::DEFINITION_BYTES_MAX;
use crate::mapping::Mapping;
use crate::schema::Schema;
use crate::yaml;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The place in the definition's list.
            #[must_use]
            pub fn get(self) -> usize {
                self.0 as usize
            }

            pub(crate) fn of(place: usize) -> Self {
                Self(u32::try_from(place).expect("the lists of a definition are short"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

index! {
    /// A node, by its place in [`Definition::nodes`].
    NodeIndex
}
index! {
    /// A transition, by its place in [`Definition::transitions`]; this is the definition order.
    TransitionIndex
}
index! {
    /// A sibling group, by its place in [`Definition::groups`].
    GroupIndex
}

/// A workflow, checked and compiled. Nothing in it ever changes; share it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The workflow's name.
    pub name: Arc<str>,
    /// As it was given, keys in order. Two definitions with equal sources are one version.
    pub source: Value,
    /// BLAKE3 of the source's JSON text.
    pub hash: [u8; 32],
    /// What a run's input must satisfy.
    pub input_schema: Option<Schema>,
    /// What the context must satisfy.
    pub context_schema: Option<Schema>,
    /// What the context is at the start: the defaults of its schema.
    pub context_defaults: Value,
    /// What a run's output must satisfy.
    pub output_schema: Option<Schema>,
    /// Where a run begins.
    pub initial_node: NodeIndex,
    /// How long a run may take.
    pub timeout_ms: Option<u64>,
    /// How a run ends whose time is over.
    pub on_timeout: OnRunTimeout,
    /// What happens if a node has outgoing transitions but none matches.
    pub on_no_match: OnNoMatch,
    /// The bounds of a run.
    pub limits: Limits,
    /// The nodes in definition order.
    pub nodes: Vec<Node>,
    /// The transitions in definition order.
    pub transitions: Vec<Transition>,
    /// The sibling groups, in the order of their first transition.
    pub groups: Vec<Group>,
    /// The run's output; absent values are left out of it. Targets are paths in the output.
    pub output_mapping: Option<Mapping>,
    /// What becomes of artifacts.
    pub artifacts: Artifacts,
}

/// How a run ends whose time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRunTimeout {
    /// `TIMED_OUT`.
    #[default]
    Fail,
    /// `CANCELED`.
    Cancel,
}

/// What happens if a node has outgoing transitions but none matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnNoMatch {
    /// The token fails with `NO_MATCH`, or `LOOP_LIMIT`.
    #[default]
    Fail,
    /// The token ends.
    End,
}

/// The bounds of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tokens that a run may make.
    pub max_tokens: u64,
    /// Branches of one fan-out.
    pub max_spawn: u32,
    /// Groups inside groups.
    pub max_depth: u32,
    /// Runs ever started in the tree of child runs below a run, itself included.
    pub max_runs: u32,
    /// Steps of one cascade.
    pub max_cascade: u32,
}

/// What becomes of artifacts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Artifacts {
    /// When they are committed.
    pub commit_on: CommitOn,
    /// What happens if two have one name.
    pub on_conflict: OnArtifactConflict,
}

/// When a run's artifacts are committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitOn {
    /// When the run is `COMPLETED`.
    #[default]
    Success,
    /// However it ends.
    Always,
}

/// What happens if two artifacts of a run have one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnArtifactConflict {
    /// The path of its branch is put before the name.
    #[default]
    Qualify,
    /// The one of the highest branch index counts.
    LastWins,
    /// It is an error.
    Fail,
}

/// A way from one node to another.
#[derive(Clone, Debug)]
pub struct Transition {
    /// Its `ref`, if it has one.
    pub name: Option<Arc<str>>,
    /// Where it begins.
    pub from: NodeIndex,
    /// Where it leads.
    pub to: NodeIndex,
    /// Its tier; low ones are tried first.
    pub priority: i32,
    /// Which ends of a node it fits.
    pub outcome: Outcome,
    /// Whether it matches; without one it does.
    pub condition: Option<Expression>,
    /// How often a token's line may take it.
    pub loop_max: Option<u32>,
    /// The branches it opens, if it is a fan-out.
    pub fan_out: Option<FanOut>,
    /// The group it joins, if it does.
    pub joins: Option<GroupIndex>,
}

/// Which ends of a node a transition fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// A success.
    #[default]
    Success,
    /// A failure.
    Error,
    /// Both.
    Any,
}

/// The branches that a transition opens.
#[derive(Clone, Debug)]
pub struct FanOut {
    /// The group they belong to.
    pub group: GroupIndex,
    /// How many there are, and of what.
    pub spawn: Spawn,
}

/// How many branches, and of what.
#[derive(Clone, Debug)]
pub enum Spawn {
    /// As many as the number says, at least one.
    Count(u32),
    /// As many as the expression says; 0 counts as empty, less is `SPAWN_INVALID`.
    From(Expression),
    /// One for each item of a list.
    Foreach(Foreach),
}

/// One branch for each item of a list.
#[derive(Clone, Debug)]
pub struct Foreach {
    /// The list.
    pub collection: Expression,
    /// What the item is called in the branch.
    pub item_var: Arc<str>,
    /// The item's key; the item is bound to its name.
    pub key: Option<Expression>,
    /// How many branches run at a time.
    pub max_concurrency: Option<u32>,
    /// What happens if the list is empty.
    pub on_empty: OnEmpty,
    /// What happens if there is `null` instead of a list.
    pub on_missing: OnMissing,
}

/// What happens if there is nothing to branch over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEmpty {
    /// The join sees zero branches.
    #[default]
    Join,
    /// The token ends.
    Skip,
    /// `EMPTY_FOREACH`.
    Fail,
}

/// What happens if there is `null` instead of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// `FOREACH_MISSING`.
    #[default]
    Fail,
    /// It counts as an empty list.
    Empty,
}

/// A sibling group: what a routing step opens as one.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name: `sibling_group`, or the `ref` of its only transition.
    pub name: Arc<str>,
    /// The node whose routing opens it.
    pub from: NodeIndex,
    /// The tier of its transitions.
    pub priority: i32,
    /// Its fan-out transitions, in definition order.
    pub transitions: Vec<TransitionIndex>,
    /// Where its branches meet, if they do.
    pub join: Option<Join>,
}

/// Where the branches of a group meet.
#[derive(Clone, Debug)]
pub struct Join {
    /// The node that goes on.
    pub target: NodeIndex,
    /// The transitions that join, in definition order.
    pub transitions: Vec<TransitionIndex>,
    /// What all of them agree on.
    pub synchronization: Synchronization,
}

impl Definition {
    /// Checks and compiles a definition. All faults are reported at once.
    pub fn compile(source: &Value) -> Result<Self, Vec<Fault>> {
        compile::compile(source)
    }

    /// A stand-in for a source that no longer compiles: it has its nodes, which do nothing, and leads
    /// nowhere. A run of it must not move.
    #[must_use]
    pub fn inert(name: &Arc<str>, source: &Value, nodes: &[Arc<str>]) -> Self {
        let node = |name: &Arc<str>| Node {
            name: Arc::clone(name),
            kind: NodeKind::Pass,
            input_mapping: None,
            output_mapping: Mapping::default(),
            output_schema: None,
            timeout_ms: None,
            on_success: Vec::new(),
            on_error: Vec::new(),
            keeps_branches: false,
        };
        Self {
            name: Arc::clone(name),
            source: source.clone(),
            hash: Self::hash_of(source),
            input_schema: None,
            context_schema: None,
            context_defaults: Value::empty_map(),
            output_schema: None,
            initial_node: NodeIndex(0),
            timeout_ms: None,
            on_timeout: OnRunTimeout::default(),
            on_no_match: OnNoMatch::default(),
            limits: Limits::default(),
            nodes: nodes.iter().map(node).collect(),
            transitions: Vec::new(),
            groups: Vec::new(),
            output_mapping: None,
            artifacts: Artifacts::default(),
        }
    }

    /// BLAKE3 of a source's JSON text, which tells one version from another.
    #[must_use]
    pub fn hash_of(source: &Value) -> [u8; 32] {
        *blake3::hash(source.to_json().as_bytes()).as_bytes()
    }

    /// Reads a definition from YAML text; faults say where in it.
    pub fn from_yaml(text: &str) -> Result<Self, Vec<Fault>> {
        let (source, places) = yaml::parse_placed(text).map_err(|fault| vec![fault])?;
        Self::compile(&source).map_err(|mut faults| {
            for fault in &mut faults {
                fault.place = places.find(&fault.pointer);
            }
            faults
        })
    }

    /// Reads a definition from JSON text. A key that comes twice and a number that cannot be held
    /// exactly are faults.
    pub fn from_json(text: &[u8]) -> Result<Self, Vec<Fault>> {
        if text.len() > DEFINITION_BYTES_MAX {
            let len = text.len();
            let message =
                format!("the text has {len} bytes; at most {DEFINITION_BYTES_MAX} are allowed");
            return Err(vec![Fault::new("", FaultCode::Syntax, message)]);
        }
        let source = Value::from_json_exact(text).map_err(|fault| {
            let place = TextPosition { line: fault.line, column: fault.column };
            let message = format!("the definition cannot be read: {}", fault.message);
            let fault = Fault::new(&fault.pointer, FaultCode::Syntax, message);
            vec![Fault { place: Some(place), ..fault }]
        })?;
        Self::compile(&source)
    }

    /// The node at that place.
    #[must_use]
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.get()]
    }

    /// The transition at that place.
    #[must_use]
    pub fn transition(&self, index: TransitionIndex) -> &Transition {
        &self.transitions[index.get()]
    }

    /// The group at that place.
    #[must_use]
    pub fn group(&self, index: GroupIndex) -> &Group {
        &self.groups[index.get()]
    }

    /// The node with that `ref`.
    #[must_use]
    pub fn find_node(&self, name: &str) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| &*node.name == name).map(NodeIndex::of)
    }
}

#[cfg(test)]
mod tests;

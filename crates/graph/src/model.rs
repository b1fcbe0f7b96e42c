//! The one shape of a graph: nodes and edges with positions, states and counts. The drawings read it,
//! and the HTTP API returns it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use tenure_flow::Definition;
use tenure_flow::definition::{NodeIndex, Outcome};
use utoipa::ToSchema;

use crate::geometry;
use crate::standing::Standing;
use crate::tally::{NodeCounts, Tally, Token};
use crate::words;

/// A definition, and the progress of a run in it. Positions are in units of one pixel at the usual
/// size of a drawing, from the top left corner.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Graph)]
pub struct Graph {
    /// The lines above a drawing: what it shows, such as `order 1`, and the state of that.
    #[serde(skip)]
    pub title: Vec<String>,
    /// Whether there is a run, or a definition alone.
    #[serde(skip)]
    pub has_run: bool,
    /// Tokens of the run that are counted.
    pub tokens: u64,
    /// Whether all tokens of the run are counted. The tokens of a very large run are counted up to a
    /// bound, in the order of their numbers.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// The width of the whole drawing.
    #[serde(serialize_with = "tenths")]
    pub width: f64,
    /// The height of the whole drawing.
    #[serde(serialize_with = "tenths")]
    pub height: f64,
    /// The nodes, in the order of the definition.
    pub nodes: Vec<Node>,
    /// The transitions, node by node, in the order in which they are tried.
    pub edges: Vec<Edge>,
}

/// A node of the workflow.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = GraphNode)]
pub struct Node {
    /// The node's name in the definition.
    pub name: String,
    /// `task`, `pass`, `workflow`, `signal` or `timer`.
    pub kind: &'static str,
    /// The queue, the signal, the delay or the child workflow.
    pub detail: String,
    /// Whether runs begin here.
    #[serde(rename = "initial")]
    pub is_initial: bool,
    /// The most urgent state among the node's tokens; null if no token was here.
    #[serde(rename = "state")]
    #[schema(value_type = Option<String>)]
    pub standing: Option<Standing>,
    /// The number of tokens in each state, the most urgent state first.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub counts: BTreeMap<Standing, u64>,
    /// The error codes of tokens that failed here, each once.
    pub errors: Vec<String>,
    /// The box of the node.
    #[serde(flatten)]
    pub area: Area,
}

/// A transition.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = GraphEdge)]
pub struct Edge {
    /// The index of the first node in `nodes`.
    pub from: usize,
    /// The index of the second node in `nodes`.
    pub to: usize,
    /// What the transition is for.
    pub kind: EdgeKind,
    /// When the transition is taken, and what it does.
    pub label: String,
    /// How many tokens took the transition.
    pub taken: u64,
    /// The progress of the group that the transition opens or joins.
    pub progress: Option<Progress>,
    /// The line from node to node, as the path data of SVG.
    pub path: String,
    /// The box of the label; null if there is no text.
    pub caption: Option<Caption>,
}

/// What an edge is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = GraphEdgeKind)]
pub enum EdgeKind {
    /// An ordinary transition.
    Plain,
    /// A transition after an error.
    Error,
    /// A transition that opens branches.
    FanOut,
    /// A transition to where branches meet.
    Join,
}

/// A rectangle, by its center.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = GraphArea)]
pub struct Area {
    /// The center, from the left.
    #[serde(serialize_with = "tenths")]
    pub x: f64,
    /// The center, from the top.
    #[serde(serialize_with = "tenths")]
    pub y: f64,
    /// The whole width.
    #[serde(serialize_with = "tenths")]
    pub width: f64,
    /// The whole height.
    #[serde(serialize_with = "tenths")]
    pub height: f64,
}

/// The text on an edge: its label in lines, then its figures.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = GraphCaption)]
pub struct Caption {
    /// The lines of the text.
    pub lines: Vec<String>,
    /// The box of the text.
    #[serde(flatten)]
    pub area: Area,
}

/// How many branches of a group have ended, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = GraphProgress)]
pub struct Progress {
    /// Branches that have ended.
    pub settled: u32,
    /// Branches in all.
    pub total: u32,
    /// How often the group was opened; the figures are those of the last time.
    pub opened: u32,
}

impl Progress {
    /// `3/5`, and how often the group was opened if that was more than once.
    #[must_use]
    pub fn words(self) -> String {
        let Self { settled, total, opened } = self;
        match opened {
            0 | 1 => format!("{settled}/{total}"),
            times => format!("{settled}/{total} in round {times}"),
        }
    }
}

impl Graph {
    /// The graph of a definition alone.
    #[must_use]
    pub fn of(definition: Arc<Definition>, title: Vec<String>) -> Self {
        Self { has_run: false, ..Self::of_tally(Tally::new(definition), title) }
    }

    /// The graph of a definition with a run's tokens, which are in the order of their numbers.
    #[must_use]
    pub fn of_run(definition: Arc<Definition>, title: Vec<String>, tokens: &[Token<'_>]) -> Self {
        let mut tally = Tally::new(definition);
        tokens.iter().for_each(|token| tally.add(*token));
        Self::of_tally(tally, title)
    }

    /// The graph of a run whose tokens were counted.
    #[must_use]
    pub fn of_tally(mut tally: Tally, title: Vec<String>) -> Self {
        let definition = Arc::clone(&tally.definition);
        let counts = tally.take_counts();
        let node = |(index, counts)| node(&definition, index, counts);
        let mut graph = Self {
            title,
            has_run: true,
            tokens: tally.tokens(),
            is_complete: true,
            width: 0.0,
            height: 0.0,
            nodes: counts.into_iter().enumerate().map(node).collect(),
            edges: edges(&tally),
        };
        geometry::place(&mut graph);
        graph
    }

    /// The edges that begin at a node.
    pub(crate) fn from(&self, node: usize) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.from == node)
    }
}

fn node(definition: &Definition, index: usize, counts: NodeCounts) -> Node {
    let node = &definition.nodes[index];
    Node {
        name: node.name.to_string(),
        kind: words::kind_name(&node.kind),
        detail: words::detail(&node.kind),
        is_initial: definition.initial_node.get() == index,
        standing: counts.by_standing.keys().next().copied(),
        counts: counts.by_standing,
        errors: counts.errors,
        area: Area::default(),
    }
}

fn edges(tally: &Tally) -> Vec<Edge> {
    let definition = &*tally.definition;
    let taken = tally.taken();
    let mut edges = Vec::new();
    for node in &definition.nodes {
        let mut tried: Vec<_> = node.on_success.iter().chain(&node.on_error).collect();
        tried.sort_by_key(|index| {
            let transition = definition.transition(**index);
            (transition.outcome == Outcome::Error, transition.priority, index.get())
        });
        tried.dedup();
        for index in tried {
            let transition = definition.transition(*index);
            let group = transition.fan_out.as_ref().map(|fan| fan.group).or(transition.joins);
            let group = group.map(|group| definition.group(group));
            edges.push(Edge {
                kind: words::kind(transition),
                label: words::label(definition, transition, group),
                taken: taken[index.get()],
                progress: group.and_then(|group| tally.progress(&group.name)),
                ..Edge::between(transition.from, transition.to)
            });
        }
    }
    edges.extend(otherwise(definition));
    edges
}

/// Where runs go on whose join has failed.
fn otherwise(definition: &Definition) -> Vec<Edge> {
    let mut edges = Vec::new();
    for group in &definition.groups {
        let Some(join) = &group.join else { continue };
        let Some(to) = join.synchronization.else_to else { continue };
        edges.push(Edge {
            kind: EdgeKind::Error,
            label: format!("if {} cannot be joined", group.name),
            ..Edge::between(join.target, to)
        });
    }
    edges
}

impl Edge {
    fn between(from: NodeIndex, to: NodeIndex) -> Self {
        Self {
            from: from.get(),
            to: to.get(),
            kind: EdgeKind::Plain,
            label: String::new(),
            taken: 0,
            progress: None,
            path: String::new(),
            caption: None,
        }
    }
}

/// Positions are finer than a screen shows; a tenth is enough.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn tenths<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 10.0).round() / 10.0)
}

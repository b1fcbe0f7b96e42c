//! The definition as a graph: what can be reached, and what could go round for ever.

use super::fields::Findings;
use super::group::{Groups, Linked};
use super::node::ReadNode;
use super::{NodeIndex, NodeKind, OnEmpty, Spawn};
use crate::fault::FaultCode;

/// A way from node to node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    from: usize,
    to: usize,
    /// The transition that stands for it in a fault.
    transition: usize,
    /// Is there a limit to how often it is taken?
    is_limited: bool,
}

pub(super) struct Graph {
    nodes: usize,
    edges: Vec<Edge>,
    /// Edges by the node they begin at: places in `edges`.
    outgoing: Vec<Vec<usize>>,
}

impl Graph {
    pub(super) fn of(nodes: usize, transitions: &[Linked<'_>], groups: &Groups) -> Self {
        let mut edges = Vec::new();
        let mut add = |from: Option<NodeIndex>, to: Option<NodeIndex>, transition, is_limited| {
            if let (Some(from), Some(to)) = (from, to)
                && from.get() < nodes
                && to.get() < nodes
            {
                edges.push(Edge { from: from.get(), to: to.get(), transition, is_limited });
            }
        };
        for (place, transition) in transitions.iter().enumerate() {
            add(transition.from, transition.to, place, transition.read.loop_max.is_some());
        }
        for group in &groups.groups {
            let Some(join) = &group.join else { continue };
            for joining in &join.transitions {
                // A join that failed goes on there.
                let from = transitions[joining.get()].from;
                add(from, join.synchronization.else_to, joining.get(), false);
            }
            for opening in &group.transitions {
                // With nothing to branch over, the join is reached past all that is in between.
                let can_be_empty = match &transitions[opening.get()].read.spawn {
                    Some(Spawn::Foreach(each)) => each.on_empty == OnEmpty::Join,
                    Some(Spawn::From(_)) => true,
                    Some(Spawn::Count(_)) | None => false,
                };
                if can_be_empty {
                    add(Some(group.from), Some(join.target), opening.get(), false);
                }
            }
        }
        let mut outgoing = vec![Vec::new(); nodes];
        for (place, edge) in edges.iter().enumerate() {
            outgoing[edge.from].push(place);
        }
        Self { nodes, edges, outgoing }
    }

    /// Which nodes can be reached from this one, itself included.
    pub(super) fn reached_from(&self, start: NodeIndex) -> Vec<bool> {
        let mut reached = vec![false; self.nodes];
        let mut next = Vec::new();
        if start.get() < self.nodes {
            reached[start.get()] = true;
            next.push(start.get());
        }
        while let Some(node) = next.pop() {
            for edge in &self.outgoing[node] {
                let to = self.edges[*edge].to;
                if !reached[to] {
                    reached[to] = true;
                    next.push(to);
                }
            }
        }
        reached
    }

    /// Every node must be reachable.
    pub(super) fn check_reach(&self, start: NodeIndex, nodes: &[ReadNode], found: &mut Findings) {
        for (node, is_reached) in nodes.iter().zip(self.reached_from(start)) {
            if !is_reached && let Some(name) = &node.name {
                let message = format!(
                    "nothing leads to `{name}` from the initial node; add a transition or remove it"
                );
                found.add(&node.pointer, FaultCode::UnreachableNode, message);
            }
        }
    }

    /// Every cycle needs something on it that waits or counts.
    pub(super) fn check_cycles(
        &self,
        nodes: &[ReadNode],
        transitions: &[Linked<'_>],
        found: &mut Findings,
    ) {
        let rests: Vec<bool> = nodes.iter().map(rests).collect();
        let is_free = |edge: &Edge| !edge.is_limited && !rests[edge.from] && !rests[edge.to];
        let mut edges: Vec<Edge> = self.edges.iter().copied().filter(is_free).collect();
        // Each round names one cycle and opens it, so that the next round finds another.
        while let Some(cycle) = find_cycle(self.nodes, &edges) {
            let names: Vec<&str> = cycle
                .iter()
                .chain(cycle.first())
                .filter_map(|edge| nodes[edge.from].name.as_deref())
                .collect();
            let closing = cycle[cycle.len() - 1];
            let message = format!(
                "{} goes round with nothing on it that waits or counts; add `loop: \
                 {{max_iterations: …}}`, or a task, signal or timer",
                names.join(" → ")
            );
            let pointer = &transitions[closing.transition].read.pointer;
            found.add(pointer, FaultCode::EndlessCycle, message);
            edges.retain(|edge| *edge != closing);
        }
    }
}

/// Does a token rest at this node until something happens outside? What is not known counts as if.
fn rests(node: &ReadNode) -> bool {
    match &node.kind {
        None | Some(NodeKind::Task(_) | NodeKind::Signal(_) | NodeKind::Timer(_)) => true,
        Some(NodeKind::Pass | NodeKind::Workflow(_)) => false,
    }
}

fn find_cycle(nodes: usize, edges: &[Edge]) -> Option<Vec<Edge>> {
    // What has no way in or no way out is on no cycle; leave it out until nothing changes.
    let mut left: Vec<Edge> = edges.to_vec();
    loop {
        let (mut has_in, mut has_out) = (vec![false; nodes], vec![false; nodes]);
        for edge in &left {
            has_in[edge.to] = true;
            has_out[edge.from] = true;
        }
        let before = left.len();
        left.retain(|edge| has_in[edge.from] && has_out[edge.to]);
        if left.len() == before {
            break;
        }
    }
    // From any of the rest every way leads on, so it comes back to itself.
    let mut way = vec![*left.first()?];
    let mut seen = vec![None; nodes];
    seen[way[0].from] = Some(0);
    loop {
        let at = way[way.len() - 1].to;
        if let Some(start) = seen[at] {
            return Some(way.split_off(start));
        }
        seen[at] = Some(way.len());
        way.push(*left.iter().find(|edge| edge.from == at)?);
    }
}

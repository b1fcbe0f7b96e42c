//! A graph in the language of Graphviz, for those who want to lay it out by themselves.

use std::fmt::Write as _;

use crate::model::{Edge, EdgeKind, Graph, Node};
use crate::standing::IDLE;

/// Draws a graph in the language of Graphviz.
#[must_use]
pub fn render(graph: &Graph) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, graph);
    out
}

fn write(out: &mut String, graph: &Graph) -> std::fmt::Result {
    writeln!(out, "digraph workflow {{")?;
    writeln!(
        out,
        "  graph [label={}, labelloc=t, fontname=Helvetica];",
        quoted(&graph.title.join("\n"))
    )?;
    writeln!(out, "  node [shape=box, style=\"rounded,filled\", fontname=Helvetica];")?;
    writeln!(out, "  edge [fontname=Helvetica, fontsize=10, color=\"#5b6675\"];")?;
    for (at, node) in graph.nodes.iter().enumerate() {
        writeln!(out, "  n{at} [{}];", node_attributes(node))?;
    }
    for edge in &graph.edges {
        writeln!(out, "  n{} -> n{} [{}];", edge.from, edge.to, edge_attributes(edge))?;
    }
    writeln!(out, "}}")
}

fn node_attributes(node: &Node) -> String {
    let colors = node.standing.map_or(IDLE, |standing| standing.colors());
    let mut lines = vec![node.name.clone(), format!("{} {}", node.kind, node.detail)];
    lines
        .extend(node.counts.iter().map(|(standing, count)| format!("{count} {}", standing.word())));
    lines.extend(node.errors.iter().cloned());
    let width = if node.is_initial { ", penwidth=2" } else { "" };
    let label = lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n");
    format!(
        "label={}, color=\"{}\", fillcolor=\"{}\"{width}",
        quoted(&label),
        colors.line,
        colors.fill
    )
}

fn edge_attributes(edge: &Edge) -> String {
    let mut words = vec![edge.label.clone()];
    words.extend(edge.progress.map(|progress| progress.words()));
    if edge.taken > 0 {
        words.push(format!("×{}", edge.taken));
    }
    words.retain(|word| !word.is_empty());
    let style = match edge.kind {
        EdgeKind::Plain => "solid",
        EdgeKind::Error => "dashed",
        EdgeKind::FanOut => "bold",
        EdgeKind::Join => "solid\", arrowhead=\"empty",
    };
    format!("label={}, style=\"{style}\"", quoted(&words.join("\n")))
}

/// A text in quotes; a line end stays one.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    format!("\"{text}\"")
}

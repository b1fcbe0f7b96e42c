//! A graph as a picture that any browser shows: no script, no font, nothing from outside.

use std::fmt::Write as _;

use crate::geometry::{LINE, NAME_LETTER, NODE_HEIGHT, chip_width, chips, clean, node_caption};
use crate::model::{Area, Edge, EdgeKind, Graph, Node};
use crate::standing::{Colors, IDLE};

const MARGIN: f64 = 32.0;

const INK: &str = "#1f2937";
const FAINT: &str = "#6b7280";
/// Edges that were taken, those that were not, and those after errors.
const TAKEN: &str = "#374151";
const UNTAKEN: &str = "#c5ccd6";
const ERROR: &str = "#c0362c";

const STYLE: &str = "\
text{font-family:ui-monospace,'JetBrains Mono','DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:11px}
.title{font-size:17px;font-weight:700}.name{font-size:14px;font-weight:600}";

/// Draws a graph as SVG.
#[must_use]
pub fn render(graph: &Graph) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, graph);
    out
}

fn write(out: &mut String, graph: &Graph) -> std::fmt::Result {
    let title = graph.title.len() as f64 * 20.0 + 22.0;
    let words = graph.title.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let wanted = graph.width.max(words as f64 * NAME_LETTER);
    let (width, height) = (wanted + 2.0 * MARGIN, graph.height + title + 2.0 * MARGIN);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">"
    )?;
    writeln!(out, "<title>{}</title>", escaped(&graph.title.join(" · ")))?;
    writeln!(out, "<style>{STYLE}</style>")?;
    heads(out)?;
    writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>")?;
    for (at, line) in graph.title.iter().enumerate() {
        let (class, fill) = if at == 0 { ("title", INK) } else { ("", FAINT) };
        let y = MARGIN + 12.0 + at as f64 * 20.0;
        writeln!(
            out,
            "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y:.0}\" fill=\"{fill}\">{}</text>",
            escaped(line)
        )?;
    }
    // A picture that is narrower than its title stands in the middle.
    let left = MARGIN + (wanted - graph.width) / 2.0;
    writeln!(out, "<g transform=\"translate({left:.1} {:.1})\">", MARGIN + title)?;
    for edge in &graph.edges {
        edge_line(out, edge, is_walked(graph, edge))?;
    }
    for edge in &graph.edges {
        edge_caption(out, edge, is_walked(graph, edge))?;
    }
    for node in &graph.nodes {
        node_box(out, node)?;
    }
    writeln!(out, "</g>\n</svg>")
}

/// The heads of arrows, one for each color.
fn heads(out: &mut String) -> std::fmt::Result {
    writeln!(out, "<defs>")?;
    for (name, color, fill) in [
        ("taken", TAKEN, TAKEN),
        ("untaken", UNTAKEN, UNTAKEN),
        ("error", ERROR, ERROR),
        ("taken-join", TAKEN, "#ffffff"),
        ("untaken-join", UNTAKEN, "#ffffff"),
    ] {
        writeln!(
            out,
            "<marker id=\"{name}\" viewBox=\"0 0 12 12\" refX=\"10.5\" refY=\"6\" \
             markerWidth=\"10\" markerHeight=\"10\" markerUnits=\"userSpaceOnUse\" \
             orient=\"auto-start-reverse\"><path d=\"M1.5 1.5 10.5 6 1.5 10.5z\" \
             fill=\"{fill}\" stroke=\"{color}\" stroke-width=\"1.4\" \
             stroke-linejoin=\"round\"/></marker>"
        )?;
    }
    writeln!(out, "</defs>")
}

/// Whether an edge looks taken. In a definition alone all do.
fn is_walked(graph: &Graph, edge: &Edge) -> bool {
    !graph.has_run || edge.taken > 0
}

fn edge_line(out: &mut String, edge: &Edge, walked: bool) -> std::fmt::Result {
    let (color, head) = match (edge.kind, walked) {
        (EdgeKind::Error, true) => (ERROR, "error"),
        (EdgeKind::Join, true) => (TAKEN, "taken-join"),
        (EdgeKind::Join, false) => (UNTAKEN, "untaken-join"),
        (EdgeKind::Plain | EdgeKind::FanOut, true) => (TAKEN, "taken"),
        (EdgeKind::Plain | EdgeKind::FanOut | EdgeKind::Error, false) => (UNTAKEN, "untaken"),
    };
    let width = if edge.kind == EdgeKind::FanOut { 2.6 } else { 1.5 };
    let dash = match edge.kind {
        EdgeKind::Error => " stroke-dasharray=\"5 4\"",
        EdgeKind::Plain | EdgeKind::FanOut | EdgeKind::Join => "",
    };
    writeln!(
        out,
        "<path d=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"{dash} \
         marker-end=\"url(#{head})\"/>",
        edge.path
    )
}

fn edge_caption(out: &mut String, edge: &Edge, walked: bool) -> std::fmt::Result {
    let Some(caption) = &edge.caption else { return Ok(()) };
    let Area { x, y, width, height } = caption.area;
    let color = match (walked, edge.kind) {
        (false, _) => "#9aa3b0",
        (true, EdgeKind::Error) => ERROR,
        (true, EdgeKind::Plain | EdgeKind::FanOut | EdgeKind::Join) => INK,
    };
    writeln!(
        out,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"4\" \
         fill=\"#ffffff\" stroke=\"#e5e8ec\"/>",
        x - width / 2.0,
        y - height / 2.0,
    )?;
    for (number, line) in caption.lines.iter().enumerate() {
        let y = y - height / 2.0 + 3.0 + LINE * (number as f64 + 0.75);
        writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"{color}\">{}</text>",
            escaped(line)
        )?;
    }
    Ok(())
}

fn node_box(out: &mut String, node: &Node) -> std::fmt::Result {
    let area = node.area;
    let Colors { line, fill } = node.standing.map_or(IDLE, |standing| standing.colors());
    let (x, y) = (area.x - area.width / 2.0, area.y - area.height / 2.0);
    // What only decides is rounder than what does something.
    let round = if node.kind == "pass" { 22.0 } else { 8.0 };
    writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{round}\" \
         fill=\"{fill}\" stroke=\"{line}\" stroke-width=\"1.6\"/>",
        area.width, area.height
    )?;
    if node.is_initial {
        writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"{INK}\"/>",
            area.x,
            y - 10.0
        )?;
    }
    let name = clean(&node.name);
    let text = |out: &mut String, class: &str, y: f64, color: &str, text: &str| {
        writeln!(
            out,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" \
             fill=\"{color}\">{}</text>",
            area.x,
            escaped(text)
        )
    };
    text(out, "name", y + 20.0, INK, &name)?;
    text(out, "", y + 37.0, FAINT, &node_caption(node))?;
    let mut below = y + NODE_HEIGHT;
    for code in &node.errors {
        text(out, "", below + 6.0, ERROR, &clean(code))?;
        below += LINE;
    }
    node_counts(out, node, below)
}

/// The number of tokens in each state.
fn node_counts(out: &mut String, node: &Node, top: f64) -> std::fmt::Result {
    let chips = chips(node);
    let whole: f64 = chips.iter().map(|(_, text)| chip_width(text) + 6.0).sum::<f64>() - 6.0;
    let mut x = node.area.x - whole / 2.0;
    for (standing, text) in chips {
        let (width, color) = (chip_width(&text), standing.colors().line);
        writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"17\" rx=\"8.5\" \
             fill=\"{color}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" \
             fill=\"#ffffff\">{}</text>",
            top,
            x + width / 2.0,
            top + 12.5,
            escaped(&text)
        )?;
        x += width + 6.0;
    }
    Ok(())
}

fn escaped(text: &str) -> String {
    let text = clean(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

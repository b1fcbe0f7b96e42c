//! A graph as lines of text, 80 columns wide: each node with its edges below it, in the order in
//! which a run comes by.

use tenure_code::escape_line;
use unicode_width::UnicodeWidthStr;

use crate::layout;
use crate::model::{Edge, EdgeKind, Graph, Node};
use crate::standing::Standing;

/// As wide as every terminal.
const COLUMNS: usize = 80;
/// A name is not given more than this.
const NAME_COLUMNS_MAX: usize = 28;
/// Nor the queue of a node, or what else it is about.
const WHAT_COLUMNS_MAX: usize = 24;

/// The emphasis of a piece of text; a terminal shows it as a style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// Names and titles.
    Heading,
    /// Secondary text.
    Faint,
    /// Text about tokens in this state.
    Standing(Standing),
}

/// Adds the style of a tone to a text.
pub type Paint<'a> = &'a dyn Fn(Tone, &str) -> String;

/// Draws a graph as lines of text.
#[must_use]
pub fn render(graph: &Graph, paint: Paint<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, line) in graph.title.iter().enumerate() {
        let tone = if at == 0 { Tone::Heading } else { Tone::Faint };
        lines.extend(wrapped(&escape_line(line), COLUMNS).iter().map(|l| paint(tone, l)));
    }
    let widest = graph.nodes.iter().map(|node| escape_line(&node.name).width()).max().unwrap_or(0);
    let width = widest.min(NAME_COLUMNS_MAX);
    for node in layout::reading_order(graph) {
        lines.push(String::new());
        lines.extend(head(graph, node, width, paint));
        let errors = graph.nodes[node].errors.iter();
        lines.extend(errors.map(|code| failed(&graph.nodes[node], code, paint)));
        let edges: Vec<_> = graph.from(node).collect();
        for (at, edge) in edges.iter().enumerate() {
            lines.extend(branch(graph, edge, at + 1 == edges.len(), width, paint));
        }
    }
    lines
}

/// `✓ reserve   task samples        1 completed`; what has no room goes below.
fn head(graph: &Graph, at: usize, width: usize, paint: Paint<'_>) -> Vec<String> {
    let node = &graph.nodes[at];
    let standing = node.standing;
    let sign = standing.map_or('○', |standing| standing.sign());
    let tone = standing.map_or(Tone::Faint, Tone::Standing);
    // As wide as an arrow and a name below it.
    let name = padded(&escape_line(&node.name), width + 2);
    let widest = graph.nodes.iter().map(|node| what(node).width()).max().unwrap_or(0);
    let what = padded(&what(node), widest.min(WHAT_COLUMNS_MAX));
    let mut lines = vec![format!(
        "{} {}  {}",
        paint(tone, &sign.to_string()),
        paint(Tone::Heading, &name),
        paint(Tone::Faint, &what),
    )];
    let indent = 2 + name.width() + 2 + what.width();
    let mut column = indent;
    for (number, (standing, count)) in node.counts.iter().enumerate() {
        let text = format!("{count} {}", standing.word());
        let comma = if number > 0 { "," } else { " " };
        if column + 2 + text.width() > COLUMNS {
            lines.push(format!("{:indent$} ", ""));
            column = indent;
        } else if let Some(line) = lines.last_mut() {
            line.push_str(comma);
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(&paint(Tone::Standing(*standing), &text));
        }
        column += 2 + text.width();
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// `task samples`, and whether runs begin there.
fn what(node: &Node) -> String {
    let begin = if node.is_initial { " (begin)" } else { "" };
    let what = format!("{} {}", node.kind, escape_line(&node.detail));
    format!("{}{begin}", what.trim_end())
}

fn failed(node: &Node, code: &str, paint: Paint<'_>) -> String {
    let tone = node.standing.map_or(Tone::Faint, Tone::Standing);
    let bar = if node.counts.is_empty() { ' ' } else { '│' };
    format!("{} {}", paint(Tone::Faint, &bar.to_string()), paint(tone, &escape_line(code)))
}

/// `├─▶ approval   input.amount >= 1000      ×1`, and the rest of a label that is too long below.
fn branch(
    graph: &Graph,
    edge: &Edge,
    is_last: bool,
    width: usize,
    paint: Paint<'_>,
) -> Vec<String> {
    let (corner, rail) = if is_last { ('└', ' ') } else { ('├', '│') };
    let arrow = match edge.kind {
        EdgeKind::Plain => "─▶",
        EdgeKind::Error => "╌▶",
        EdgeKind::FanOut => "═▶",
        EdgeKind::Join => "─▷",
    };
    let to = padded(&escape_line(&graph.nodes[edge.to].name), width);
    let tail = tail(graph, edge);
    let room = COLUMNS.saturating_sub(width + 6 + tail.width() + 1);
    let label = wrapped(&escape_line(&edge.label), room.max(20));
    let first = label.first().map_or("", String::as_str);
    let tone = if edge.taken > 0 { Tone::Heading } else { Tone::Faint };
    let begin = format!("{corner}{arrow} {to}  ");
    let gap = COLUMNS.saturating_sub(begin.width() + first.width() + tail.width()).max(1);
    let gap = if tail.is_empty() { 0 } else { gap };
    let mut lines = vec![
        format!(
            "{}{}{}{}",
            paint(if edge.taken > 0 { Tone::Plain } else { Tone::Faint }, &begin),
            first,
            " ".repeat(gap),
            paint(tone, &tail)
        )
        .trim_end()
        .to_owned(),
    ];
    for more in label.iter().skip(1) {
        let indent = " ".repeat(begin.width() - 1);
        lines.push(format!("{}{indent}{more}", paint(Tone::Faint, &rail.to_string())));
    }
    lines
}

/// How often it was taken, and how far its group is.
fn tail(graph: &Graph, edge: &Edge) -> String {
    let mut words = Vec::new();
    words.extend(edge.progress.map(|progress| progress.words()));
    if graph.has_run && edge.taken > 0 {
        words.push(format!("×{}", edge.taken));
    }
    words.join("  ")
}

fn padded(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let free = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(free))
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if kept.width() + 2 > width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// A text on lines of a width, broken at spaces where there are some.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let mut word = word;
        while word.width() > width {
            let at = word.char_indices().nth(width).map_or(word.len(), |(at, _)| at);
            lines.push(word[..at].to_owned());
            word = &word[at..];
        }
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

//! The measures of a drawing: sizes of nodes and captions, positions from the layout, and the lines
//! of edges.

use std::fmt::Write as _;

use crate::layout::{Layout, Point, Route, Size, lay_out};
use crate::model::{Area, Caption, Edge, Graph, Node};
use crate::standing::Standing;
use crate::text::wrapped;

/// The width of a letter, in fonts of one width, at each size of text that is used.
pub(crate) const NAME_LETTER: f64 = 8.43;
const SMALL_LETTER: f64 = 6.63;
/// The height of a line of text.
pub(crate) const LINE: f64 = 15.0;
/// The height of a node without errors and counts.
pub(crate) const NODE_HEIGHT: f64 = 48.0;
const NODE_WIDTH_MIN: f64 = 132.0;
const CHIP_HEIGHT: f64 = 24.0;
/// Letters of a label before it goes on in the next line.
const LABEL_COLUMNS: usize = 40;
/// How far an edge from a node to itself reaches out.
const LOOP: f64 = 30.0;

/// Gives every node and edge of a graph its position.
pub(crate) fn place(graph: &mut Graph) {
    let captions: Vec<Vec<String>> = graph.edges.iter().map(|edge| caption(graph, edge)).collect();
    let labels: Vec<Size> = captions.iter().map(|lines| caption_size(lines)).collect();
    let loops = loop_widths(graph, &labels);
    let nodes: Vec<Size> =
        graph.nodes.iter().zip(&loops).map(|(node, around)| node_size(node, *around)).collect();
    let layout = lay_out(graph, &nodes, &labels);
    let areas = nodes.iter().zip(&loops).zip(&layout.nodes);
    let areas: Vec<Area> = areas
        .map(|((size, around), center)| Area {
            x: center.x,
            y: center.y,
            // The room for edges to the node itself is outside of its box.
            width: size.width - around,
            height: size.height,
        })
        .collect();
    let paths = Paths::new(graph, &layout, &areas);
    let drawn: Vec<(String, Option<Caption>)> = captions
        .into_iter()
        .enumerate()
        .map(|(at, lines)| {
            let area = caption_area(&graph.edges[at], &layout.routes[at], &areas, labels[at]);
            let caption = (!lines.is_empty()).then_some(Caption { lines, area });
            (paths.path(at), caption)
        })
        .collect();
    for (node, area) in graph.nodes.iter_mut().zip(areas) {
        node.area = area;
    }
    for (edge, (path, caption)) in graph.edges.iter_mut().zip(drawn) {
        (edge.path, edge.caption) = (path, caption);
    }
    (graph.width, graph.height) = (layout.size.width, layout.size.height);
}

/// The text on an edge, line by line.
fn caption(graph: &Graph, edge: &Edge) -> Vec<String> {
    let mut lines = wrapped(&clean(&edge.label), LABEL_COLUMNS);
    let mut facts = Vec::new();
    facts.extend(edge.progress.map(|progress| progress.words()));
    if graph.has_run && edge.taken > 1 {
        facts.push(format!("×{}", edge.taken));
    }
    lines.extend((!facts.is_empty()).then(|| facts.join("  ")));
    lines
}

fn caption_size(lines: &[String]) -> Size {
    let letters = lines.iter().map(|line| line.chars().count()).max();
    match letters {
        Some(letters) => Size {
            width: letters as f64 * SMALL_LETTER + 14.0,
            height: lines.len() as f64 * LINE + 6.0,
        },
        None => Size { width: 8.0, height: 0.0 },
    }
}

/// The room that each node needs for edges from it to itself, on both sides, so that the node stays
/// in the middle of its place.
fn loop_widths(graph: &Graph, labels: &[Size]) -> Vec<f64> {
    let mut widths = vec![0.0_f64; graph.nodes.len()];
    for (edge, label) in graph.edges.iter().zip(labels).filter(|(edge, _)| edge.from == edge.to) {
        widths[edge.from] = widths[edge.from].max(2.0 * (LOOP + label.width));
    }
    widths
}

fn node_size(node: &Node, around: f64) -> Size {
    let name = node.name.chars().count() as f64 * NAME_LETTER;
    let small = [node_caption(node)].into_iter().chain(node.errors.iter().map(|code| clean(code)));
    let small = small.map(|text| text.chars().count()).max().unwrap_or(0) as f64 * SMALL_LETTER;
    let chips: f64 = chips(node).iter().map(|(_, text)| chip_width(text) + 6.0).sum();
    let mut size = Size {
        width: (name.max(small) + 36.0).max(chips + 24.0).max(NODE_WIDTH_MIN),
        height: NODE_HEIGHT + node.errors.len() as f64 * LINE,
    };
    if !node.counts.is_empty() {
        size.height += CHIP_HEIGHT;
    }
    size.width += around;
    size
}

/// The second line of a node: its kind and what that is about.
pub(crate) fn node_caption(node: &Node) -> String {
    match node.detail.is_empty() {
        true => node.kind.to_owned(),
        false => format!("{} · {}", node.kind, clean(&node.detail)),
    }
}

/// The counts of a node as texts.
pub(crate) fn chips(node: &Node) -> Vec<(Standing, String)> {
    let chip =
        |(standing, count): (&Standing, &u64)| (*standing, format!("{count} {}", standing.word()));
    node.counts.iter().map(chip).collect()
}

/// The width of a count.
pub(crate) fn chip_width(text: &str) -> f64 {
    text.chars().count() as f64 * SMALL_LETTER + 14.0
}

/// Removes control characters, which no drawing can show.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// A caption is on its edge, or beside the node if the edge leads back to where it begins.
fn caption_area(edge: &Edge, route: &Route, areas: &[Area], size: Size) -> Area {
    let Size { width, height } = size;
    let Point { x, y } = match route.stops.iter().find(|stop| stop.is_label) {
        Some(stop) => stop.at,
        None => {
            let node = areas[edge.from];
            Point { x: node.x + node.width / 2.0 + LOOP + width / 2.0, y: node.y }
        }
    };
    Area { x, y, width, height }
}

/// The lines of all edges.
struct Paths<'g> {
    graph: &'g Graph,
    layout: &'g Layout,
    areas: &'g [Area],
    /// The edges at the lower and at the upper side of each node, from left to right.
    below: Vec<Vec<usize>>,
    above: Vec<Vec<usize>>,
}

impl<'g> Paths<'g> {
    fn new(graph: &'g Graph, layout: &'g Layout, areas: &'g [Area]) -> Self {
        let mut below = vec![Vec::new(); areas.len()];
        let mut above = vec![Vec::new(); areas.len()];
        for (at, (edge, route)) in graph.edges.iter().zip(&layout.routes).enumerate() {
            if edge.from == edge.to {
                continue;
            }
            let (upper, lower) =
                if route.is_back { (edge.to, edge.from) } else { (edge.from, edge.to) };
            below[upper].push(at);
            above[lower].push(at);
        }
        let mut paths = Self { graph, layout, areas, below: Vec::new(), above: Vec::new() };
        for sides in [&mut below, &mut above] {
            for (node, side) in sides.iter_mut().enumerate() {
                side.sort_by(|a, b| paths.next_x(*a, node).total_cmp(&paths.next_x(*b, node)));
            }
        }
        (paths.below, paths.above) = (below, above);
        paths
    }

    /// Where an edge goes from a node, or comes from.
    fn next_x(&self, at: usize, node: usize) -> f64 {
        let stops = &self.layout.routes[at].stops;
        let stop = if self.graph.edges[at].from == node { stops.first() } else { stops.last() };
        stop.map_or(self.areas[node].x, |stop| stop.at.x)
    }

    fn path(&self, at: usize) -> String {
        let edge = &self.graph.edges[at];
        match edge.from == edge.to {
            true => self.around(edge.from),
            false => self.between(at, edge),
        }
    }

    /// From the border of one node through all stops to the border of the other.
    fn between(&self, at: usize, edge: &Edge) -> String {
        let route = &self.layout.routes[at];
        let (from, to) = (self.port(at, edge.from), self.port(at, edge.to));
        let half = |node: usize| self.areas[node].height / 2.0;
        let sign = if route.is_back { -1.0 } else { 1.0 };
        let begin = Point { x: from, y: self.areas[edge.from].y + sign * half(edge.from) };
        let end = Point { x: to, y: self.areas[edge.to].y - sign * half(edge.to) };
        let mut path = format!("M{:.1} {:.1}", begin.x, begin.y);
        let mut last = begin;
        for stop in &route.stops {
            let (enter, leave) = (
                Point { x: stop.at.x, y: stop.at.y - sign * stop.height / 2.0 },
                Point { x: stop.at.x, y: stop.at.y + sign * stop.height / 2.0 },
            );
            bend(&mut path, last, enter);
            let _ = write!(path, "L{:.1} {:.1}", leave.x, leave.y);
            last = leave;
        }
        bend(&mut path, last, end);
        path
    }

    /// Where on a node's border an edge begins or ends: edges stand beside each other, in the order
    /// of where they come from.
    fn port(&self, at: usize, node: usize) -> f64 {
        let is_below = (self.graph.edges[at].from == node) != self.layout.routes[at].is_back;
        let sharing = if is_below { &self.below[node] } else { &self.above[node] };
        let place = sharing.iter().position(|other| *other == at).unwrap_or(0) as f64;
        let area = self.areas[node];
        let step = (area.width * 0.6 / sharing.len().max(1) as f64).min(30.0);
        area.x + (place - (sharing.len() as f64 - 1.0) / 2.0) * step
    }

    /// From a node to itself, on its right side.
    fn around(&self, node: usize) -> String {
        let area = self.areas[node];
        let (x, y) = (area.x + area.width / 2.0, area.y);
        let far = x + LOOP;
        format!(
            "M{x:.1} {:.1}C{far:.1} {:.1} {far:.1} {:.1} {x:.1} {:.1}",
            y + 10.0,
            y + 16.0,
            y - 16.0,
            y - 10.0
        )
    }
}

/// A soft turn from one place to another.
fn bend(path: &mut String, from: Point, to: Point) {
    let middle = (from.y + to.y) / 2.0;
    // Writing to a string cannot fail.
    let _ = match (from.x - to.x).abs() < 0.5 {
        true => write!(path, "L{:.1} {:.1}", to.x, to.y),
        false => write!(
            path,
            "C{:.1} {middle:.1} {:.1} {middle:.1} {:.1} {:.1}",
            from.x, to.x, to.x, to.y
        ),
    };
}

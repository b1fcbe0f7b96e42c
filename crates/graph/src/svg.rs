//! A graph as a picture that any browser shows: no script, no font, nothing from outside.

use std::fmt::Write as _;

use crate::layout::{Layout, Point, Route, Size, lay_out};
use crate::model::{Graph, Spot, Way, WayKind};
use crate::standing::{Colors, IDLE, Standing};
use crate::text::wrapped;

const MARGIN: f64 = 32.0;
/// The room of a letter, in fonts of one width, at each size of text that is used.
const NAME_LETTER: f64 = 8.43;
const SMALL_LETTER: f64 = 6.63;
const LINE: f64 = 15.0;
const NODE_WIDTH_MIN: f64 = 132.0;
const NODE_HEIGHT: f64 = 48.0;
const CHIP_HEIGHT: f64 = 24.0;
/// Letters of a label before it goes on in the next line.
const LABEL_COLUMNS: usize = 40;
/// How far a way from a node to itself reaches out.
const LOOP: f64 = 30.0;

const INK: &str = "#1f2937";
const FAINT: &str = "#6b7280";
/// Ways that were taken, those that were not, and those after errors.
const TAKEN: &str = "#374151";
const UNTAKEN: &str = "#c5ccd6";
const ERROR: &str = "#c0362c";

const STYLE: &str = "\
text{font-family:ui-monospace,'JetBrains Mono','DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:11px}
.title{font-size:17px;font-weight:700}.name{font-size:14px;font-weight:600}";

/// Draws a graph as SVG.
#[must_use]
pub fn render(graph: &Graph) -> String {
    let labels: Vec<Vec<String>> = graph.ways.iter().map(|way| label(graph, way)).collect();
    let nodes: Vec<Size> =
        graph.nodes.iter().enumerate().map(|(at, node)| node_size(graph, at, node)).collect();
    let sizes: Vec<Size> = labels.iter().map(|lines| label_size(lines)).collect();
    let layout = lay_out(graph, &nodes, &sizes);
    let picture = Picture { graph, layout, nodes, labels, sizes };
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = picture.write(&mut out);
    out
}

struct Picture<'g> {
    graph: &'g Graph,
    layout: Layout,
    nodes: Vec<Size>,
    labels: Vec<Vec<String>>,
    sizes: Vec<Size>,
}

/// What is said about a way, line by line.
fn label(graph: &Graph, way: &Way) -> Vec<String> {
    let mut lines = wrapped(&clean(&way.label), LABEL_COLUMNS);
    let mut facts = Vec::new();
    facts.extend(way.progress.map(|progress| progress.words()));
    if graph.has_run && way.taken > 1 {
        facts.push(format!("×{}", way.taken));
    }
    lines.extend((!facts.is_empty()).then(|| facts.join("  ")));
    lines
}

fn label_size(lines: &[String]) -> Size {
    let letters = lines.iter().map(|line| line.chars().count()).max();
    match letters {
        Some(letters) => Size {
            width: letters as f64 * SMALL_LETTER + 14.0,
            height: lines.len() as f64 * LINE + 6.0,
        },
        None => Size { width: 8.0, height: 0.0 },
    }
}

fn node_size(graph: &Graph, at: usize, node: &Spot) -> Size {
    let name = node.name.chars().count() as f64 * NAME_LETTER;
    let small = [caption(node)].into_iter().chain(node.errors.iter().map(|code| clean(code)));
    let small = small.map(|text| text.chars().count()).max().unwrap_or(0) as f64 * SMALL_LETTER;
    let chips: f64 = chips(node).iter().map(|(_, text)| chip_width(text) + 6.0).sum();
    let around = graph.from(at).any(|way| way.to == at);
    let mut size = Size {
        width: (name.max(small) + 36.0).max(chips + 24.0).max(NODE_WIDTH_MIN),
        height: NODE_HEIGHT + node.errors.len() as f64 * LINE,
    };
    if !node.counts.is_empty() {
        size.height += CHIP_HEIGHT;
    }
    // Room on both sides, so that the node stays in the middle of its place.
    if around {
        let label = graph.from(at).filter(|way| way.to == at).map(|way| label(graph, way));
        let widest = label.map(|lines| label_size(&lines).width).fold(0.0, f64::max);
        size.width += 2.0 * (LOOP + widest);
    }
    size
}

/// The box of a node, without the room for ways from it to itself.
fn box_size(graph: &Graph, at: usize, whole: Size) -> Size {
    let own = graph.from(at).filter(|way| way.to == at).map(|way| label(graph, way));
    let widest = own.map(|lines| label_size(&lines).width).reduce(f64::max);
    let around = widest.map_or(0.0, |widest| 2.0 * (LOOP + widest));
    Size { width: whole.width - around, height: whole.height }
}

fn caption(node: &Spot) -> String {
    match node.detail.is_empty() {
        true => node.kind.to_owned(),
        false => format!("{} · {}", node.kind, clean(&node.detail)),
    }
}

fn chips(node: &Spot) -> Vec<(Standing, String)> {
    let chip = |(standing, count): (&Standing, &usize)| {
        (*standing, format!("{count} {}", standing.word()))
    };
    node.counts.iter().map(chip).collect()
}

fn chip_width(text: &str) -> f64 {
    text.chars().count() as f64 * SMALL_LETTER + 14.0
}

impl Picture<'_> {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        let title = self.graph.title.len() as f64 * 20.0 + 22.0;
        let words = self.graph.title.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let wanted = self.layout.size.width.max(words as f64 * NAME_LETTER);
        let (width, height) =
            (wanted + 2.0 * MARGIN, self.layout.size.height + title + 2.0 * MARGIN);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">"
        )?;
        writeln!(out, "<title>{}</title>", escaped(&self.graph.title.join(" · ")))?;
        writeln!(out, "<style>{STYLE}</style>")?;
        self.heads(out)?;
        writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>")?;
        for (at, line) in self.graph.title.iter().enumerate() {
            let (class, fill) = if at == 0 { ("title", INK) } else { ("", FAINT) };
            let y = MARGIN + 12.0 + at as f64 * 20.0;
            writeln!(
                out,
                "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y:.0}\" fill=\"{fill}\">{}</text>",
                escaped(line)
            )?;
        }
        // A picture that is narrower than its title stands in the middle.
        let left = MARGIN + (wanted - self.layout.size.width) / 2.0;
        writeln!(out, "<g transform=\"translate({left:.1} {:.1})\">", MARGIN + title)?;
        for at in 0..self.graph.ways.len() {
            self.way(out, at)?;
        }
        for at in 0..self.graph.ways.len() {
            self.way_label(out, at)?;
        }
        for at in 0..self.graph.nodes.len() {
            self.node(out, at)?;
        }
        writeln!(out, "</g>\n</svg>")
    }

    /// The heads of arrows, one for each color.
    fn heads(&self, out: &mut String) -> std::fmt::Result {
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

    /// Whether a way looks as if somebody had gone it. In a definition alone all do.
    fn is_walked(&self, way: &Way) -> bool {
        !self.graph.has_run || way.taken > 0
    }

    fn way(&self, out: &mut String, at: usize) -> std::fmt::Result {
        let (way, route) = (&self.graph.ways[at], &self.layout.routes[at]);
        let walked = self.is_walked(way);
        let (color, head) = match (way.kind, walked) {
            (WayKind::Error, true) => (ERROR, "error"),
            (WayKind::Join, true) => (TAKEN, "taken-join"),
            (WayKind::Join, false) => (UNTAKEN, "untaken-join"),
            (WayKind::Plain | WayKind::FanOut, true) => (TAKEN, "taken"),
            (WayKind::Plain | WayKind::FanOut | WayKind::Error, false) => (UNTAKEN, "untaken"),
        };
        let width = if way.kind == WayKind::FanOut { 2.6 } else { 1.5 };
        let dash = match way.kind {
            WayKind::Error => " stroke-dasharray=\"5 4\"",
            WayKind::Plain | WayKind::FanOut | WayKind::Join => "",
        };
        let path =
            if way.from == way.to { self.around(way.from) } else { self.path(at, way, route) };
        writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"{dash} \
             marker-end=\"url(#{head})\"/>"
        )
    }

    /// From the edge of one node through all stops to the edge of the other.
    fn path(&self, at: usize, way: &Way, route: &Route) -> String {
        let (from, to) = (self.port(at, way.from, route), self.port(at, way.to, route));
        let half = |node: usize| self.nodes[node].height / 2.0;
        let sign = if route.is_back { -1.0 } else { 1.0 };
        let begin = Point { x: from, y: self.layout.nodes[way.from].y + sign * half(way.from) };
        let end = Point { x: to, y: self.layout.nodes[way.to].y - sign * half(way.to) };
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

    /// Where on a node's edge a way begins or ends: they stand beside each other, in the order of
    /// where they come from.
    fn port(&self, at: usize, node: usize, route: &Route) -> f64 {
        let is_below = |way: &Way, route: &Route| (way.from == node) != route.is_back;
        let below = is_below(&self.graph.ways[at], route);
        let next = |other: usize| {
            let (way, route) = (&self.graph.ways[other], &self.layout.routes[other]);
            let stop = if way.from == node { route.stops.first() } else { route.stops.last() };
            stop.map_or(self.layout.nodes[node].x, |stop| stop.at.x)
        };
        let mut sharing: Vec<usize> = (0..self.graph.ways.len())
            .filter(|other| {
                let (way, route) = (&self.graph.ways[*other], &self.layout.routes[*other]);
                way.from != way.to
                    && (way.from == node || way.to == node)
                    && is_below(way, route) == below
            })
            .collect();
        sharing.sort_by(|a, b| next(*a).total_cmp(&next(*b)));
        let place = sharing.iter().position(|other| *other == at).unwrap_or(0) as f64;
        let width = box_size(self.graph, node, self.nodes[node]).width;
        let step = (width * 0.6 / sharing.len().max(1) as f64).min(30.0);
        self.layout.nodes[node].x + (place - (sharing.len() as f64 - 1.0) / 2.0) * step
    }

    /// From a node to itself, on its right side.
    fn around(&self, node: usize) -> String {
        let (middle, size) =
            (self.layout.nodes[node], box_size(self.graph, node, self.nodes[node]));
        let (x, y) = (middle.x + size.width / 2.0, middle.y);
        let far = x + LOOP;
        format!(
            "M{x:.1} {:.1}C{far:.1} {:.1} {far:.1} {:.1} {x:.1} {:.1}",
            y + 10.0,
            y + 16.0,
            y - 16.0,
            y - 10.0
        )
    }

    fn way_label(&self, out: &mut String, at: usize) -> std::fmt::Result {
        let (way, lines, size) = (&self.graph.ways[at], &self.labels[at], self.sizes[at]);
        if lines.is_empty() {
            return Ok(());
        }
        let middle = match self.layout.routes[at].stops.iter().find(|stop| stop.is_label) {
            Some(stop) => stop.at,
            None => {
                let node = self.layout.nodes[way.from];
                let own = box_size(self.graph, way.from, self.nodes[way.from]);
                Point { x: node.x + own.width / 2.0 + LOOP + size.width / 2.0, y: node.y }
            }
        };
        let Point { x, y } = middle;
        let color = match (self.is_walked(way), way.kind) {
            (false, _) => "#9aa3b0",
            (true, WayKind::Error) => ERROR,
            (true, WayKind::Plain | WayKind::FanOut | WayKind::Join) => INK,
        };
        writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"4\" fill=\"#ffffff\" \
             stroke=\"#e5e8ec\"/>",
            x - size.width / 2.0,
            y - size.height / 2.0,
            size.width,
            size.height
        )?;
        for (number, line) in lines.iter().enumerate() {
            let y = y - size.height / 2.0 + 3.0 + LINE * (number as f64 + 0.75);
            writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"{color}\">{}</text>",
                escaped(line)
            )?;
        }
        Ok(())
    }

    fn node(&self, out: &mut String, at: usize) -> std::fmt::Result {
        let (node, middle) = (&self.graph.nodes[at], self.layout.nodes[at]);
        let size = box_size(self.graph, at, self.nodes[at]);
        let Colors { line, fill } = node.standing().map_or(IDLE, |standing| standing.colors());
        let (x, y) = (middle.x - size.width / 2.0, middle.y - size.height / 2.0);
        // What only decides is rounder than what does something.
        let round = if node.kind == "pass" { 22.0 } else { 8.0 };
        writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{round}\" \
             fill=\"{fill}\" stroke=\"{line}\" stroke-width=\"1.6\"/>",
            size.width, size.height
        )?;
        if node.is_initial {
            writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"{INK}\"/>",
                middle.x,
                y - 10.0
            )?;
        }
        let name = clean(&node.name);
        let text = |out: &mut String, class: &str, y: f64, color: &str, text: &str| {
            writeln!(
                out,
                "<text class=\"{class}\" x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" \
                 fill=\"{color}\">{}</text>",
                middle.x,
                escaped(text)
            )
        };
        text(out, "name", y + 20.0, INK, &name)?;
        text(out, "", y + 37.0, FAINT, &caption(node))?;
        let mut below = y + NODE_HEIGHT;
        for code in &node.errors {
            text(out, "", below + 6.0, ERROR, &clean(code))?;
            below += LINE;
        }
        self.chips(out, node, Point { x: middle.x, y: below })
    }

    /// How many tokens are there, and how they stand.
    fn chips(&self, out: &mut String, node: &Spot, top: Point) -> std::fmt::Result {
        let chips = chips(node);
        let whole: f64 = chips.iter().map(|(_, text)| chip_width(text) + 6.0).sum::<f64>() - 6.0;
        let mut x = top.x - whole / 2.0;
        for (standing, text) in chips {
            let (width, color) = (chip_width(&text), standing.colors().line);
            writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"17\" rx=\"8.5\" \
                 fill=\"{color}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" \
                 fill=\"#ffffff\">{}</text>",
                top.y,
                x + width / 2.0,
                top.y + 12.5,
                escaped(&text)
            )?;
            x += width + 6.0;
        }
        Ok(())
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

/// Without what no picture can show.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn escaped(text: &str) -> String {
    let text = clean(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

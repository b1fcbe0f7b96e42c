//! Where everything goes: nodes in layers, from the top down; edges in between, each with a place of
//! its own for its label. The steps are the usual ones (turn cycles around, find layers, order each
//! layer so that few edges cross, move things to where their neighbors are), each in its plainest
//! form.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::model::{Edge, Graph};

/// Rounds of ordering and of moving; more change nothing that can be seen.
const ROUNDS: usize = 24;

/// Items that a layout may have before long edges lose the bends that lead them around nodes. The
/// time that a layout needs is then bounded by the limits of a definition.
const ITEMS_MAX: usize = 20_000;

/// How large something is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// Where everything is.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) size: Size,
    /// The middle of each node.
    pub(crate) nodes: Vec<Point>,
    pub(crate) routes: Vec<Route>,
}

/// Where an edge goes.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The middles of the places it comes by, from its first node to its last, both left out.
    pub(crate) stops: Vec<Stop>,
    /// It goes up, or nowhere.
    pub(crate) is_back: bool,
}

/// A place that an edge comes by; it runs straight down through its height.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) at: Point,
    pub(crate) height: f64,
    pub(crate) is_label: bool,
}

/// What is kept free around things.
const GAP_X: f64 = 28.0;
const GAP_Y: f64 = 22.0;

/// Something in a layer: a node, or a place that an edge comes by.
#[derive(Clone, Debug)]
struct Item {
    layer: usize,
    size: Size,
    x: f64,
    /// Neighbors in the layers above and below.
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Lays out a graph whose nodes and labels have these sizes.
pub(crate) fn lay_out(graph: &Graph, nodes: &[Size], labels: &[Size]) -> Layout {
    let layers = layers(graph);
    let mut items: Vec<Item> = nodes
        .iter()
        .zip(&layers)
        // Labels have layers of their own, between those of nodes.
        .map(|(size, layer)| Item::new(layer * 2, *size))
        .collect();
    let span = |edge: &Edge| layers[edge.from].abs_diff(layers[edge.to]) * 2;
    let bends = match graph.edges.iter().map(span).sum::<usize>() <= ITEMS_MAX {
        true => Bends::All,
        false => Bends::Label,
    };
    let edges = graph.edges.iter().zip(labels);
    let chains: Vec<Vec<usize>> =
        edges.map(|(edge, label)| chain(&mut items, edge, *label, bends)).collect();
    let mut order = ordered(&items);
    untangle(&mut items, &mut order);
    place(&mut items, &order);
    straighten(&mut items, &order, &chains);
    let (tops, height) = heights(&items, &order);
    let left = items.iter().map(|item| item.x - item.size.width / 2.0).fold(f64::MAX, f64::min);
    let right = items.iter().map(|item| item.x + item.size.width / 2.0).fold(f64::MIN, f64::max);
    let middle = |at: usize| {
        let item = &items[at];
        let (top, room) = tops[item.layer];
        Point { x: item.x - left, y: top + room / 2.0 }
    };
    let route = |chain: &Vec<usize>, edge: &Edge| {
        let stop = |at: &usize| {
            let (_, room) = tops[items[*at].layer];
            let is_label = items[*at].size.height > 0.0;
            Stop { at: middle(*at), height: room, is_label }
        };
        let mut stops: Vec<Stop> = chain.iter().map(stop).collect();
        let is_back = layers[edge.from] >= layers[edge.to];
        if is_back {
            stops.reverse();
        }
        Route { stops, is_back }
    };
    Layout {
        size: Size { width: (right - left).max(0.0), height },
        nodes: (0..nodes.len()).map(middle).collect(),
        routes: chains.iter().zip(&graph.edges).map(|(chain, edge)| route(chain, edge)).collect(),
    }
}

/// The nodes in the order in which a run comes by: layer by layer, as the definition has them.
pub(crate) fn reading_order(graph: &Graph) -> Vec<usize> {
    let layers = layers(graph);
    let mut order: Vec<usize> = (0..graph.nodes.len()).collect();
    order.sort_by_key(|node| (layers[*node], *node));
    order
}

/// The layer of each node: below all that lead to it, but for edges that go back.
fn layers(graph: &Graph) -> Vec<usize> {
    let count = graph.nodes.len();
    let forward = forward(graph);
    let mut open = vec![0_usize; count];
    for edge in &forward {
        open[edge.1] += 1;
    }
    let mut layers = vec![0; count];
    let mut ready: VecDeque<usize> = (0..count).filter(|node| open[*node] == 0).collect();
    while let Some(node) = ready.pop_front() {
        for (_, to) in forward.iter().filter(|(from, _)| *from == node) {
            layers[*to] = layers[*to].max(layers[node] + 1);
            open[*to] -= 1;
            if open[*to] == 0 {
                ready.push_back(*to);
            }
        }
    }
    layers
}

/// The edges without those that close a cycle, as seen from the first node.
fn forward(graph: &Graph) -> Vec<(usize, usize)> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Seen {
        Never,
        Open,
        Done,
    }
    let count = graph.nodes.len();
    let mut seen = vec![Seen::Never; count];
    let mut forward = Vec::new();
    let first = graph.nodes.iter().position(|node| node.is_initial);
    for root in first.into_iter().chain(0..count) {
        // A node, and how many of its edges were walked: no recursion, whatever the graph.
        let mut walk = vec![(root, 0)];
        if seen[root] != Seen::Never {
            continue;
        }
        seen[root] = Seen::Open;
        while let Some((node, next)) = walk.pop() {
            let Some(edge) = graph.from(node).nth(next) else {
                seen[node] = Seen::Done;
                continue;
            };
            walk.push((node, next + 1));
            if seen[edge.to] == Seen::Open {
                continue;
            }
            forward.push((node, edge.to));
            if seen[edge.to] == Seen::Never {
                seen[edge.to] = Seen::Open;
                walk.push((edge.to, 0));
            }
        }
    }
    forward
}

impl Item {
    fn new(layer: usize, size: Size) -> Self {
        Self { layer, size, x: 0.0, above: Vec::new(), below: Vec::new() }
    }
}

/// In which layers an edge has a place of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bends {
    /// In every layer between its nodes.
    All,
    /// In the layer of its label.
    Label,
}

/// The places that an edge comes by, from the top down; one of them has the label.
fn chain(items: &mut Vec<Item>, edge: &Edge, label: Size, bends: Bends) -> Vec<usize> {
    let (from, to) = (edge.from, edge.to);
    let (top, bottom) = match items[from].layer <= items[to].layer {
        true => (from, to),
        false => (to, from),
    };
    let (first, last) = (items[top].layer + 1, items[bottom].layer);
    let mut chain = Vec::new();
    let mut above = top;
    // An edge that goes up has its label where it begins.
    let labeled = if top == from { first } else { last.saturating_sub(1) };
    let layers = match bends {
        Bends::All => first..last.max(first),
        Bends::Label => labeled..(labeled + 1).min(last).max(labeled),
    };
    for layer in layers {
        let size = if layer == labeled { label } else { Size { width: 8.0, height: 0.0 } };
        let at = items.len();
        items.push(Item::new(layer, size));
        join(items, above, at);
        chain.push(at);
        above = at;
    }
    if first < last || top != bottom {
        join(items, above, bottom);
    }
    chain
}

fn join(items: &mut [Item], above: usize, below: usize) {
    items[above].below.push(below);
    items[below].above.push(above);
}

/// The items of each layer, as they came.
fn ordered(items: &[Item]) -> Vec<Vec<usize>> {
    let count = items.iter().map(|item| item.layer + 1).max().unwrap_or(0);
    let mut order = vec![Vec::new(); count];
    for (at, item) in items.iter().enumerate() {
        order[item.layer].push(at);
    }
    order
}

/// Moves items within their layers to the middle of their neighbors, and keeps the order with the
/// fewest crossings.
fn untangle(items: &mut [Item], order: &mut Vec<Vec<usize>>) {
    let mut places = vec![0.0; items.len()];
    let number = |order: &[Vec<usize>], places: &mut [f64]| {
        for layer in order {
            for (place, item) in layer.iter().enumerate() {
                places[*item] = place as f64;
            }
        }
    };
    number(order, &mut places);
    let mut best = (crossings(items, order, &places), order.clone());
    for round in 0..ROUNDS {
        let down = round % 2 == 0;
        let layers: Vec<usize> = match down {
            true => (0..order.len()).collect(),
            false => (0..order.len()).rev().collect(),
        };
        for layer in layers {
            let middle = |item: &usize| {
                let near = if down { &items[*item].above } else { &items[*item].below };
                match near.is_empty() {
                    true => places[*item],
                    false => near.iter().map(|at| places[*at]).sum::<f64>() / near.len() as f64,
                }
            };
            let mut keyed: Vec<_> = order[layer].iter().map(|item| (middle(item), *item)).collect();
            keyed.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
            order[layer] = keyed.into_iter().map(|(_, item)| item).collect();
            for (place, item) in order[layer].iter().enumerate() {
                places[*item] = place as f64;
            }
        }
        let found = crossings(items, order, &places);
        if found < best.0 {
            best = (found, order.clone());
        }
    }
    *order = best.1;
}

/// The number of pairs of lines that cross, between each layer and what is below it.
fn crossings(items: &[Item], order: &[Vec<usize>], places: &[f64]) -> usize {
    let mut count = 0;
    for layer in order {
        let lines = layer.iter().flat_map(|above| {
            items[*above].below.iter().map(|below| (places[*above], places[*below]))
        });
        let mut lines: Vec<(f64, f64)> = lines.collect();
        lines.sort_by(|one, two| one.0.total_cmp(&two.0).then(one.1.total_cmp(&two.1)));
        let mut ends: Vec<f64> = lines.into_iter().map(|(_, below)| below).collect();
        count += inversions(&mut ends);
    }
    count
}

/// The number of pairs that are in the wrong order; sorts on the way.
fn inversions(values: &mut [f64]) -> usize {
    let mut count = 0;
    let mut sorted = values.to_vec();
    let mut width = 1;
    // A merge sort from the bottom up.
    while width < values.len() {
        for (from, to) in values.chunks(2 * width).zip(sorted.chunks_mut(2 * width)) {
            let (mut left, mut right) = from.split_at(width.min(from.len()));
            for place in to {
                let takes_right = match (left.first(), right.first()) {
                    (Some(one), Some(two)) => two < one,
                    (first, _) => first.is_none(),
                };
                let side = if takes_right { &mut right } else { &mut left };
                let Some((first, rest)) = side.split_first() else { break };
                *place = *first;
                *side = rest;
                count += if takes_right { left.len() } else { 0 };
            }
        }
        values.copy_from_slice(&sorted);
        width *= 2;
    }
    count
}

/// Gives each item its x: as near to its neighbors as those beside it allow.
fn place(items: &mut [Item], order: &[Vec<usize>]) {
    for layer in order {
        let mut x = 0.0;
        for item in layer {
            x += items[*item].size.width / 2.0;
            items[*item].x = x;
            x += items[*item].size.width / 2.0 + GAP_X;
        }
    }
    for round in 0..ROUNDS {
        let layers: Vec<usize> = match round % 2 == 0 {
            true => (0..order.len()).collect(),
            false => (0..order.len()).rev().collect(),
        };
        for layer in layers {
            let wish = |item: &usize| {
                let (mut sum, mut weight) = (0.0, 0.0);
                let it = &items[*item];
                for near in it.above.iter().chain(&it.below) {
                    // Long edges are kept straight before all else.
                    let is_thin = it.size.height == 0.0 || items[*near].size.height == 0.0;
                    let pull = if is_thin { 4.0 } else { 1.0 };
                    sum += items[*near].x * pull;
                    weight += pull;
                }
                if weight == 0.0 { it.x } else { sum / weight }
            };
            let wishes: Vec<f64> = order[layer].iter().map(wish).collect();
            let widths: Vec<f64> =
                order[layer].iter().map(|item| items[*item].size.width).collect();
            for (item, x) in order[layer].iter().zip(apart(&wishes, &widths)) {
                items[*item].x = x;
            }
        }
    }
}

/// Takes the bends out of long edges: places that an edge comes by one after the other get one x, as far
/// as what is beside them in their layers leaves room for it.
fn straighten(items: &mut [Item], order: &[Vec<usize>], chains: &[Vec<usize>]) {
    for chain in chains {
        let mut rest = chain.as_slice();
        while !rest.is_empty() {
            let (mut low, mut high) = (f64::MIN, f64::MAX);
            let mut count = 0;
            for stop in rest {
                let (left, right) = room(items, order, *stop);
                if low.max(left) > high.min(right) {
                    break;
                }
                (low, high) = (low.max(left), high.min(right));
                count += 1;
            }
            let (run, after) = rest.split_at(count.max(1));
            rest = after;
            if count < 2 {
                continue;
            }
            // A label stays where it is, if it is among them.
            let label = run.iter().find(|stop| items[**stop].size.height > 0.0);
            let mean = run.iter().map(|stop| items[*stop].x).sum::<f64>() / run.len() as f64;
            let x = label.map_or(mean, |stop| items[*stop].x).clamp(low, high);
            run.iter().for_each(|stop| items[*stop].x = x);
        }
    }
}

/// From where to where the middle of an item can be moved within its layer.
fn room(items: &[Item], order: &[Vec<usize>], item: usize) -> (f64, f64) {
    let layer = &order[items[item].layer];
    let place = layer.iter().position(|other| *other == item).unwrap_or(0);
    let half = items[item].size.width / 2.0;
    let edge = |other: usize, sign: f64| items[other].x + sign * items[other].size.width / 2.0;
    let left = place.checked_sub(1).map(|before| edge(layer[before], 1.0) + GAP_X + half);
    let right = layer.get(place + 1).map(|after| edge(*after, -1.0) - GAP_X - half);
    let x = items[item].x;
    // Where it is now is always possible.
    (left.map_or(f64::MIN, |left| left.min(x)), right.map_or(f64::MAX, |right| right.max(x)))
}

/// The places nearest to those wished for at which nothing overlaps: neighbors that want the same
/// room are moved together, to the mean of what they want.
fn apart(wishes: &[f64], widths: &[f64]) -> Vec<f64> {
    let mut offsets = vec![0.0; wishes.len()];
    for at in 1..wishes.len() {
        offsets[at] = offsets[at - 1] + (widths[at - 1] + widths[at]) / 2.0 + GAP_X;
    }
    // Blocks of (sum of wishes, count), each at its mean.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (wish, offset) in wishes.iter().zip(&offsets) {
        blocks.push((wish - offset, 1));
        while let [.., (left, left_count), (right, right_count)] = blocks.as_slice() {
            if left / *left_count as f64 <= right / *right_count as f64 {
                break;
            }
            let joined = (left + right, left_count + right_count);
            blocks.truncate(blocks.len() - 2);
            blocks.push(joined);
        }
    }
    let bases =
        blocks.iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / *count as f64, *count));
    bases.zip(&offsets).map(|(base, offset)| base + offset).collect()
}

/// Where each layer begins and how high it is, and the height of all.
fn heights(items: &[Item], order: &[Vec<usize>]) -> (Vec<(f64, f64)>, f64) {
    let mut top = 0.0;
    let mut tops = Vec::new();
    for layer in order {
        let height = layer.iter().map(|item| items[*item].size.height).fold(0.0, f64::max);
        tops.push((top, height));
        top += height + GAP_Y;
    }
    (tops, (top - GAP_Y).max(0.0))
}

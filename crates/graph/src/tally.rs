//! Counts of a run's tokens per node, transition and group, fed one token at a time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tenure_flow::Definition;

use crate::model::Progress;
use crate::standing::Standing;

/// Different error codes that a node shows; the rest is left out.
const NODE_ERRORS_MAX: usize = 100;

/// A token of a run, as far as it is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Token<'t> {
    /// The token's number in the run.
    pub id: u32,
    /// The token that it comes from.
    pub parent: Option<u32>,
    /// The name of the token's node.
    pub node: &'t str,
    /// The token's state as the API has it.
    pub state: &'t str,
    /// The name of the transition that led to the token, if that has a name.
    pub via: Option<&'t str>,
    /// The token's scope: `root/bids#1[4]`.
    pub path: &'t str,
    /// The number of branches in the token's group.
    pub branch_total: Option<u32>,
    /// The error code of a token that failed.
    pub error: Option<&'t str>,
}

/// The counts of a run's tokens. Tokens are added in the order of their numbers, as lists have them.
#[derive(Debug)]
pub struct Tally {
    pub(crate) definition: Arc<Definition>,
    nodes: HashMap<Arc<str>, usize>,
    /// Transitions with a name, by that name.
    named: HashMap<Arc<str>, usize>,
    /// Transitions without a name, by the nodes that they connect.
    unnamed: HashMap<(usize, usize), usize>,
    /// The transitions of each node that lead to a join, with the group that is joined.
    joins: Vec<Vec<(usize, Arc<str>)>>,
    counts: Vec<NodeCounts>,
    taken: Vec<u64>,
    visits: HashMap<u32, Visit>,
    groups: HashMap<String, BTreeMap<(u64, String), Opening>>,
}

/// The tokens of one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeCounts {
    pub(crate) by_standing: BTreeMap<Standing, u64>,
    pub(crate) errors: Vec<String>,
}

/// One token's visit of a node.
#[derive(Clone, Copy, Debug)]
struct Visit {
    node: usize,
    /// The join that the token has reached if no other token follows it.
    join: Option<usize>,
}

/// One opening of a group: the number of its branches, and which of those that began have a live
/// token.
#[derive(Clone, Debug, Default)]
struct Opening {
    total: u32,
    is_live: BTreeMap<u32, bool>,
}

impl Tally {
    /// Creates an empty tally for the runs of a definition.
    #[must_use]
    pub fn new(definition: Arc<Definition>) -> Self {
        let mut joins = vec![Vec::new(); definition.nodes.len()];
        let (mut named, mut unnamed) = (HashMap::new(), HashMap::new());
        for (at, transition) in definition.transitions.iter().enumerate() {
            let (from, to) = (transition.from.get(), transition.to.get());
            if let Some(group) = transition.joins {
                joins[from].push((at, Arc::clone(&definition.group(group).name)));
            } else if let Some(name) = &transition.name {
                named.entry(Arc::clone(name)).or_insert(at);
            } else {
                unnamed.entry((from, to)).or_insert(at);
            }
        }
        let nodes =
            definition.nodes.iter().enumerate().map(|(at, node)| (Arc::clone(&node.name), at));
        let nodes = nodes.collect();
        Self {
            nodes,
            named,
            unnamed,
            joins,
            counts: vec![NodeCounts::default(); definition.nodes.len()],
            taken: vec![0; definition.transitions.len()],
            visits: HashMap::new(),
            groups: HashMap::new(),
            definition,
        }
    }

    /// Adds a token.
    pub fn add(&mut self, token: Token<'_>) {
        let standing = Standing::of(token.state);
        let frames = frames(token.path);
        self.add_to_groups(&frames, token.branch_total, !standing.is_over());
        let parent = token.parent.and_then(|parent| self.visits.get_mut(&parent));
        // A token that another one follows went on, and did not end at a join.
        let from = parent.map(|parent| {
            parent.join = None;
            parent.node
        });
        let Some(&node) = self.nodes.get(token.node) else { return };
        self.counts[node].add(standing, token.error);
        let led_here = match token.via {
            Some(via) => self.named.get(via),
            None => from.and_then(|from| self.unnamed.get(&(from, node))),
        };
        if let Some(transition) = led_here {
            self.taken[*transition] += 1;
        }
        let mut joins = self.joins[node].iter().filter(|_| standing == Standing::Completed);
        let join = joins.find(|(_, group)| frames.iter().any(|frame| frame.group == &**group));
        self.visits.insert(token.id, Visit { node, join: join.map(|(at, _)| *at) });
    }

    fn add_to_groups(&mut self, frames: &[Frame<'_>], total: Option<u32>, is_live: bool) {
        for (depth, frame) in frames.iter().enumerate() {
            if !self.groups.contains_key(frame.group) {
                self.groups.insert(frame.group.to_owned(), BTreeMap::new());
            }
            let Some(openings) = self.groups.get_mut(frame.group) else { continue };
            let opening = openings.entry((frame.number, frame.before.to_owned())).or_default();
            // A token's total belongs to its innermost group.
            if depth == 0 {
                opening.total = opening.total.max(total.unwrap_or(0));
            }
            *opening.is_live.entry(frame.index).or_default() |= is_live;
        }
    }

    /// The number of tokens that were added.
    pub(crate) fn tokens(&self) -> u64 {
        self.visits.len() as u64
    }

    /// The counts of each node.
    pub(crate) fn take_counts(&mut self) -> Vec<NodeCounts> {
        std::mem::take(&mut self.counts)
    }

    /// How often each transition was taken. A join was taken by every token that completed in a
    /// branch and that no other token follows.
    pub(crate) fn taken(&self) -> Vec<u64> {
        let mut taken = self.taken.clone();
        for join in self.visits.values().filter_map(|visit| visit.join) {
            taken[join] += 1;
        }
        taken
    }

    /// The progress of a group: a branch has ended when no token in it is live. The figures are
    /// those of the last opening.
    pub(crate) fn progress(&self, group: &str) -> Option<Progress> {
        let openings = self.groups.get(group)?;
        let Opening { total, is_live } = openings.values().next_back()?;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Some(Progress {
            settled: count(is_live.values().filter(|is_live| !**is_live).count()),
            total: (*total).max(count(is_live.len())),
            opened: count(openings.len()),
        })
    }
}

impl NodeCounts {
    fn add(&mut self, standing: Standing, error: Option<&str>) {
        *self.by_standing.entry(standing).or_default() += 1;
        let Some(code) = error.filter(|_| standing.is_failure()) else { return };
        let is_known = self.errors.iter().any(|known| known == code);
        if !is_known && self.errors.len() < NODE_ERRORS_MAX {
            self.errors.push(code.to_owned());
        }
    }
}

/// One step of a path.
struct Frame<'p> {
    group: &'p str,
    number: u64,
    index: u32,
    before: &'p str,
}

/// The steps of a path like `root/bids#1[4]/parts#3[0]`, the innermost first.
fn frames(path: &str) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    let mut rest = path;
    while let Some((before, frame)) = rest.rsplit_once('/') {
        let read = || {
            let (group, numbers) = frame.rsplit_once('#')?;
            let (number, index) = numbers.strip_suffix(']')?.split_once('[')?;
            Some(Frame { group, number: number.parse().ok()?, index: index.parse().ok()?, before })
        };
        frames.extend(read());
        rest = before;
    }
    frames
}

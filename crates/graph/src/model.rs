//! What is drawn: a definition's nodes and transitions in words, and where a run stands among them.
//! How it looks is the business of `text.rs`, `dot.rs` and `svg.rs`.

use std::collections::{BTreeMap, BTreeSet};

use tenure_code::duration_text;
use tenure_flow::Definition;
use tenure_flow::definition::{
    FanOut, Group, Node, NodeIndex, NodeKind, Outcome, Spawn, TimerNode, Transition, WaitFor,
};

use crate::standing::Standing;

/// A token of a run, as far as it is drawn.
#[derive(Clone, Debug, Default)]
pub struct Token {
    /// Its number in the run.
    pub id: u32,
    /// The token that it comes from.
    pub parent: Option<u32>,
    /// Its node's name.
    pub node: String,
    /// Its state as the API has it.
    pub state: String,
    /// The transition that it took, if that has a name.
    pub via: Option<String>,
    /// Its scope: `root/bids#1[4]`.
    pub path: String,
    /// How many branches its group has.
    pub branch_total: Option<u32>,
    /// The code of what went wrong.
    pub error: Option<String>,
}

/// A definition, and where a run stands in it.
#[derive(Debug)]
pub struct Graph {
    /// What is drawn, such as `order 1`, and how it stands.
    pub title: Vec<String>,
    /// Whether there is a run, or only a definition.
    pub has_run: bool,
    /// By their place in the definition.
    pub nodes: Vec<Spot>,
    /// In the order in which they are tried, node by node.
    pub ways: Vec<Way>,
}

/// A node.
#[derive(Debug)]
pub struct Spot {
    /// The name in the definition.
    pub name: String,
    /// `task`, `signal` and so on.
    pub kind: &'static str,
    /// The queue, the signal, the delay.
    pub detail: String,
    /// Whether runs begin there.
    pub is_initial: bool,
    /// How many tokens are, or were, there, by how they stand; the most urgent first.
    pub counts: BTreeMap<Standing, usize>,
    /// The codes of what went wrong there, each once.
    pub errors: Vec<String>,
}

impl Spot {
    /// How the node looks as a whole.
    #[must_use]
    pub fn standing(&self) -> Option<Standing> {
        self.counts.keys().next().copied()
    }
}

/// A transition.
#[derive(Debug)]
pub struct Way {
    /// Nodes by their place.
    pub from: usize,
    /// The node it leads to.
    pub to: usize,
    /// What sort of way it is.
    pub kind: WayKind,
    /// When it is taken, and what it does.
    pub label: String,
    /// How many tokens took it.
    pub taken: usize,
    /// How far its group is.
    pub progress: Option<Progress>,
}

/// What sort of way it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayKind {
    /// An ordinary one.
    Plain,
    /// After an error.
    Error,
    /// Opens branches.
    FanOut,
    /// Where branches meet.
    Join,
}

/// How many branches have come to an end, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Branches that have ended.
    pub settled: u32,
    /// Branches in all.
    pub total: u32,
    /// How often the group was opened; the figures are those of the last time.
    pub opened: u32,
}

impl Progress {
    /// `3/5`, and how often it was opened if that was more than once.
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
    /// A definition alone.
    #[must_use]
    pub fn of(definition: &Definition, title: Vec<String>) -> Self {
        Self::with(definition, title, None)
    }

    /// A definition, and where a run's tokens stand in it.
    #[must_use]
    pub fn of_run(definition: &Definition, title: Vec<String>, tokens: &[Token]) -> Self {
        Self::with(definition, title, Some(tokens))
    }

    fn with(definition: &Definition, title: Vec<String>, tokens: Option<&[Token]>) -> Self {
        let spot = |(place, node): (usize, &Node)| Spot {
            is_initial: definition.initial_node.get() == place,
            ..spot(node, tokens.unwrap_or_default())
        };
        let nodes = definition.nodes.iter().enumerate().map(spot).collect();
        let progress = progress(tokens.unwrap_or_default());
        let taken = taken(definition, tokens.unwrap_or_default());
        let mut ways = Vec::new();
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
                ways.push(Way {
                    from: transition.from.get(),
                    to: transition.to.get(),
                    kind: kind(transition),
                    label: label(definition, transition, group),
                    taken: taken[index.get()],
                    progress: group.and_then(|group| progress.get(&*group.name).copied()),
                });
            }
        }
        ways.extend(otherwise(definition));
        Self { title, has_run: tokens.is_some(), nodes, ways }
    }

    /// The ways that begin at a node.
    pub fn from(&self, node: usize) -> impl Iterator<Item = &Way> {
        self.ways.iter().filter(move |way| way.from == node)
    }
}

/// How often each transition was taken. One without a name is known by the nodes that it leads from
/// and to. A join was taken by those who are done in a branch and went nowhere else.
fn taken(definition: &Definition, tokens: &[Token]) -> Vec<usize> {
    let nodes: BTreeMap<u32, &str> = tokens.iter().map(|it| (it.id, it.node.as_str())).collect();
    let parents: BTreeSet<u32> = tokens.iter().filter_map(|token| token.parent).collect();
    let name_of = |node: NodeIndex| &*definition.node(node).name;
    let mut taken = vec![0; definition.transitions.len()];
    for token in tokens {
        let from = token.parent.and_then(|parent| nodes.get(&parent).copied());
        let led_here = |it: &Transition| match (&token.via, &it.name) {
            _ if it.joins.is_some() => false,
            (Some(via), Some(name)) => **via == **name,
            (None, None) => Some(name_of(it.from)) == from && name_of(it.to) == token.node,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let is_last =
            Standing::of(&token.state) == Standing::Completed && !parents.contains(&token.id);
        let groups: Vec<&str> = frames(&token.path).iter().map(|frame| frame.group).collect();
        let joined = |it: &Transition| {
            let group = it.joins.map(|group| &*definition.group(group).name);
            is_last
                && name_of(it.from) == token.node
                && group.is_some_and(|it| groups.contains(&it))
        };
        let found = definition.transitions.iter().position(led_here);
        let joined = definition.transitions.iter().position(joined);
        for place in found.into_iter().chain(joined) {
            taken[place] += 1;
        }
    }
    taken
}

/// Where runs go on whose join has failed.
fn otherwise(definition: &Definition) -> Vec<Way> {
    let mut ways = Vec::new();
    for group in &definition.groups {
        let Some(join) = &group.join else { continue };
        let Some(to) = join.synchronization.else_to else { continue };
        ways.push(Way {
            from: join.target.get(),
            to: to.get(),
            kind: WayKind::Error,
            label: format!("if {} cannot be joined", group.name),
            taken: 0,
            progress: None,
        });
    }
    ways
}

fn spot(node: &Node, tokens: &[Token]) -> Spot {
    let mut spot = Spot {
        name: node.name.to_string(),
        kind: kind_name(&node.kind),
        detail: detail(&node.kind),
        is_initial: false,
        counts: BTreeMap::new(),
        errors: Vec::new(),
    };
    for token in tokens.iter().filter(|token| *token.node == *node.name) {
        let standing = Standing::of(&token.state);
        *spot.counts.entry(standing).or_default() += 1;
        let error = token.error.as_ref().filter(|_| standing.is_failure());
        spot.errors.extend(error.filter(|code| !spot.errors.contains(code)).cloned());
    }
    spot
}

fn kind_name(kind: &NodeKind) -> &'static str {
    match kind {
        NodeKind::Task(_) => "task",
        NodeKind::Pass => "pass",
        NodeKind::Workflow(_) => "workflow",
        NodeKind::Signal(_) => "signal",
        NodeKind::Timer(_) => "timer",
    }
}

fn detail(kind: &NodeKind) -> String {
    match kind {
        NodeKind::Task(node) => node.queue.to_string(),
        NodeKind::Pass => String::new(),
        NodeKind::Workflow(node) => match node.version {
            Some(version) => format!("{} {version}", node.workflow),
            None => node.workflow.to_string(),
        },
        NodeKind::Signal(node) => node.signal.to_string(),
        NodeKind::Timer(TimerNode::Delay(ms)) => duration_text(*ms),
        NodeKind::Timer(TimerNode::Until(expression)) => format!("until {}", expression.text()),
    }
}

fn kind(transition: &Transition) -> WayKind {
    if transition.fan_out.is_some() {
        WayKind::FanOut
    } else if transition.joins.is_some() {
        WayKind::Join
    } else if transition.outcome == Outcome::Error {
        WayKind::Error
    } else {
        WayKind::Plain
    }
}

fn label(definition: &Definition, transition: &Transition, group: Option<&Group>) -> String {
    let mut words = Vec::new();
    match transition.outcome {
        Outcome::Success => {}
        Outcome::Error => words.push("on error".to_owned()),
        Outcome::Any => words.push("in any case".to_owned()),
    }
    match &transition.condition {
        Some(condition) => words.push(one_line(condition.text())),
        None if has_earlier(definition, transition) => words.push("otherwise".to_owned()),
        None => {}
    }
    words.extend(transition.loop_max.map(|max| match max {
        1 => "once".to_owned(),
        max => format!("at most {max} times"),
    }));
    words.extend(transition.fan_out.as_ref().map(|fan| fan_words(fan, group)));
    if transition.joins.is_some() {
        words.extend(group.and_then(join_words));
    }
    words.retain(|word| !word.is_empty());
    words.join(", ")
}

/// Whether another transition is tried before it, so that it stands for what is left.
fn has_earlier(definition: &Definition, transition: &Transition) -> bool {
    let others = definition.transitions.iter().filter(|it| it.from == transition.from);
    let mut others = others.filter(|it| it.outcome == transition.outcome);
    others.any(|it| it.priority < transition.priority)
}

fn fan_words(fan: &FanOut, group: Option<&Group>) -> String {
    match &fan.spawn {
        Spawn::Foreach(foreach) => {
            let each =
                format!("each {} of {}", foreach.item_var, one_line(foreach.collection.text()));
            match foreach.max_concurrency {
                Some(max) => format!("{each}, {max} at a time"),
                None => each,
            }
        }
        // Several ways of one group need no count; it has a name.
        Spawn::Count(1) => group.map_or_else(String::new, |group| group.name.to_string()),
        Spawn::Count(count) => format!("{count} times"),
        Spawn::From(expression) => format!("{} times", one_line(expression.text())),
    }
}

fn join_words(group: &Group) -> Option<String> {
    let wait_for = match group.join.as_ref()?.synchronization.wait_for {
        WaitFor::All => "all".to_owned(),
        WaitFor::Any => "the first".to_owned(),
        WaitFor::Count(count) => count.to_string(),
        WaitFor::Percent(percent) => format!("{percent} %"),
    };
    Some(format!("joins {wait_for} of {}", group.name))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One opening of a group: how many branches it has, and in which of those that began a token is
/// live.
#[derive(Clone, Debug, Default)]
struct Opening {
    total: u32,
    is_live: BTreeMap<u32, bool>,
}

/// How far each group is, by its name: a branch has come to its end when no token in it is live.
fn progress(tokens: &[Token]) -> BTreeMap<&str, Progress> {
    // Openings by their number and the path before them, so that the last one comes last.
    let mut groups: BTreeMap<&str, BTreeMap<(u64, &str), Opening>> = BTreeMap::new();
    for token in tokens {
        let is_live = !Standing::of(&token.state).is_over();
        for (depth, frame) in frames(&token.path).into_iter().enumerate() {
            let openings = groups.entry(frame.group).or_default();
            let opening = openings.entry((frame.number, frame.before)).or_default();
            // Only the innermost frame is what the token's total is about.
            if depth == 0 {
                opening.total = opening.total.max(token.branch_total.unwrap_or(0));
            }
            *opening.is_live.entry(frame.index).or_default() |= is_live;
        }
    }
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let far = |openings: &BTreeMap<(u64, &str), Opening>| {
        let Opening { total, is_live } = openings.values().next_back().cloned().unwrap_or_default();
        Progress {
            settled: count(is_live.values().filter(|is_live| !**is_live).count()),
            total: total.max(count(is_live.len())),
            opened: count(openings.len()),
        }
    };
    groups.iter().map(|(name, openings)| (*name, far(openings))).collect()
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

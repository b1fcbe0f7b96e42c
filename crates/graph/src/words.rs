//! A definition's nodes and transitions in words.

use tenure_code::duration_text;
use tenure_flow::Definition;
use tenure_flow::definition::{
    FanOut, Group, NodeKind, Outcome, Spawn, TimerNode, Transition, WaitFor,
};

use crate::model::EdgeKind;

/// The kind of a node as definitions write it.
pub(crate) fn kind_name(kind: &NodeKind) -> &'static str {
    match kind {
        NodeKind::Task(_) => "task",
        NodeKind::Pass => "pass",
        NodeKind::Workflow(_) => "workflow",
        NodeKind::Signal(_) => "signal",
        NodeKind::Timer(_) => "timer",
    }
}

/// The queue, the signal or the delay of a node.
pub(crate) fn detail(kind: &NodeKind) -> String {
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

/// The kind of a transition's edge.
pub(crate) fn kind(transition: &Transition) -> EdgeKind {
    if transition.fan_out.is_some() {
        EdgeKind::FanOut
    } else if transition.joins.is_some() {
        EdgeKind::Join
    } else if transition.outcome == Outcome::Error {
        EdgeKind::Error
    } else {
        EdgeKind::Plain
    }
}

/// When a transition is taken, and what it does.
pub(crate) fn label(
    definition: &Definition,
    transition: &Transition,
    group: Option<&Group>,
) -> String {
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

//! Which transitions form a group, and what their joins agree on.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fields::Findings;
use super::join::ReadJoin;
use super::name::suggestion;
use super::transition::ReadTransition;
use super::{
    Group, GroupIndex, Join, JoinTimeout, NodeIndex, Spawn, Synchronization, TransitionIndex,
    WaitFor,
};
use crate::fault::FaultCode;

/// A transition whose ends are nodes, if they are.
pub(super) struct Linked<'a> {
    pub(super) read: &'a ReadTransition,
    pub(super) from: Option<NodeIndex>,
    pub(super) to: Option<NodeIndex>,
}

/// The groups, and for each transition the one it opens and the one it joins.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) groups: Vec<Group>,
    pub(super) opens: Vec<Option<GroupIndex>>,
    pub(super) joins: Vec<Option<GroupIndex>>,
}

pub(super) fn resolve(
    transitions: &[Linked<'_>],
    nodes: &BTreeMap<Arc<str>, NodeIndex>,
    found: &mut Findings,
) -> Groups {
    let by_name = by_name(transitions, found);
    let mut groups = open(transitions, &by_name);
    for (place, transition) in transitions.iter().enumerate() {
        if let Some(join) = &transition.read.join {
            groups.joins[place] = joined(join, place, transitions, &by_name, &groups, found);
        }
    }
    check_tiers(&groups, transitions, found);
    for index in 0..groups.groups.len() {
        let joins = |place: &usize| groups.joins[*place] == Some(GroupIndex::of(index));
        let joining: Vec<usize> = (0..transitions.len()).filter(joins).collect();
        groups.groups[index].join = agree(&joining, transitions, nodes, found);
        check_need(&groups.groups[index], &joining, transitions, found);
    }
    groups
}

fn by_name(transitions: &[Linked<'_>], found: &mut Findings) -> BTreeMap<Arc<str>, usize> {
    let mut names = BTreeMap::new();
    for (place, transition) in transitions.iter().enumerate() {
        let Some(name) = &transition.read.name else { continue };
        if names.insert(Arc::clone(name), place).is_some() {
            found.add(
                &format!("{}/ref", transition.read.pointer),
                FaultCode::DuplicateRef,
                format!("another transition is called `{name}` too; give each a name of its own"),
            );
        }
    }
    names
}

/// Every fan-out belongs to a group: the one it names, or one of its own.
fn open(transitions: &[Linked<'_>], by_name: &BTreeMap<Arc<str>, usize>) -> Groups {
    let is_joined = |place: usize| {
        transitions.iter().any(|other| {
            let joins = other.read.join.as_ref().and_then(|join| join.joins.as_ref());
            joins.is_some_and(|name| by_name.get(name) == Some(&place))
        })
    };
    let mut groups = Groups {
        groups: Vec::new(),
        opens: vec![None; transitions.len()],
        joins: vec![None; transitions.len()],
    };
    for (place, transition) in transitions.iter().enumerate() {
        let read = transition.read;
        let fans_out = read.spawn.is_some() || read.sibling_group.is_some() || is_joined(place);
        if !fans_out || read.join.is_some() {
            continue;
        }
        let named = read.sibling_group.clone().or_else(|| read.name.clone());
        let name = named.unwrap_or_else(|| unnamed(place, transitions));
        let known = groups.groups.iter().position(|group| group.name == name);
        let index = known.unwrap_or_else(|| {
            groups.groups.push(Group {
                name,
                from: transition.from.unwrap_or(NodeIndex(u32::MAX)),
                priority: read.priority,
                transitions: Vec::new(),
                join: None,
            });
            groups.groups.len() - 1
        });
        groups.groups[index].transitions.push(TransitionIndex::of(place));
        groups.opens[place] = Some(GroupIndex::of(index));
    }
    groups
}

/// A name for the group of a transition that has none, and that nothing else has.
fn unnamed(place: usize, transitions: &[Linked<'_>]) -> Arc<str> {
    let is_taken = |name: &str| {
        transitions.iter().any(|other| {
            let names = [&other.read.name, &other.read.sibling_group];
            names.into_iter().flatten().any(|taken| &**taken == name)
        })
    };
    let mut name = format!("t{place}");
    while is_taken(&name) {
        name.push('_');
    }
    name.into()
}

/// The group that a join names: by a transition of it, or by its own name.
fn joined(
    join: &ReadJoin,
    place: usize,
    transitions: &[Linked<'_>],
    by_name: &BTreeMap<Arc<str>, usize>,
    groups: &Groups,
    found: &mut Findings,
) -> Option<GroupIndex> {
    let name = join.joins.as_ref()?;
    let pointer = format!("{}/joins_transition", join.pointer);
    let Some(named) = by_name.get(name) else {
        let group = groups.groups.iter().position(|group| group.name == *name);
        if group.is_none() {
            let near = suggestion(name, by_name.keys().map(|name| &**name));
            let message = format!("there is no transition called `{name}`{near}");
            found.add(&pointer, FaultCode::UnknownRef, message);
        }
        return group.map(GroupIndex::of);
    };
    if *named == place || transitions[*named].read.join.is_some() {
        let message = format!(
            "`{name}` joins branches and opens none; name the transition that opened the group"
        );
        found.add(&pointer, FaultCode::NotAGroup, message);
        return None;
    }
    groups.opens[*named]
}

/// Transitions of a group fire in one step, so they begin at one node and are of one tier.
fn check_tiers(groups: &Groups, transitions: &[Linked<'_>], found: &mut Findings) {
    for group in &groups.groups {
        let Some((first, rest)) = group.transitions.split_first() else { continue };
        let first = &transitions[first.get()];
        for other in rest.iter().map(|index| &transitions[index.get()]) {
            let is_one = other.from == first.from && other.read.priority == first.read.priority;
            if !is_one {
                let name = &group.name;
                let message = format!(
                    "the transitions of group `{name}` can never fire together; give them one \
                     `from` and one `priority`, or another `sibling_group`"
                );
                found.add(&other.read.pointer, FaultCode::SplitGroup, message);
            }
        }
    }
}

/// What the joins of one group say together. Each thing may be said once, or twice the same.
fn agree(
    joining: &[usize],
    transitions: &[Linked<'_>],
    nodes: &BTreeMap<Arc<str>, NodeIndex>,
    found: &mut Findings,
) -> Option<Join> {
    let (first, rest) = joining.split_first()?;
    let target = transitions[*first].to;
    for other in rest.iter().map(|place| &transitions[*place]) {
        if other.to.is_some() && target.is_some() && other.to != target {
            let message = "the branches of one group meet at one node; another join of this group \
                           leads elsewhere";
            found.add(&format!("{}/to", other.read.pointer), FaultCode::TwoJoinTargets, message);
        }
    }
    let joins: Vec<&ReadJoin> =
        joining.iter().filter_map(|place| transitions[*place].read.join.as_ref()).collect();
    let wait_for = said(&joins, "wait_for", |join| join.wait_for, found);
    let min_success = said(&joins, "min_success", |join| join.min_success, found);
    let fail_fast = said(&joins, "fail_fast", |join| join.fail_fast, found);
    let on_unreachable = said(&joins, "on_unreachable", |join| join.on_unreachable, found);
    let on_late = said(&joins, "on_late", |join| join.on_late, found);
    let timeout_ms = said(&joins, "timeout_ms", |join| join.timeout_ms, found);
    let timeout_from = said(&joins, "timeout_from", |join| join.timeout_from, found);
    let on_timeout = said(&joins, "on_timeout", |join| join.on_timeout, found);
    let else_to = said(&joins, "else_to", |join| join.else_to.clone(), found);
    let merge = said(&joins, "merge", |join| join.merge.as_ref().map(|m| m.0.clone()), found);
    let merges = joins.iter().find_map(|join| join.merge.as_ref());
    if timeout_ms.is_none() && (timeout_from.is_some() || on_timeout.is_some()) {
        let message = "without `timeout_ms` there is no timeout to say this of";
        found.add(&joins[0].pointer, FaultCode::FieldConflict, message);
    }
    let timeout = timeout_ms.map(|timeout_ms| JoinTimeout {
        timeout_ms,
        from: timeout_from.unwrap_or_default(),
        on_timeout: on_timeout.unwrap_or_default(),
    });
    Some(Join {
        target: target.unwrap_or(NodeIndex(u32::MAX)),
        transitions: joining.iter().map(|place| TransitionIndex::of(*place)).collect(),
        synchronization: Synchronization {
            wait_for: wait_for.unwrap_or_default(),
            min_success,
            fail_fast: fail_fast.unwrap_or(true),
            on_unreachable: on_unreachable.unwrap_or_default(),
            on_late: on_late.unwrap_or_default(),
            timeout,
            else_to: else_to.and_then(|name| nodes.get(&name).copied()),
            merge: merge.and(merges).map(|(_, merges)| merges.clone()).unwrap_or_default(),
        },
    })
}

fn said<T: PartialEq>(
    joins: &[&ReadJoin],
    field: &str,
    of: impl Fn(&ReadJoin) -> Option<T>,
    found: &mut Findings,
) -> Option<T> {
    let mut said = None;
    for join in joins {
        match (&said, of(join)) {
            (None, now) => said = now,
            (Some(_), None) => {}
            (Some(before), Some(now)) if *before == now => {}
            (Some(_), Some(_)) => {
                let message = format!(
                    "another join of this group says something else of `{field}`; leave it out \
                     here, or say the same"
                );
                let pointer = format!("{}/{field}", join.pointer);
                found.add(&pointer, FaultCode::ContradictingJoins, message);
            }
        }
    }
    said
}

/// A join may not wait for more branches than there can be, if that can be known.
fn check_need(group: &Group, joining: &[usize], transitions: &[Linked<'_>], found: &mut Findings) {
    let count = |index: &TransitionIndex| match &transitions[index.get()].read.spawn {
        None => Some(1_u64),
        Some(Spawn::Count(count)) => Some(u64::from(*count)),
        Some(Spawn::From(_) | Spawn::Foreach(_)) => None,
    };
    let Some(total) = group.transitions.iter().map(count).sum::<Option<u64>>() else { return };
    for join in joining.iter().filter_map(|place| transitions[*place].read.join.as_ref()) {
        let m = match join.wait_for {
            Some(WaitFor::Count(m)) => Some((m, "wait_for")),
            Some(WaitFor::All | WaitFor::Any | WaitFor::Percent(_)) | None => None,
        };
        let min = join.min_success.map(|min| (min, "min_success"));
        for (need, field) in [m, min].into_iter().flatten() {
            if u64::from(need) > total {
                let name = &group.name;
                let message = format!(
                    "group `{name}` has {total} branches at most, so {need} can never arrive"
                );
                let pointer = format!("{}/{field}", join.pointer);
                found.add(&pointer, FaultCode::NeedTooLarge, message);
            }
        }
    }
}

//! The first rules of merging. They are frozen: logs were written with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_record::event::{
    BranchOutcome, MergeConflict, MergeInto, MergeMissing, MergeMode, MergeStrategy,
};
use tenure_value::{Map, Path, Value};

use crate::planted;

/// The number of these rules in a record.
pub(crate) const VERSION: u32 = 1;

/// A branch that has settled, by its index.
pub(crate) struct Settled<'a> {
    pub index: u32,
    pub key: Option<&'a Value>,
    pub outcome: BranchOutcome,
    /// Its place among those that arrived, from 1.
    pub arrived_as: u32,
    pub value: Option<&'a Value>,
    pub error: Option<&'a Value>,
}

/// Why values cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MergeFault {
    pub code: &'static str,
    pub message: String,
}

fn fault(code: &'static str, message: String) -> MergeFault {
    MergeFault { code, message }
}

/// One value that goes into a merge.
struct Given<'a> {
    index: u32,
    key: Option<&'a Value>,
    arrived_as: u32,
    value: Value,
}

/// The context with one merge done. `branches` come by index.
pub(crate) fn merge<'a>(
    context: &Value,
    into: &MergeInto<'_>,
    branches: impl Iterator<Item = Settled<'a>>,
) -> Result<Value, MergeFault> {
    let target = into.target.as_str();
    let path = Path::parse(target).map_err(|fault_| fault("MERGE_INVALID", fault_.message))?;
    let given = planted::ordered(given(into, branches)?);
    let before = path.get_below(context);
    let result = match into.strategy {
        MergeStrategy::Append => append(into, given, before)?,
        MergeStrategy::Collect => listed(into, values(given), before)?,
        MergeStrategy::Merge => shallow(into, &given, before)?,
        MergeStrategy::DeepMerge => deep(into, &given, before)?,
        MergeStrategy::Keyed => keyed(into, &given, before)?,
        MergeStrategy::LastWins => single(into, given.last(), before)?,
        MergeStrategy::FirstArrival => {
            single(into, given.iter().min_by_key(|given| given.arrived_as), before)?
        }
    };
    path.set_below(context, result).map_err(|broken| fault("MERGE_INVALID", broken.message))
}

fn given<'a>(
    into: &MergeInto<'_>,
    branches: impl Iterator<Item = Settled<'a>>,
) -> Result<Vec<Given<'a>>, MergeFault> {
    let mut given = Vec::with_capacity(branches.size_hint().1.unwrap_or_default());
    for branch in branches {
        let has_arrived = branch.outcome == BranchOutcome::Arrived;
        if !has_arrived && !into.include_failed {
            continue;
        }
        let value = match (branch.value, into.missing) {
            (Some(value), _) => value.clone(),
            (None, _) if !has_arrived => Value::Null,
            (None, MergeMissing::Null) => Value::Null,
            (None, MergeMissing::Skip) => continue,
            (None, MergeMissing::Error) => {
                let (index, target) = (branch.index, into.target.as_str());
                let message = format!(
                    "branch {index} has no value for `{target}`; give it one, or say what is to \
                     become of it with `missing`"
                );
                return Err(fault("MAPPING_ERROR", message));
            }
        };
        let value = match into.include_failed {
            true => report(&branch, value),
            false => value,
        };
        let Settled { index, key, arrived_as, .. } = branch;
        given.push(Given { index, key, arrived_as, value });
    }
    Ok(given)
}

/// `{ok, index, key, value | error}`.
fn report(branch: &Settled<'_>, value: Value) -> Value {
    let has_arrived = branch.outcome == BranchOutcome::Arrived;
    let mut entries: Vec<(Arc<str>, Value)> = vec![
        ("ok".into(), Value::Bool(has_arrived)),
        ("index".into(), Value::Int(branch.index.into())),
        ("key".into(), branch.key.cloned().unwrap_or_default()),
    ];
    match has_arrived {
        true => entries.push(("value".into(), value)),
        false => entries.push(("error".into(), error(branch))),
    }
    Value::map(entries)
}

fn error(branch: &Settled<'_>) -> Value {
    if let Some(error) = branch.error {
        return error.clone();
    }
    let (code, message) = match branch.outcome {
        BranchOutcome::TimedOut => ("BRANCH_TIMED_OUT", "the join's time was over before it came"),
        BranchOutcome::Canceled => ("BRANCH_CANCELED", "it was not needed any more"),
        BranchOutcome::Open
        | BranchOutcome::Arrived
        | BranchOutcome::Failed
        | BranchOutcome::Ended => ("BRANCH_ENDED", "it ended before the join"),
    };
    Value::map(vec![("code".into(), code.into()), ("message".into(), message.into())])
}

fn values(given: Vec<Given<'_>>) -> Vec<Value> {
    given.into_iter().map(|given| given.value).collect()
}

fn append(
    into: &MergeInto<'_>,
    given: Vec<Given<'_>>,
    before: Option<&Value>,
) -> Result<Value, MergeFault> {
    let lists: Option<Vec<_>> = given.iter().map(|given| given.value.as_list()).collect();
    let items = match lists {
        Some(lists) => lists.iter().flat_map(|list| list.as_slice()).cloned().collect(),
        None => values(given),
    };
    listed(into, items, before)
}

fn listed(
    into: &MergeInto<'_>,
    items: Vec<Value>,
    before: Option<&Value>,
) -> Result<Value, MergeFault> {
    let before = match (into.mode, before) {
        (MergeMode::Replace, _) | (MergeMode::Extend, None | Some(Value::Null)) => {
            return Ok(Value::list(items));
        }
        (MergeMode::Extend, Some(before)) => before,
    };
    let Some(list) = before.as_list() else { return Err(cannot_extend(into, before, "a list")) };
    Ok(Value::list(list.as_slice().iter().cloned().chain(items).collect()))
}

fn cannot_extend(into: &MergeInto<'_>, before: &Value, with: &str) -> MergeFault {
    let (target, kind) = (into.target.as_str(), before.kind());
    fault("MERGE_TYPE", format!("`{target}` is {kind} and cannot be extended by {with}"))
}

/// Puts objects together in one pass over all their entries.
fn shallow(
    into: &MergeInto<'_>,
    given: &[Given<'_>],
    before: Option<&Value>,
) -> Result<Value, MergeFault> {
    let mut entries = extended(into, before)?.entries().to_vec();
    for given in given {
        entries.extend_from_slice(object(into, given)?.entries());
    }
    // Of two entries with one key the later one counts.
    Ok(Value::map(entries))
}

fn object<'g>(into: &MergeInto<'_>, given: &'g Given<'_>) -> Result<&'g Map, MergeFault> {
    let Given { index, value, .. } = given;
    value.as_map().ok_or_else(|| {
        let kind = value.kind();
        let (target, strategy) = (into.target.as_str(), into.strategy);
        let message = format!(
            "branch {index} gives {kind} to `{target}`; {strategy} puts objects together only"
        );
        fault("MERGE_TYPE", message)
    })
}

/// What an object begins with.
fn extended(into: &MergeInto<'_>, before: Option<&Value>) -> Result<Map, MergeFault> {
    match (into.mode, before) {
        (MergeMode::Replace, _) | (MergeMode::Extend, None | Some(Value::Null)) => {
            Ok(Map::default())
        }
        (MergeMode::Extend, Some(Value::Map(map))) => Ok(map.clone()),
        (MergeMode::Extend, Some(other)) => Err(cannot_extend(into, other, "an object")),
    }
}

/// Puts objects together on every level. Each value that is given is walked once, whatever is there
/// already.
fn deep(
    into: &MergeInto<'_>,
    given: &[Given<'_>],
    before: Option<&Value>,
) -> Result<Value, MergeFault> {
    let mut parts = Parts::of(&extended(into, before)?);
    for given in given {
        let mut place = Vec::new();
        parts.add(into, object(into, given)?, &mut place)?;
    }
    Ok(parts.value())
}

/// An object that is being put together.
struct Parts(BTreeMap<Arc<str>, Part>);

enum Part {
    Whole(Value),
    Parts(Parts),
}

impl Parts {
    fn of(map: &Map) -> Self {
        let entries = map.entries().iter();
        Self(entries.map(|(key, value)| (Arc::clone(key), Part::Whole(value.clone()))).collect())
    }

    /// Adds an object; `place` says where it stands. Values are at most 64 levels deep, so this is
    /// too.
    fn add<'m>(
        &mut self,
        into: &MergeInto<'_>,
        map: &'m Map,
        place: &mut Vec<&'m str>,
    ) -> Result<(), MergeFault> {
        for (key, new) in map.entries() {
            let Some(old) = self.0.get_mut(key) else {
                self.0.insert(Arc::clone(key), Part::Whole(new.clone()));
                continue;
            };
            if let (Part::Whole(Value::Map(whole)), Value::Map(_)) = (&*old, new) {
                *old = Part::Parts(Self::of(whole));
            }
            match (old, new) {
                (Part::Parts(old), Value::Map(new)) => {
                    place.push(key);
                    old.add(into, new, place)?;
                    place.pop();
                }
                (Part::Whole(old), new) if old == new => {}
                (old, new) => match into.on_conflict {
                    MergeConflict::Last => *old = Part::Whole(new.clone()),
                    MergeConflict::First => {}
                    MergeConflict::Error => {
                        let names = place.iter().copied().chain([&**key]);
                        let there = std::iter::once(into.target.as_str()).chain(names);
                        let there = there.collect::<Vec<_>>().join(".");
                        let message = format!("two branches give different values for `{there}`");
                        return Err(fault("MERGE_CONFLICT", message));
                    }
                },
            }
        }
        Ok(())
    }

    fn value(self) -> Value {
        let entries = self.0.into_iter().map(|(key, part)| match part {
            Part::Whole(value) => (key, value),
            Part::Parts(parts) => (key, parts.value()),
        });
        Value::map(entries.collect())
    }
}

fn keyed(
    into: &MergeInto<'_>,
    given: &[Given<'_>],
    before: Option<&Value>,
) -> Result<Value, MergeFault> {
    let kept = extended(into, before)?;
    let named = given.iter().map(|Given { index, key, value, .. }| {
        let key = match key {
            Some(Value::Text(key)) => Arc::clone(key),
            Some(other) => other.to_json().into(),
            None => index.to_string().into(),
        };
        (key, value.clone())
    });
    Ok(Value::map(kept.entries().iter().cloned().chain(named).collect()))
}

fn single(
    into: &MergeInto<'_>,
    given: Option<&Given<'_>>,
    before: Option<&Value>,
) -> Result<Value, MergeFault> {
    let value = given.map(|given| given.value.clone());
    match (into.mode, before) {
        (MergeMode::Extend, Some(Value::List(_))) => {
            listed(into, value.into_iter().collect(), before)
        }
        (MergeMode::Replace | MergeMode::Extend, _) => Ok(value.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_did_not_arrive_says_how_it_ended() {
        let ends = [
            (BranchOutcome::TimedOut, "BRANCH_TIMED_OUT"),
            (BranchOutcome::Canceled, "BRANCH_CANCELED"),
            (BranchOutcome::Ended, "BRANCH_ENDED"),
        ];
        let branches = ends.map(|(outcome, _)| {
            let (key, value, error) = (None, None, None);
            Settled { index: 0, key, outcome, arrived_as: 0, value, error }
        });
        let into = MergeInto {
            target: tenure_record::name::Text::Borrowed("context.r"),
            strategy: MergeStrategy::Collect,
            include_failed: true,
            ..MergeInto::default()
        };
        let context = merge(&Value::empty_map(), &into, branches.into_iter()).unwrap().to_json();
        assert!(ends.iter().all(|(_, code)| context.contains(code)), "{context}");
    }
}

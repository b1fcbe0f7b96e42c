//! Transitions, as they are written.

use std::sync::Arc;

use tenure_value::Value;

use super::fields::{Fields, Findings};
use super::join::{self, ReadJoin};
use super::name::{check_ref, check_variable};
use super::roots::{Site, SiteKind};
use super::{Foreach, OnEmpty, OnMissing, Outcome, Spawn};
use crate::expression::Expression;
use crate::fault::FaultCode;
use crate::limits::{MAX_SPAWN_MAX, TIER_MAX};

/// What an item is called when the definition does not say.
const ITEM_VAR_DEFAULT: &str = "item";

/// A transition as far as it could be read; its ends are still names.
pub(super) struct ReadTransition {
    pub(super) pointer: String,
    pub(super) name: Option<Arc<str>>,
    pub(super) from: Option<Arc<str>>,
    pub(super) to: Option<Arc<str>>,
    pub(super) priority: i32,
    pub(super) outcome: Outcome,
    pub(super) condition: Option<Expression>,
    pub(super) loop_max: Option<u32>,
    pub(super) sibling_group: Option<Arc<str>>,
    pub(super) spawn: Option<Spawn>,
    pub(super) join: Option<ReadJoin>,
}

pub(super) fn read(value: &Value, place: usize, found: &mut Findings) -> ReadTransition {
    let pointer = format!("/transitions/{place}");
    let mut read = ReadTransition {
        pointer: pointer.clone(),
        name: None,
        from: None,
        to: None,
        priority: 0,
        outcome: Outcome::Success,
        condition: None,
        loop_max: None,
        sibling_group: None,
        spawn: None,
        join: None,
    };
    let Some(mut fields) = Fields::open(value, pointer, found) else { return read };
    read.name = fields.name("ref", check_ref, found);
    fields.need("from", found);
    read.from = fields.text("from", found);
    fields.need("to", found);
    read.to = fields.text("to", found);
    read.priority = fields.count("priority", (-TIER_MAX, TIER_MAX), found).unwrap_or(0);
    let outcomes =
        [("success", Outcome::Success), ("error", Outcome::Error), ("any", Outcome::Any)];
    read.outcome = fields.choice("outcome", &outcomes, found).unwrap_or_default();
    let site = Site::of_transition(SiteKind::Routing, place);
    read.condition = fields.expression("condition", site, found);
    read.loop_max = fields.object("loop", found).and_then(|mut limit| {
        limit.need("max_iterations", found);
        let max = limit.count("max_iterations", (1, i64::from(u32::MAX)), found);
        limit.end(found);
        max
    });
    read.sibling_group = fields.name("sibling_group", check_ref, found);
    read.spawn = spawn(&mut fields, place, found);
    let join = fields.object("synchronization", found);
    read.join = join.map(|fields| join::read(fields, place, found));
    if read.join.is_some() {
        for field in ["foreach", "spawn_count", "sibling_group"] {
            if fields.is_there(field) {
                let message = format!(
                    "a transition that joins cannot fan out too; put `{field}` on a transition of \
                     the node that it leads to"
                );
                found.add(&fields.at(field), FaultCode::FieldConflict, message);
            }
        }
    }
    fields.end(found);
    read
}

fn spawn(fields: &mut Fields<'_>, place: usize, found: &mut Findings) -> Option<Spawn> {
    if fields.is_there("foreach") && fields.is_there("spawn_count") {
        let message = "`foreach` says how many branches there are; leave out `spawn_count`";
        found.add(&fields.at("spawn_count"), FaultCode::FieldConflict, message);
    }
    let foreach = fields.object("foreach", found).and_then(|each| read_foreach(each, place, found));
    let count = match fields.get("spawn_count") {
        Some(Value::Map(_)) => fields.object("spawn_count", found).and_then(|mut count| {
            count.need("from", found);
            let site = Site::of_transition(SiteKind::Routing, place);
            let from = count.expression("from", site, found);
            count.end(found);
            from.map(Spawn::From)
        }),
        Some(_) => fields.count("spawn_count", (1, MAX_SPAWN_MAX), found).map(Spawn::Count),
        None => None,
    };
    foreach.map(Spawn::Foreach).or(count)
}

fn read_foreach(mut fields: Fields<'_>, place: usize, found: &mut Findings) -> Option<Foreach> {
    fields.need("collection", found);
    let site = Site::of_transition(SiteKind::Routing, place);
    let collection = fields.expression("collection", site, found);
    let item_var = if fields.is_there("item_var") {
        fields.name("item_var", check_variable, found)
    } else {
        fields.get("item_var");
        Some(ITEM_VAR_DEFAULT.into())
    };
    let mut site = Site::of_transition(SiteKind::Routing, place);
    // A variable that is no good is one fault, not one more in each place that uses it.
    site.variables.extend(item_var.clone());
    let key = fields.expression("key", site, found);
    let max_concurrency = fields.count("max_concurrency", (1, MAX_SPAWN_MAX), found);
    let on_empty = [("join", OnEmpty::Join), ("skip", OnEmpty::Skip), ("fail", OnEmpty::Fail)];
    let on_empty = fields.choice("on_empty", &on_empty, found).unwrap_or_default();
    let on_missing = [("fail", OnMissing::Fail), ("empty", OnMissing::Empty)];
    let on_missing = fields.choice("on_missing", &on_missing, found).unwrap_or_default();
    fields.end(found);
    Some(Foreach {
        collection: collection?,
        item_var: item_var?,
        key,
        max_concurrency,
        on_empty,
        on_missing,
    })
}

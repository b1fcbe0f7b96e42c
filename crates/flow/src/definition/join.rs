//! What a joining transition says of the meeting of branches, as it is written.

use std::sync::Arc;

use tenure_code::Echo;
use tenure_value::{Path, Value};

use super::fields::{Fields, Findings};
use super::roots::{Site, SiteKind};
use super::{
    Merge, MergeMode, Missing, OnJoinTimeout, OnLate, OnMergeConflict, OnUnreachable, Strategy,
    TimeoutFrom, WaitFor,
};
use crate::expression::Expression;
use crate::fault::FaultCode;
use crate::limits::{MAX_SPAWN_MAX, MERGES_MAX, SPAN_MS_MAX};

/// The value of a branch when a merge does not say.
const SOURCE_DEFAULT: &str = "branch.output";

/// A join as far as it could be read. What is not said may be said by another join of its group.
pub(super) struct ReadJoin {
    pub(super) pointer: String,
    pub(super) joins: Option<Arc<str>>,
    pub(super) wait_for: Option<WaitFor>,
    pub(super) min_success: Option<u32>,
    pub(super) fail_fast: Option<bool>,
    pub(super) on_unreachable: Option<OnUnreachable>,
    pub(super) on_late: Option<OnLate>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) timeout_from: Option<TimeoutFrom>,
    pub(super) on_timeout: Option<OnJoinTimeout>,
    pub(super) else_to: Option<Arc<str>>,
    /// As it is written too, to see whether two joins say the same.
    pub(super) merge: Option<(Value, Vec<Merge>)>,
}

pub(super) fn read(mut fields: Fields<'_>, place: usize, found: &mut Findings) -> ReadJoin {
    fields.need("joins_transition", found);
    let joins = fields.text("joins_transition", found);
    let wait_for = wait_for(&mut fields, found);
    let min_success = fields.count("min_success", (0, MAX_SPAWN_MAX), found);
    let fail_fast = fields.truth("fail_fast", found);
    let choices = [("fail", OnUnreachable::Fail), ("proceed", OnUnreachable::Proceed)];
    let on_unreachable = fields.choice("on_unreachable", &choices, found);
    let choices = [("cancel", OnLate::Cancel), ("abandon", OnLate::Abandon)];
    let on_late = fields.choice("on_late", &choices, found);
    let timeout_ms = fields.count("timeout_ms", (1, SPAN_MS_MAX), found);
    let choices = [("first_arrival", TimeoutFrom::FirstArrival), ("fan_out", TimeoutFrom::FanOut)];
    let timeout_from = fields.choice("timeout_from", &choices, found);
    let choices = [
        ("fail", OnJoinTimeout::Fail),
        ("proceed_with_available", OnJoinTimeout::ProceedWithAvailable),
    ];
    let on_timeout = fields.choice("on_timeout", &choices, found);
    let else_to = fields.text("else_to", found);
    let merge = merges(&mut fields, place, found);
    let pointer = fields.pointer.clone();
    fields.end(found);
    ReadJoin {
        pointer,
        joins,
        wait_for,
        min_success,
        fail_fast,
        on_unreachable,
        on_late,
        timeout_ms,
        timeout_from,
        on_timeout,
        else_to,
        merge,
    }
}

fn wait_for(fields: &mut Fields<'_>, found: &mut Findings) -> Option<WaitFor> {
    if !matches!(fields.get("wait_for")?, Value::Map(_)) {
        let choices = [("all", WaitFor::All), ("any", WaitFor::Any)];
        return fields.choice("wait_for", &choices, found);
    }
    let mut wait = fields.object("wait_for", found)?;
    let m = wait.need("m_of_n", found);
    let need = match m {
        Some(Value::Int(_)) => wait.count("m_of_n", (1, MAX_SPAWN_MAX), found).map(WaitFor::Count),
        Some(Value::Text(text)) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
            let percent = percent.filter(|percent| (1..=100).contains(percent));
            if percent.is_none() {
                let message = format!("{} is no share; write \"1%\" to \"100%\"", Echo(text));
                wait.bad("m_of_n", message, found);
            }
            percent.map(WaitFor::Percent)
        }
        Some(_) => {
            wait.bad("m_of_n", "this must be a number, or a share such as \"60%\"", found);
            None
        }
        None => None,
    };
    wait.end(found);
    need
}

fn merges(
    fields: &mut Fields<'_>,
    place: usize,
    found: &mut Findings,
) -> Option<(Value, Vec<Merge>)> {
    let source = fields.get("merge")?.clone();
    let pointer = fields.at("merge");
    let list = fields.short_list("merge", MERGES_MAX, found)?;
    let merges = list.iter().enumerate().filter_map(|(at, merge)| {
        let fields = Fields::open(merge, format!("{pointer}/{at}"), found)?;
        merge_of(fields, place, found)
    });
    let merges = merges.collect();
    Some((source, merges))
}

const STRATEGIES: [(&str, Strategy); 7] = [
    ("append", Strategy::Append),
    ("collect", Strategy::Collect),
    ("merge", Strategy::Merge),
    ("deep_merge", Strategy::DeepMerge),
    ("keyed", Strategy::Keyed),
    ("last_wins", Strategy::LastWins),
    ("first_arrival", Strategy::FirstArrival),
];

fn merge_of(mut fields: Fields<'_>, place: usize, found: &mut Findings) -> Option<Merge> {
    let source = if fields.is_there("source") {
        let site = Site::of_transition(SiteKind::Merge, place);
        fields.expression("source", site, found)
    } else {
        fields.get("source");
        Expression::parse(SOURCE_DEFAULT).ok()
    };
    fields.need("target", found);
    let target = target(&mut fields, found);
    fields.need("strategy", found);
    let strategy = fields.choice("strategy", &STRATEGIES, found);
    let choices = [("replace", MergeMode::Replace), ("extend", MergeMode::Extend)];
    let mode = fields.choice("mode", &choices, found).unwrap_or_default();
    let choices = [("null", Missing::Null), ("skip", Missing::Skip), ("error", Missing::Error)];
    let missing = match fields.get("missing") {
        // What YAML makes of a bare null is what was meant.
        Some(Value::Null) => Missing::Null,
        _ => fields.choice("missing", &choices, found).unwrap_or_default(),
    };
    let choices = [
        ("last", OnMergeConflict::Last),
        ("first", OnMergeConflict::First),
        ("error", OnMergeConflict::Error),
    ];
    let on_conflict = fields.choice("on_conflict", &choices, found);
    if on_conflict.is_some() && strategy.is_some_and(|strategy| strategy != Strategy::DeepMerge) {
        let message = "`on_conflict` belongs to the strategy `deep_merge`";
        found.add(&fields.at("on_conflict"), FaultCode::FieldConflict, message);
    }
    let include_failed = fields.truth("include_failed", found).unwrap_or(false);
    fields.end(found);
    Some(Merge {
        source: source?,
        target: target?,
        strategy: strategy?,
        mode,
        missing,
        on_conflict: on_conflict.unwrap_or_default(),
        include_failed,
    })
}

fn target(fields: &mut Fields<'_>, found: &mut Findings) -> Option<Path> {
    let text = fields.text("target", found)?;
    let path = Path::parse(&text).ok();
    let path = path.filter(|path| path.segments().len() > 1 && &*path.segments()[0] == "context");
    if path.is_none() {
        let message = format!("{} is no target of a merge; write `context.<name>`", Echo(&text));
        found.add(&fields.at("target"), FaultCode::BadTarget, message);
    }
    path
}

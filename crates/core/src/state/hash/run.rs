//! What of a run is in the hash of the state.

use std::sync::Arc;

use tenure_record::event::{BranchOutcome, SubmitHash};

use super::Sink;
use crate::state::facts::run::{
    EndingRoot, Run, Scope, Staged, StoredGroup, StoredRun, Token, Work,
};

pub(super) fn hash_run(stored: &StoredRun, sink: &mut Sink) {
    let run = &stored.head;
    sink.bytes(run.workflow.name.as_bytes());
    let (parent, parent_token) = run.parent.unwrap_or_default();
    let rare = run.rare.as_deref();
    let numbers = [
        run.workflow.version.into(),
        run.state as u64,
        run.started_at.0,
        run.finished_at.0,
        run.finished_offset.0.cast_unsigned(),
        run.deadline_at.0,
        parent.0,
        parent_token.0.into(),
        run.depth.into(),
        run.live.into(),
        run.busy.into(),
        run.unstarted,
        rare.map_or(0, |rare| rare.signal_count.into()),
    ];
    numbers.into_iter().for_each(|number| sink.number(number));
    sink.value(Some(&run.input));
    sink.value(run.output.as_ref());
    sink.value(run.error.as_ref());
    sink.bytes(rare.and_then(|rare| rare.key.as_deref()).unwrap_or_default().as_bytes());
    hash_request(rare.and_then(|rare| rare.start_hash), sink);
    for (key, value) in rare.map(|rare| rare.tags.as_slice()).unwrap_or_default() {
        sink.bytes(key.as_bytes());
        sink.bytes(value.as_bytes());
    }
    for signal in rare.map(|rare| &*rare.signals).unwrap_or_default() {
        sink.number(signal.number.into());
        sink.bytes(signal.name.as_bytes());
        sink.bytes(signal.correlation.as_bytes());
        sink.value(Some(&signal.payload));
    }
    sink.number(run.staged.into());
    for committed in run.artifacts.as_deref().unwrap_or_default() {
        sink.bytes(committed.name.as_bytes());
        hash_artifacts(std::slice::from_ref(&committed.staged), sink);
    }
    hash_scope(&run.root, sink);
    hash_endings(run, sink);
    for token in stored.tokens.iter() {
        hash_token(token, sink);
    }
    for group in &stored.groups {
        hash_group(group, sink);
    }
    for ((node, group, indices, token), value) in stored.kept.iter() {
        sink.number((*node).into());
        sink.number(group.0.into());
        indices.iter().for_each(|index| sink.number((*index).into()));
        sink.number(token.0.into());
        sink.value(Some(value));
    }
    for (id, hash) in stored.signal_ids.iter() {
        sink.bytes(id.as_bytes());
        hash_request(*hash, sink);
    }
}

/// Nothing where a record did not say: the states of such logs keep their hashes.
fn hash_request(hash: Option<SubmitHash>, sink: &mut Sink) {
    if let Some(SubmitHash(bytes)) = hash {
        sink.bytes(&bytes);
    }
}

/// What few runs have: it is left out where there is nothing to say, so that the hash of a state
/// without it stays what it was.
fn hash_endings(run: &Run, sink: &mut Sink) {
    if run.parent.is_some() || run.descendants > 0 {
        sink.number(run.top.0);
        sink.number(run.descendants.into());
    }
    if let Some(endings) = &run.endings {
        if let Some(root) = &endings.root {
            let EndingRoot {
                state,
                error,
                since,
                tokens_ended,
                groups_left,
                children,
                holds_parent,
            } = root;
            let numbers = [*state as u64, since.0, (*tokens_ended).into(), (*groups_left).into()];
            let more = [(*children).into(), (*holds_parent).into()];
            numbers.into_iter().chain(more).for_each(|number| sink.number(number));
            sink.value(error.as_ref());
        }
        for scope in &endings.scopes {
            sink.number(scope.group.0.into());
            sink.number(scope.index.map_or(u64::MAX, u64::from));
        }
    }
    if let Some(parked) = &run.parked {
        sink.bytes(parked.reason.as_bytes());
        sink.number(parked.at.0);
    }
}

fn hash_artifacts(artifacts: &[Arc<Staged>], sink: &mut Sink) {
    sink.number(artifacts.len() as u64);
    for staged in artifacts {
        let Staged { name, media_type, bytes, sha256, token } = &**staged;
        sink.bytes(name.as_bytes());
        sink.bytes(media_type.as_bytes());
        sink.number(*bytes);
        sink.bytes(&sha256.0);
        sink.number(token.0.into());
    }
}

fn hash_scope(scope: &Scope, sink: &mut Sink) {
    sink.value(Some(&scope.context));
    sink.value(Some(&scope.outputs));
    sink.value(scope.output.as_ref());
    sink.value(scope.last.as_ref());
    scope.written.iter().for_each(|path| sink.bytes(path.to_string().as_bytes()));
    scope.nodes.iter().for_each(|node| sink.number((*node).into()));
    scope.tokens.iter().for_each(|token| sink.number(token.0.into()));
    scope.groups.iter().for_each(|group| sink.number(group.0.into()));
    hash_artifacts(&scope.artifacts, sink);
    sink.number(scope.open_groups.into());
    sink.number(scope.is_arriving.into());
}

fn hash_token(token: &Token, sink: &mut Sink) {
    let work = match &token.work {
        Work::Nothing => (0, 0),
        Work::Task(id) => (1, id.0),
        Work::Child(id) => (2, id.0),
        Work::Signal(signal) => {
            sink.bytes(signal.0.as_bytes());
            sink.bytes(signal.1.as_bytes());
            (3, 0)
        }
        Work::Timer(at, clock) => (4 + *clock as u64, at.0),
    };
    let numbers = [
        token.node.into(),
        token.scope.group.0.into(),
        token.scope.index.into(),
        token.parent.0.into(),
        token.via.map_or(u64::MAX, u64::from),
        token.state as u64,
        work.0,
        work.1,
        token.deadline_at.0,
    ];
    numbers.into_iter().for_each(|number| sink.number(number));
    for (transition, count) in token.loops.as_deref().unwrap_or_default() {
        sink.number((*transition).into());
        sink.number((*count).into());
    }
    sink.value(token.error.as_deref());
}

fn hash_group(stored: &StoredGroup, sink: &mut Sink) {
    let group = &stored.head;
    sink.bytes(group.name.as_bytes());
    let numbers = [
        group.definition,
        group.origin.0,
        group.scope.group.0,
        group.scope.index,
        group.total,
        group.need,
        group.concurrency,
        group.started,
        group.running,
        group.arrived,
        group.failed,
        group.canceled,
        group.timed_out,
        group.ended,
        group.state as u32,
        group.fan_in.0,
        group.promotes.into(),
    ];
    numbers.into_iter().for_each(|number| sink.number(number.into()));
    if group.rest != BranchOutcome::Open || group.ending > 0 {
        sink.number(group.rest as u64);
        sink.number(group.ending.into());
    }
    sink.number(group.timeout_at.0);
    sink.value(group.first_error.as_ref());
    sink.value(Some(&group.context));
    sink.value(Some(&group.outputs));
    for spawn in group.spawns.iter() {
        [spawn.transition, spawn.node, spawn.first, spawn.count]
            .into_iter()
            .for_each(|number| sink.number(number.into()));
        sink.bytes(spawn.item_var.as_bytes());
        sink.value(spawn.items.as_ref());
        sink.value(spawn.keys.as_ref());
    }
    for branch in stored.branches.iter() {
        sink.number(branch.outcome as u64);
        sink.number(branch.arrived_as.into());
        if let Some(scope) = &branch.scope {
            hash_scope(scope, sink);
        }
        let result = branch.result.as_deref();
        for value in result.map(|result| result.values.as_slice()).unwrap_or_default() {
            sink.value(value.as_ref());
        }
        sink.value(result.and_then(|result| result.error.as_ref()));
        let artifacts = result.map(|result| result.artifacts.as_slice()).unwrap_or_default();
        hash_artifacts(artifacts, sink);
    }
}

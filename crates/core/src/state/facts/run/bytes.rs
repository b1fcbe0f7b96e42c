//! How much memory the parts of a run take, about. Each figure is a function of one part alone and
//! is O(1), or O(what the part has written), so that a change costs the difference of two of them.
//! A value that a branch shares with the scope around it is not counted again.

use std::sync::Arc;

use tenure_value::Value;

use super::{Branch, Group, KeptKey, Run, Scope, StoredGroup, StoredRun, Token};

/// What a run takes in the indexes, in the page table and in its own allocations.
const RUN_BYTES: usize = size_of::<StoredRun>() + size_of::<Scope>() + 512;
/// What a token takes in the indexes.
const TOKEN_INDEX_BYTES: usize = 48;
/// What an entry of a tree, a set or a shared text takes beside its contents.
const ENTRY_BYTES: usize = 64;

fn held(value: Option<&Value>) -> usize {
    value.map_or(0, Value::held_bytes)
}

/// A run's head, with its root scope and the signals that it keeps.
pub(crate) fn head_bytes(run: &Run) -> u64 {
    let Run { input, output, error, root, rare, artifacts, .. } = run;
    let values = input.held_bytes() + held(output.as_ref()) + held(error.as_ref());
    let scope = root.context.held_bytes() + root.outputs.held_bytes();
    let rare = rare
        .as_ref()
        .map_or(0, |rare| ENTRY_BYTES * (1 + 2 * rare.tags.len()) + rare.signals.held_bytes());
    let artifacts = artifacts.as_ref().map_or(0, |them| them.len()) + root.artifacts.len();
    (RUN_BYTES + values + scope + rare + artifacts * (ENTRY_BYTES * 4)) as u64
}

/// A token.
pub(crate) fn token_bytes(token: &Token) -> u64 {
    let error = held(token.error.as_deref());
    (size_of::<Token>() + TOKEN_INDEX_BYTES + error) as u64
}

/// A group without its branches. What its branches begin with is shared with the scope around it.
pub(crate) fn group_bytes(group: &Group) -> u64 {
    let spawns = group.spawns.iter();
    let lists = spawns.map(|spawn| held(spawn.items.as_ref()) + held(spawn.keys.as_ref()));
    (size_of::<StoredGroup>() + lists.sum::<usize>()) as u64
}

/// A branch: what it has written, not what it began with.
pub(crate) fn branch_bytes(nodes: &[Arc<str>], branch: &Branch) -> u64 {
    let scope = branch.scope.as_ref().map_or(0, |scope| {
        let written = scope.written.iter().map(|path| held(path.get_below(&scope.context)));
        let outputs = scope.outputs.as_map();
        let outputs = scope.nodes.iter().map(|node| {
            let name = nodes.get(*node as usize);
            held(outputs.zip(name).and_then(|(outputs, name)| outputs.get(name)))
        });
        let artifacts = scope.artifacts.len() * (ENTRY_BYTES * 4);
        size_of::<Scope>() + written.sum::<usize>() + outputs.sum::<usize>() + artifacts
    });
    let result = branch.result.as_ref().map_or(0, |result| {
        let values = result.values.iter().map(|value| held(value.as_ref()));
        ENTRY_BYTES + values.sum::<usize>() + held(result.error.as_ref())
    });
    (size_of::<Branch>() + scope + result) as u64
}

/// The output of a visit that is kept beside those of other branches.
pub(crate) fn kept_bytes(value: &Value) -> u64 {
    (size_of::<KeptKey>() + ENTRY_BYTES + value.held_bytes()) as u64
}

/// The id of a signal that came.
pub(crate) fn signal_id_bytes(id: &str) -> u64 {
    (ENTRY_BYTES + id.len()) as u64
}

impl StoredRun {
    /// All of it but the branches of its groups.
    pub(crate) fn bytes(&self) -> u64 {
        let Self { head, tokens, groups, kept, signal_ids } = self;
        head_bytes(head)
            + tokens.iter().map(token_bytes).sum::<u64>()
            + groups.iter().map(|group| group_bytes(&group.head)).sum::<u64>()
            + kept.values().map(kept_bytes).sum::<u64>()
            + signal_ids.keys().map(|id| signal_id_bytes(id)).sum::<u64>()
    }

    /// The branches of a group.
    pub(crate) fn branches_bytes(&self, group: &Arc<StoredGroup>) -> u64 {
        let nodes = &self.head.workflow.nodes;
        group.branches.iter().map(|branch| branch_bytes(nodes, branch)).sum()
    }
}

//! How the state takes changes of runs.

use std::sync::Arc;

use tenure_record::event::{BranchOutcome, GroupState, SubmitHash};
use tenure_record::id::{GroupId, RunId, TaskId, TokenId};
use tenure_value::Value;

use crate::state::State;
use crate::state::facts::run::{
    Branch, Group, KeptKey, Parked, Run, ScopeRef, StoredGroup, StoredRun, Token, Work, Workflow,
    branch_bytes, group_bytes, head_bytes, kept_bytes, signal_id_bytes, token_bytes,
};
use crate::state::index::{GroupPlace, HeadPlace, Parent, TokenPlace};
use crate::state::ledger::{Ledger, Runs};
use crate::state::store::Chunks;

impl State {
    pub(crate) fn stored_run(&self, id: RunId) -> Option<&StoredRun> {
        self.facts.runs.get(id.0).map(|run| &**run)
    }

    /// Lets a child run go as soon as retention looks: its parent was forgotten. A child that never
    /// began, or that an older log forgot before its parent, is not there.
    fn release_child(&mut self, id: RunId) {
        let Some(indexes) = &mut self.indexes else { return };
        let Some(child) = self.facts.runs.get(id.0) else { return };
        let before = HeadPlace::of(&child.head, Parent::Kept);
        indexes.runs.moved(
            &mut indexes.timers,
            id,
            before,
            HeadPlace::of(&child.head, Parent::Gone),
        );
    }

    fn run_mut(&mut self, id: RunId) -> &mut StoredRun {
        let run = self.facts.runs.get_mut(id.0).expect("a decision names runs that exist");
        Arc::make_mut(run)
    }
}

impl Runs for State {
    fn workflow(&self, name: &str, version: u32) -> Option<&Arc<Workflow>> {
        self.facts.workflows.get(name)?.get(version)
    }

    fn register(&mut self, workflow: Arc<Workflow>) {
        if let Some(indexes) = &mut self.indexes {
            indexes.registered(&workflow);
        }
        let last = self.facts.last_version(&workflow.name);
        assert_eq!(workflow.version, last + 1, "a version is the one after the last");
        if self.facts.deleted_workflows.contains_key(&workflow.name) {
            Arc::make_mut(&mut self.facts.deleted_workflows).remove(&workflow.name);
        }
        let workflows = Arc::make_mut(&mut self.facts.workflows);
        workflows.entry(Arc::clone(&workflow.name)).or_default().push(workflow);
    }

    fn delete_workflow(&mut self, name: &str, version: Option<u32>) {
        let workflows = Arc::make_mut(&mut self.facts.workflows);
        let versions = workflows.get_mut(name).expect("a delete names workflows that exist");
        let gone = versions.remove(version);
        if let Some(indexes) = &mut self.indexes {
            gone.iter().for_each(|workflow| indexes.unregistered(workflow));
        }
        if versions.len() == 0 {
            let last = versions.last;
            let (name, _) = workflows.remove_entry(name).expect("it was there a line ago");
            Arc::make_mut(&mut self.facts.deleted_workflows).insert(name, last);
        }
    }

    fn run(&self, id: RunId) -> Option<&Run> {
        self.stored_run(id).map(|run| &run.head)
    }

    fn begin(&mut self, id: RunId, run: Run) {
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.begun(&mut indexes.timers, id, &run, Parent::of(&run, &self.facts));
        }
        self.facts.runs.insert(id.0, Arc::new(StoredRun::new(run)));
        self.facts.next_run_id = self.facts.next_run_id.max(id.next());
    }

    fn change_run(&mut self, id: RunId, change: impl FnOnce(&mut Run)) {
        let stored = self.run_mut(id);
        let before = HeadPlace::of(&stored.head, Parent::None);
        let mut bytes_before = head_bytes(&stored.head);
        change(&mut stored.head);
        let after = HeadPlace::of(&stored.head, Parent::None);
        let bytes_after = head_bytes(&stored.head);
        if before != after && stored.head.state.is_terminal() {
            bytes_before += stored.kept.values().map(kept_bytes).sum::<u64>();
            stored.kept = Arc::default();
        }
        let Some(indexes) = &mut self.indexes else { return };
        indexes.runs.resized(bytes_before, bytes_after);
        // Most changes move nothing, and then the parent need not be found.
        if before != after {
            let head = &self.facts.runs.get(id.0).expect("it was there a line ago").head;
            let parent = Parent::of(head, &self.facts);
            indexes.runs.moved(&mut indexes.timers, id, before.under(parent), after.under(parent));
        }
    }

    /// Its parts leave the indexes, or come back: it takes as long as the run has parts. That is
    /// the price of a last resort.
    fn park(&mut self, id: RunId, parked: Option<Arc<Parked>>) {
        let stored = self.run_mut(id);
        let head = stored.head.clone();
        stored.head.parked = parked;
        let stored = Arc::clone(self.facts.runs.get(id.0).expect("it was there a line ago"));
        let parent = Parent::of(&head, &self.facts);
        let before = HeadPlace::of(&head, parent);
        let after = HeadPlace::of(&stored.head, parent);
        let Some(indexes) = &mut self.indexes else { return };
        indexes.runs.moved(&mut indexes.timers, id, before, after);
        match stored.head.stands_still() {
            true => indexes.runs.parked(&mut indexes.timers, id, &head, &stored),
            false => indexes.runs.unparked(&mut indexes.timers, id, &stored),
        }
        for (_, token) in stored.tokens() {
            let Some(task_id) = token.task() else { continue };
            if let Some(task) = self.facts.tasks.get(task_id.0) {
                indexes.hold(task_id, task, stored.head.stands_still());
            }
        }
    }

    fn token(&self, run: RunId, id: TokenId) -> Option<&Token> {
        self.stored_run(run)?.token(id)
    }

    fn add_token(&mut self, run: RunId, token: Token) {
        let bytes = token_bytes(&token);
        let stored = self.run_mut(run);
        let after = TokenPlace::of(&stored.head, &token);
        stored.tokens.push(token);
        let id = TokenId(stored.tokens.len() as u32);
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.token_moved(&mut indexes.timers, run, id, TokenPlace::default(), after);
            indexes.runs.resized(0, bytes);
        }
    }

    fn change_token(&mut self, run: RunId, id: TokenId, change: impl FnOnce(&mut Token)) {
        let StoredRun { head, tokens, .. } = self.run_mut(run);
        let token = (id.0 as usize).checked_sub(1).and_then(|at| tokens.get_mut(at));
        let token = token.expect("a decision names tokens that exist");
        let (before, bytes_before) = (TokenPlace::of(head, token), token_bytes(token));
        change(token);
        let (after, bytes_after) = (TokenPlace::of(head, token), token_bytes(token));
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.token_moved(&mut indexes.timers, run, id, before, after);
            indexes.runs.resized(bytes_before, bytes_after);
        }
    }

    fn group(&self, run: RunId, id: GroupId) -> Option<&Group> {
        self.stored_run(run)?.group(id)
    }

    fn add_group(&mut self, run: RunId, group: Group) {
        let bytes = group_bytes(&group);
        let stored = self.run_mut(run);
        let after = GroupPlace::of(&stored.head, &group);
        stored.groups.push(Arc::new(StoredGroup { head: group, branches: Chunks::default() }));
        let id = GroupId(stored.groups.len() as u32);
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.group_moved(&mut indexes.timers, run, id, GroupPlace::default(), after);
            indexes.runs.resized(0, bytes);
        }
    }

    fn change_group(&mut self, run: RunId, id: GroupId, change: impl FnOnce(&mut Group)) {
        let StoredRun { head, groups, .. } = self.run_mut(run);
        let group = (id.0 as usize).checked_sub(1).and_then(|at| groups.get_mut(at));
        let group = Arc::make_mut(group.expect("a decision names groups that exist"));
        let (before, bytes_before) = (GroupPlace::of(head, &group.head), group_bytes(&group.head));
        change(&mut group.head);
        let (after, bytes_after) = (GroupPlace::of(head, &group.head), group_bytes(&group.head));
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.group_moved(&mut indexes.timers, run, id, before, after);
            indexes.runs.resized(bytes_before, bytes_after);
        }
    }

    fn branch(&self, run: RunId, at: ScopeRef) -> Option<&Branch> {
        self.stored_run(run)?.branch(at)
    }

    fn branches(&self, run: RunId, group: GroupId) -> Vec<&Branch> {
        let group = self.stored_run(run).and_then(|run| run.stored_group(group));
        group.into_iter().flat_map(|group| group.branches.iter()).collect()
    }

    fn add_branch(&mut self, run: RunId, group: GroupId, branch: Branch) {
        let stored = self.run_mut(run);
        let bytes = branch_bytes(&stored.head.workflow.nodes, &branch);
        let held = stored.group_mut(group).expect("a branch belongs to a group");
        held.branches.push(branch);
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.branches_resized(run, group, 0, bytes);
        }
    }

    fn change_branch(&mut self, run: RunId, at: ScopeRef, change: impl FnOnce(&mut Branch)) {
        let stored = self.run_mut(run);
        let nodes = Arc::clone(&stored.head.workflow.nodes);
        let group = stored.group_mut(at.group).expect("a branch belongs to a group");
        let branch = group.branches.get_mut(at.index as usize);
        let branch = branch.expect("a decision names branches that have begun");
        let before = branch_bytes(&nodes, branch);
        change(branch);
        let after = branch_bytes(&nodes, branch);
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.branches_resized(run, at.group, before, after);
        }
    }

    fn drop_branches(&mut self, run: RunId, id: GroupId) {
        let stored = self.run_mut(run);
        let nodes = Arc::clone(&stored.head.workflow.nodes);
        let group = stored.group_mut(id).expect("a group that is dropped exists");
        // What is ending in it still needs its branches.
        if group.head.ending > 0 {
            return;
        }
        // Those that have not begun will need their places.
        if group.head.state != GroupState::Open && group.head.open() == 0 {
            let held = std::mem::take(&mut group.branches);
            if held.len() > 0 {
                self.forgotten.push(held);
            }
            if let Some(indexes) = &mut self.indexes {
                indexes.runs.branches_dropped(run, id);
            }
            return;
        }
        let (mut before, mut after) = (0, 0);
        for index in 0..group.branches.len() {
            let settled =
                group.branches.get(index).is_some_and(|it| it.outcome != BranchOutcome::Open);
            if let (true, Some(branch)) = (settled, group.branches.get_mut(index)) {
                before += branch_bytes(&nodes, branch);
                (branch.scope, branch.result) = (None, None);
                after += branch_bytes(&nodes, branch);
            }
        }
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.branches_resized(run, id, before, after);
        }
    }

    fn has_endings(&self) -> bool {
        self.indexes.as_ref().is_none_or(|indexes| !indexes.runs.endings.is_empty())
    }

    fn keep_output(&mut self, run: RunId, key: KeptKey, value: Value) {
        let after = kept_bytes(&value);
        let before = Arc::make_mut(&mut self.run_mut(run).kept).insert(key, value);
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.resized(before.as_ref().map_or(0, kept_bytes), after);
        }
    }

    fn note_signal(&mut self, run: RunId, signal_id: &str, hash: Option<SubmitHash>) {
        let ids = Arc::make_mut(&mut self.run_mut(run).signal_ids);
        let is_new = ids.insert(Arc::from(signal_id), hash).is_none();
        if let (true, Some(indexes)) = (is_new, &mut self.indexes) {
            indexes.runs.resized(0, signal_id_bytes(signal_id));
        }
    }

    fn purge_run(&mut self, id: RunId) {
        let stored = self.facts.runs.remove(id.0).expect("a purge names runs that exist");
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.gone(
                &mut indexes.timers,
                id,
                &stored,
                Parent::of(&stored.head, &self.facts),
            );
        }
        for (_, token) in stored.tokens() {
            match token.work {
                Work::Task(task_id) => Ledger::purge(self, TaskId(task_id.0)),
                Work::Child(child) => self.release_child(child),
                Work::Nothing | Work::Signal(_) | Work::Timer(..) => {}
            }
        }
    }
}

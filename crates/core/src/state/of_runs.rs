//! How the state takes changes of runs.

use std::sync::Arc;

use tenure_flow::Value;

use super::State;
use super::index::{GroupPlace, HeadPlace, TokenPlace};
use super::ledger::Ledger;
use super::run::{
    Branch, Chunks, Group, KeptKey, Run, ScopeRef, StoredGroup, StoredRun, Token, Work, Workflow,
};
use super::runs::Runs;
use crate::event::{BranchOutcome, GroupState};
use crate::id::{GroupId, RunId, TaskId, TokenId};

impl State {
    pub(crate) fn stored_run(&self, id: RunId) -> Option<&StoredRun> {
        self.facts.runs.get(id.0).map(|run| &**run)
    }

    fn run_mut(&mut self, id: RunId) -> &mut StoredRun {
        let run = self.facts.runs.get_mut(id.0).expect("a decision names runs that exist");
        Arc::make_mut(run)
    }
}

impl Runs for State {
    fn workflow(&self, name: &str, version: u32) -> Option<&Arc<Workflow>> {
        self.facts.workflows.get(name)?.get((version as usize).checked_sub(1)?)
    }

    fn register(&mut self, workflow: Arc<Workflow>) {
        let workflows = Arc::make_mut(&mut self.facts.workflows);
        let versions = workflows.entry(Arc::clone(&workflow.name)).or_default();
        assert_eq!(workflow.version as usize, versions.len() + 1, "versions have no gaps");
        versions.push(workflow);
    }

    fn run(&self, id: RunId) -> Option<&Run> {
        self.stored_run(id).map(|run| &run.head)
    }

    fn begin(&mut self, id: RunId, run: Run) {
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.begun(id, &run);
        }
        self.facts.runs.insert(id.0, Arc::new(StoredRun::new(run)));
        self.facts.next_run_id = self.facts.next_run_id.max(id.next());
    }

    fn change_run(&mut self, id: RunId, change: impl FnOnce(&mut Run)) {
        let stored = self.run_mut(id);
        let before = HeadPlace::of(&stored.head);
        change(&mut stored.head);
        let after = HeadPlace::of(&stored.head);
        if before == after {
            return;
        }
        if stored.head.state.is_terminal() {
            stored.kept = Arc::default();
        }
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.moved(id, before, after);
        }
    }

    fn token(&self, run: RunId, id: TokenId) -> Option<&Token> {
        self.stored_run(run)?.token(id)
    }

    fn add_token(&mut self, run: RunId, token: Token) {
        let after = TokenPlace::of(&token);
        let stored = self.run_mut(run);
        stored.tokens.push(token);
        let id = TokenId(stored.tokens.len() as u32);
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.token_moved(run, id, TokenPlace::default(), after);
        }
    }

    fn change_token(&mut self, run: RunId, id: TokenId, change: impl FnOnce(&mut Token)) {
        let token = self.run_mut(run).token_mut(id).expect("a decision names tokens that exist");
        let before = TokenPlace::of(token);
        change(token);
        let after = TokenPlace::of(token);
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.token_moved(run, id, before, after);
        }
    }

    fn group(&self, run: RunId, id: GroupId) -> Option<&Group> {
        self.stored_run(run)?.group(id)
    }

    fn add_group(&mut self, run: RunId, group: Group) {
        let after = GroupPlace::of(&group);
        let stored = self.run_mut(run);
        stored.groups.push(Arc::new(StoredGroup { head: group, branches: Chunks::default() }));
        let id = GroupId(stored.groups.len() as u32);
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.group_moved(run, id, GroupPlace::default(), after);
        }
    }

    fn change_group(&mut self, run: RunId, id: GroupId, change: impl FnOnce(&mut Group)) {
        let group = self.run_mut(run).group_mut(id).expect("a decision names groups that exist");
        let before = GroupPlace::of(&group.head);
        change(&mut group.head);
        let after = GroupPlace::of(&group.head);
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.group_moved(run, id, before, after);
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
        let group = self.run_mut(run).group_mut(group).expect("a branch belongs to a group");
        group.branches.push(branch);
    }

    fn change_branch(&mut self, run: RunId, at: ScopeRef, change: impl FnOnce(&mut Branch)) {
        let group = self.run_mut(run).group_mut(at.group).expect("a branch belongs to a group");
        let branch = group.branches.get_mut(at.index as usize);
        change(branch.expect("a decision names branches that have begun"));
    }

    fn drop_branches(&mut self, run: RunId, group: GroupId) {
        let group = self.run_mut(run).group_mut(group).expect("a group that is dropped exists");
        // Those that have not begun will need their places.
        if group.head.state != GroupState::Open && group.head.open() == 0 {
            let held = std::mem::take(&mut group.branches);
            if held.len() > 0 {
                self.forgotten.push(held);
            }
            return;
        }
        for index in 0..group.branches.len() {
            let settled =
                group.branches.get(index).is_some_and(|it| it.outcome != BranchOutcome::Open);
            if let (true, Some(branch)) = (settled, group.branches.get_mut(index)) {
                (branch.scope, branch.result) = (None, None);
            }
        }
    }

    fn keep_output(&mut self, run: RunId, key: KeptKey, value: Value) {
        Arc::make_mut(&mut self.run_mut(run).kept).insert(key, value);
    }

    fn note_signal(&mut self, run: RunId, signal_id: &str) {
        Arc::make_mut(&mut self.run_mut(run).signal_ids).insert(Arc::from(signal_id));
    }

    fn purge_run(&mut self, id: RunId) {
        let stored = self.facts.runs.remove(id.0).expect("a purge names runs that exist");
        if let Some(indexes) = &mut self.indexes {
            indexes.runs.gone(id, &stored);
        }
        for (_, token) in stored.tokens() {
            if let Work::Task(task_id) = token.work {
                Ledger::purge(self, TaskId(task_id.0));
            }
        }
    }
}

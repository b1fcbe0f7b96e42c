//! Scopes that end over several records: each record lists the next tokens, tasks and child runs,
//! and the last one closes the scope, or finishes the run.

use tenure_record::event::{CloseScope, Step};
use tenure_record::id::{GroupId, RunId, TokenId};

use super::canceling::Live;
use super::cascade::Cascade;
use crate::state::{EndingRoot, EndingScope, ScopeRef};

impl Cascade<'_, '_> {
    /// Ends more of what is ending in a run, as far as this record goes.
    pub(crate) fn continue_ending(&mut self, run: RunId) {
        let Some(endings) = self.run(run).endings.clone() else { return };
        match &endings.root {
            Some(root) => self.continue_root(run, root),
            None => endings.scopes.iter().for_each(|scope| self.continue_scope(run, *scope)),
        }
    }

    /// Whether this record ends nothing more.
    pub(crate) fn is_spent(&self) -> bool {
        self.items_left() == 0
    }

    /// Tokens first, by their numbers, then groups from the inside out, then the run, once the child
    /// runs that end with it are over.
    fn continue_root(&mut self, run: RunId, root: &EndingRoot) {
        let mut live = Live::up_to(self.items_left());
        let tokens = root.tokens_ended + 1..=self.run(run).tokens;
        let groups = (1..=root.groups_left).rev();
        let is_whole = self.gather_tokens(run, tokens.map(TokenId), &mut live)
            && self.gather_groups(run, groups.map(GroupId), &mut live);
        let ends_children = self.has_children(run, &live);
        self.cancel_live(run, live);
        if !is_whole || ends_children || root.children > 0 {
            return;
        }
        self.finish_run(run, root.state, root.error.clone());
    }

    fn continue_scope(&mut self, run: RunId, scope: EndingScope) {
        let mut live = Live::up_to(self.items_left());
        let is_whole = match scope.index {
            Some(index) => {
                self.gather_scope(run, ScopeRef { group: scope.group, index }, &mut live)
            }
            None => self.gather_group(run, scope.group, &mut live),
        };
        self.cancel_live(run, live);
        if is_whole && !self.is_spent() {
            self.spend(1);
            self.close_scope(run, scope);
        }
    }

    /// A run in which nothing is live has nothing that is ending.
    pub(super) fn close_scopes(&mut self, run: RunId) {
        let scopes = self.run(run).endings.as_ref().map(|endings| endings.scopes.clone());
        scopes.into_iter().flatten().for_each(|scope| self.close_scope(run, scope));
    }

    fn close_scope(&mut self, run: RunId, EndingScope { group, index }: EndingScope) {
        self.emit(run, Step::CloseScope(CloseScope { group, index }));
    }
}

//! How the parts of a run lie in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use tenure_record::event::SubmitHash;
use tenure_record::id::{GroupId, TokenId};
use tenure_value::Value;

use super::{Branch, Group, Run, Scope, ScopeRef, Token};
use crate::state::store::Chunks;

/// Where the output of a visit stands among those of other branches: node, outermost group,
/// indices from the outermost to the innermost branch, token.
pub(crate) type KeptKey = (u32, GroupId, SmallVec<[u32; 2]>, TokenId);

/// A run with all its parts.
#[derive(Clone, Debug)]
pub(crate) struct StoredRun {
    pub head: Run,
    pub tokens: Chunks<Token>,
    pub groups: Vec<Arc<StoredGroup>>,
    /// Outputs of visits inside groups, for `outputs.<node>._branches`.
    pub kept: Arc<BTreeMap<KeptKey, Value>>,
    /// Signals that came with an id, and what each looked like, if its record says so.
    pub signal_ids: Arc<BTreeMap<Arc<str>, Option<SubmitHash>>>,
}

/// A group with its branches.
#[derive(Clone, Debug)]
pub(crate) struct StoredGroup {
    pub head: Group,
    pub branches: Chunks<Branch>,
}

impl StoredRun {
    pub(crate) fn new(head: Run) -> Self {
        Self {
            head,
            tokens: Chunks::default(),
            groups: Vec::new(),
            kept: Arc::default(),
            signal_ids: Arc::default(),
        }
    }

    pub(crate) fn token(&self, id: TokenId) -> Option<&Token> {
        self.tokens.get((id.0 as usize).checked_sub(1)?)
    }

    pub(crate) fn group(&self, id: GroupId) -> Option<&Group> {
        self.stored_group(id).map(|group| &group.head)
    }

    pub(crate) fn stored_group(&self, id: GroupId) -> Option<&StoredGroup> {
        self.groups.get((id.0 as usize).checked_sub(1)?).map(|group| &**group)
    }

    pub(crate) fn group_mut(&mut self, id: GroupId) -> Option<&mut StoredGroup> {
        self.groups.get_mut((id.0 as usize).checked_sub(1)?).map(Arc::make_mut)
    }

    pub(crate) fn branch(&self, at: ScopeRef) -> Option<&Branch> {
        self.stored_group(at.group)?.branches.get(at.index as usize)
    }

    pub(crate) fn scope(&self, at: ScopeRef) -> Option<&Arc<Scope>> {
        match at.is_root() {
            true => Some(&self.head.root),
            false => self.branch(at)?.scope.as_ref(),
        }
    }

    /// All tokens, by number.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = (TokenId, &Token)> {
        (1..).map(TokenId).zip(self.tokens.iter())
    }
}

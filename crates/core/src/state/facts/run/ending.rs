//! What of a run is ending over several records: scopes whose outcome is decided, while tokens,
//! tasks and child runs in them are still listed record by record.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_record::event::RunState;
use tenure_record::id::GroupId;
use tenure_record::time::Timestamp;
use tenure_value::Value;

use super::ScopeRef;

/// What of a run is ending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Endings {
    /// The run as a whole.
    pub root: Option<EndingRoot>,
    /// Branches.
    pub scopes: BTreeSet<EndingScope>,
}

/// A run that ends as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndingRoot {
    pub state: RunState,
    pub error: Option<Value>,
    pub since: Timestamp,
    /// Tokens up to this number have ended.
    pub tokens_ended: u32,
    /// Groups above this number have closed.
    pub groups_left: u32,
    /// Child runs that are ending because this run is. It is over after them.
    pub children: u32,
    /// It is one of the children that its parent waits for.
    pub holds_parent: bool,
}

/// Branches that end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndingScope {
    pub group: GroupId,
    /// One branch; if absent, all that had not settled.
    pub index: Option<u32>,
}

impl Endings {
    /// Whether a branch was named by itself.
    pub(crate) fn has_branch(&self, at: ScopeRef) -> bool {
        self.scopes.contains(&EndingScope { group: at.group, index: Some(at.index) })
    }

    /// Whether the rest of a group's branches is ending.
    pub(crate) fn has_group(&self, group: GroupId) -> bool {
        self.scopes.contains(&EndingScope { group, index: None })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none() && self.scopes.is_empty()
    }
}

/// A run that stands still until an operator decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parked {
    pub reason: Arc<str>,
    pub at: Timestamp,
}

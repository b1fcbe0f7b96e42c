//! Workflows that are registered and deleted, and the events that begin runs of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_record::event::{RunStarted, SignalReceived, WorkflowDeleted, WorkflowRegistered};
use tenure_record::id::{Lsn, TokenId};

use super::Audit;
use super::law::{Law, Violation, hold};

/// The versions of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Versions {
    pub last: u32,
    pub kept: BTreeSet<u32>,
}

impl Audit {
    pub(super) fn registered(&mut self, item: &WorkflowRegistered<'_>) -> Result<(), Violation> {
        let versions = self.runs.versions.entry(Arc::from(item.name.as_str())).or_default();
        versions.last += 1;
        let right = versions.last;
        versions.kept.insert(right);
        hold(Law::RunsGrowInOrder, item.version == right, || {
            let name = item.name.as_str();
            format!(
                "workflow {name:?} is registered as version {} after {}",
                item.version,
                right - 1
            )
        })
    }

    /// Only versions that exist and that no run is of are deleted.
    pub(super) fn workflow_deleted(&mut self, item: &WorkflowDeleted<'_>) -> Result<(), Violation> {
        let (name, version) = (item.name.as_str(), item.version);
        let is_meant = |there: u32| version == 0 || there == version;
        let versions = self.runs.versions.get_mut(name);
        let before = versions.as_ref().map_or(0, |versions| versions.kept.len());
        let after = versions.map_or(0, |versions| {
            versions.kept.retain(|there| !is_meant(*there));
            versions.kept.len()
        });
        let has_run = self.runs.has_run_of(name, is_meant);
        hold(Law::OnlyTheUnusedIsDeleted, after < before && !has_run, || {
            format!("workflow {name:?} is deleted, and has runs or does not exist")
        })
    }

    pub(super) fn run_started(&mut self, event: &RunStarted<'_>) -> Result<(), Violation> {
        self.run_begun(&event.run)?;
        self.cascade(&event.cascade)
    }

    /// The signal that began a run is kept until a token takes it, and decides nothing itself.
    pub(super) fn signaled_new(&mut self, item: &SignalReceived<'_>) -> Result<(), Violation> {
        let is_kept = item.token == TokenId::NONE && item.cascade.is_empty();
        let begins = self.runs.next == item.run_id.next() && item.previous == Lsn::NONE;
        hold(Law::RunsGrowInOrder, is_kept && begins, || {
            format!("a signal begins run {}, and is not its first news", item.run_id)
        })?;
        hold(Law::KeysAreUnique, item.signal_id.is_some() || item.signal_hash.is_none(), || {
            format!("a signal of run {} has the hash of an id, and no id", item.run_id)
        })
    }
}

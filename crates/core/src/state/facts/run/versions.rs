//! The versions of one workflow. Their numbers only grow: a number that was given is never given
//! again, also after its definition was deleted.

use std::sync::Arc;

use super::Workflow;
use crate::limits::WORKFLOW_VERSIONS_MAX;

/// The versions of a workflow that exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Versions {
    /// By number.
    kept: Vec<Arc<Workflow>>,
    /// The last number that was given; its definition may be gone.
    pub last: u32,
}

impl Versions {
    pub(crate) fn get(&self, version: u32) -> Option<&Arc<Workflow>> {
        let at = self.kept.binary_search_by_key(&version, |workflow| workflow.version);
        at.ok().map(|at| &self.kept[at])
    }

    pub(crate) fn newest(&self) -> Option<&Arc<Workflow>> {
        self.kept.last()
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether no version can be added.
    pub(crate) fn is_full(&self) -> bool {
        self.kept.len() >= WORKFLOW_VERSIONS_MAX as usize || self.last == u32::MAX
    }

    /// Adds a version with a number above all others.
    pub(crate) fn push(&mut self, workflow: Arc<Workflow>) {
        self.last = workflow.version;
        self.kept.push(workflow);
    }

    /// Takes out one version, or all of them.
    pub(crate) fn remove(&mut self, version: Option<u32>) -> Vec<Arc<Workflow>> {
        match version {
            None => std::mem::take(&mut self.kept),
            Some(version) => {
                let at = self.kept.binary_search_by_key(&version, |workflow| workflow.version);
                at.ok().map(|at| self.kept.remove(at)).into_iter().collect()
            }
        }
    }

    /// The last number, if its definition is gone.
    pub(crate) fn deleted_last(&self) -> Option<u32> {
        Some(self.last).filter(|last| self.newest().is_none_or(|newest| newest.version < *last))
    }
}

impl<'a> IntoIterator for &'a Versions {
    type Item = &'a Arc<Workflow>;
    type IntoIter = std::slice::Iter<'a, Arc<Workflow>>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter()
    }
}

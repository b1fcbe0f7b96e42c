//! Which definitions call which workflow, so that a delete finds what needs it without a look at all
//! definitions.

use std::ops::Bound;
use std::sync::Arc;

use tenure_flow::definition::NodeKind;

use super::Indexes;
use crate::state::facts::run::Workflow;

/// The workflow that is called, the caller, the caller's version, and the version that is called;
/// zero for the newest.
pub(crate) type Call = (Arc<str>, Arc<str>, u32, u32);

impl Indexes {
    /// A version of a workflow was registered.
    pub(crate) fn registered(&mut self, workflow: &Workflow) {
        self.definition_bytes += workflow.bytes();
        self.calls.extend(calls(workflow));
    }

    /// A version of a workflow was deleted.
    pub(crate) fn unregistered(&mut self, workflow: &Workflow) {
        self.definition_bytes -= workflow.bytes();
        calls(workflow).for_each(|call| {
            self.calls.remove(&call);
        });
    }

    /// A definition that needs a version of a workflow, or any of its versions. Versions that go
    /// together do not need each other.
    pub(crate) fn callers(
        &self,
        name: &str,
        version: Option<u32>,
        leaves_none: bool,
    ) -> Option<(Arc<str>, u32)> {
        let from: Call = (Arc::from(name), Arc::from(""), 0, 0);
        let calls = self.calls.range((Bound::Included(from), Bound::Unbounded));
        let mut calls = calls.take_while(|(called, ..)| &**called == name);
        let found = calls.find(|(_, caller, caller_version, called_version)| {
            let goes_too =
                &**caller == name && version.is_none_or(|version| version == *caller_version);
            let needs = match *called_version {
                0 => leaves_none,
                called => version.is_none_or(|version| version == called),
            };
            needs && !goes_too
        });
        found.map(|(_, caller, caller_version, _)| (Arc::clone(caller), *caller_version))
    }
}

fn calls(workflow: &Workflow) -> impl Iterator<Item = Call> + '_ {
    workflow.definition().nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::Workflow(called) => Some((
            Arc::clone(&called.workflow),
            Arc::clone(&workflow.name),
            workflow.version,
            called.version.unwrap_or_default(),
        )),
        NodeKind::Task(_) | NodeKind::Pass | NodeKind::Signal(_) | NodeKind::Timer(_) => None,
    })
}

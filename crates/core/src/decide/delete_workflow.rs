//! A client deletes a workflow that nothing needs any more: one version, or all of them.

use std::sync::Arc;

use tenure_record::event::{Event, WorkflowDeleted};
use tenure_record::name::Text;

use super::Verdict;
use crate::apply;
use crate::command::{DeleteWorkflow, Reply};
use crate::limits::DELETED_WORKFLOWS_MAX;
use crate::rejection::{Rejection, WorkflowNeed};
use crate::state::Draft;

pub(super) fn decide(
    draft: &mut Draft<'_>,
    command: &DeleteWorkflow,
) -> Result<Verdict<'static>, Rejection> {
    let DeleteWorkflow { name, version } = command;
    let facts = draft.base().facts();
    let versions = facts
        .workflows
        .get(name)
        .filter(|versions| version.is_none_or(|version| versions.get(version).is_some()));
    let Some(versions) = versions else {
        return Err(Rejection::WorkflowNotFound { name: Arc::clone(name), version: *version });
    };
    let in_use =
        |need| Err(Rejection::WorkflowInUse { name: Arc::clone(name), version: *version, need });
    let runs = draft.base().live().runs.of_version(name, *version);
    if runs > 0 {
        return in_use(WorkflowNeed::Runs(runs));
    }
    // A caller that names no version needs one to be left.
    let leaves_none = version.is_none() || versions.len() == 1;
    let callers = draft.base().live().callers(name, *version, leaves_none);
    if let Some((caller, caller_version)) = callers {
        return in_use(WorkflowNeed::Caller { name: caller, version: caller_version });
    }
    if leaves_none && facts.deleted_workflows.len() >= DELETED_WORKFLOWS_MAX {
        return Err(Rejection::TooManyDeletedWorkflows);
    }
    let item = WorkflowDeleted {
        name: Text::Shared(Arc::clone(name)),
        version: version.unwrap_or_default(),
    };
    apply::run::deleted(draft, &item);
    Ok(Verdict::Append(Event::WorkflowDeleted(item), Reply::Deleted))
}

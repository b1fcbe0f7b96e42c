//! A client brings a definition of a workflow. It was checked and compiled at the door.

use std::sync::Arc;

use tenure_record::event::{Event, Json, WorkflowRegistered};
use tenure_record::name::Text;
use tenure_record::time::Now;

use super::{Verdict, stamp};
use crate::apply;
use crate::command::{RegisterWorkflow, Registered, Reply, SubmitOutcome};
use crate::limits::WORKFLOWS_MAX;
use crate::rejection::Rejection;
use crate::state::{Draft, Versions};

pub(super) fn decide(
    draft: &mut Draft<'_>,
    command: &RegisterWorkflow,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    let definition = &command.definition;
    let name = Arc::clone(&definition.name);
    let newest = draft.newest_workflow(&name);
    let facts = draft.base().facts();
    let registered = |version, outcome| Registered { name: Arc::clone(&name), version, outcome };
    let version = match newest {
        // What is so already needs no record.
        Some(newest) if newest.source == definition.source => {
            let known = registered(newest.version, SubmitOutcome::Existed);
            return Ok(Verdict::Answer(Reply::Registered(known)));
        }
        Some(_) if facts.workflows.get(&name).is_some_and(Versions::is_full) => {
            return Err(Rejection::TooManyVersions { name });
        }
        Some(_) => facts.last_version(&name) + 1,
        None if facts.workflow_count() >= WORKFLOWS_MAX => {
            return Err(Rejection::TooManyWorkflows);
        }
        // A name that was deleted goes on counting: a number means one definition for ever.
        None => match facts.last_version(&name) {
            u32::MAX => return Err(Rejection::TooManyVersions { name }),
            last => last + 1,
        },
    };
    let item = WorkflowRegistered {
        name: Text::Shared(Arc::clone(&name)),
        version,
        definition: Json(definition.source.clone()),
        nodes: definition.nodes.iter().map(|it| Text::Shared(Arc::clone(&it.name))).collect(),
        transitions: definition.transitions.len() as u32,
        groups: definition.groups.len() as u32,
    };
    apply::run::registered(draft, stamp(draft, now), &item, Some(definition));
    draft.precomputed.definition(definition);
    let reply = Reply::Registered(registered(version, SubmitOutcome::Created));
    Ok(Verdict::Append(Event::WorkflowRegistered(item), reply))
}

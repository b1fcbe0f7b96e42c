//! A client begins a run.

use std::sync::Arc;

use super::{Verdict, stamp};
use crate::apply;
use crate::command::{Reply, StartRun, Started, SubmitOutcome};
use crate::event::{Event, RunBegun, RunStarted, Tag};
use crate::limits::CASCADE_BYTES_MAX;
use crate::rejection::Rejection;
use crate::state::{Draft, Runs, Workflow};
use crate::time::Now;
use crate::workflow::{self, Cascade};

pub(super) fn decide(
    draft: &mut Draft<'_>,
    command: &StartRun,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    let workflow = find(draft, command)?;
    if let Some(key) = &command.key
        && let Some(run_id) = draft.base().run_with_key(&workflow.name, key.as_str())
    {
        let known = Started { run_id, outcome: SubmitOutcome::Existed };
        return Ok(Verdict::Answer(Reply::Started(known)));
    }
    check_input(&workflow, command)?;
    let tags = command.tags.as_slice().iter();
    let run = RunBegun {
        key: command.key.as_ref().map(|key| key.share()),
        tags: tags.map(|(key, value)| Tag { key: key.share(), value: value.share() }).collect(),
        ..workflow::begin(draft.next_run_id(), &workflow, command.input.clone(), now.log)
    };
    let run_id = run.run_id;
    apply::run::begun(draft, stamp(draft, now), &run);
    let mut cascade = Cascade::new(draft, now);
    cascade.begin_run(run_id);
    let event = RunStarted { run, cascade: cascade.finish() };
    let reply = Reply::Started(Started { run_id, outcome: SubmitOutcome::Created });
    Ok(Verdict::Append(Event::RunStarted(Box::new(event)), reply))
}

fn find(draft: &Draft<'_>, command: &StartRun) -> Result<Arc<Workflow>, Rejection> {
    let found = match command.version {
        Some(version) => Runs::workflow(draft, &command.workflow, version),
        None => draft.newest_workflow(&command.workflow),
    };
    found.cloned().ok_or_else(|| Rejection::WorkflowNotFound {
        name: Arc::clone(&command.workflow),
        version: command.version,
    })
}

fn check_input(workflow: &Workflow, command: &StartRun) -> Result<(), Rejection> {
    let (definition, bytes) = (&workflow.definition, command.input.bytes());
    if bytes + definition.context_defaults.bytes() > CASCADE_BYTES_MAX / 4 {
        return Err(Rejection::RecordTooLarge { bytes });
    }
    let Some(schema) = &definition.input_schema else { return Ok(()) };
    schema.check(&command.input).map_err(|complaints| Rejection::InputInvalid {
        message: workflow::sentence("the input", &complaints),
    })
}

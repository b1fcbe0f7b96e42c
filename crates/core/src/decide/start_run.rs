//! A client begins a run.

use std::sync::Arc;

use tenure_record::event::{Event, RunBegun, RunStarted, Tag};
use tenure_record::id::RunId;
use tenure_record::time::Now;

use super::skip_ids::check_room;
use super::{Verdict, request_hash, stamp};
use crate::apply;
use crate::command::{Reply, StartRun, Started, SubmitOutcome};
use crate::limits::INPUT_BYTES_MAX;
use crate::rejection::Rejection;
use crate::state::{Draft, Runs, Workflow};
use crate::workflow::{self, Cascade};

pub(super) fn decide(
    draft: &mut Draft<'_>,
    command: &StartRun,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    let run = match begin(draft, command, now)? {
        Begun::Existed(run_id) => {
            let known = Started { run_id, outcome: SubmitOutcome::Existed };
            return Ok(Verdict::Answer(Reply::Started(known)));
        }
        Begun::New(run) => run,
    };
    let run_id = run.run_id;
    let mut cascade = Cascade::new(draft, now);
    cascade.begin_run(run_id);
    let event = RunStarted { run, cascade: cascade.finish() };
    let reply = Reply::Started(Started { run_id, outcome: SubmitOutcome::Created });
    Ok(Verdict::Append(Event::RunStarted(Box::new(event)), reply))
}

/// What a start leads to.
pub(super) enum Begun {
    /// A run with this key was started in this way before.
    Existed(RunId),
    /// A new run, which is in the draft; its first token is not.
    New(RunBegun<'static>),
}

/// Begins a run in the draft, unless one that was started in the same way holds its key.
pub(super) fn begin(
    draft: &mut Draft<'_>,
    command: &StartRun,
    now: Now,
) -> Result<Begun, Rejection> {
    let workflow = find(draft, command)?;
    check_whole(&workflow)?;
    let start_hash = command.key.as_ref().map(|_| request_hash::of_start(command));
    if let Some((key, hash)) = command.key.as_ref().zip(start_hash)
        && let Some(run_id) = draft.base().run_with_key(&workflow.name, key.as_str())
    {
        let run = Runs::run(draft, run_id).expect("a run that holds a key exists");
        let held = run.rare.as_ref().and_then(|rare| rare.start_hash);
        if !request_hash::repeats(held, hash) {
            return Err(Rejection::RunKeyConflict { key: key.clone(), run_id });
        }
        return Ok(Begun::Existed(run_id));
    }
    check_input(draft, &workflow, command)?;
    check_room(draft)?;
    let tags = command.tags.as_slice().iter();
    let run = RunBegun {
        key: command.key.as_ref().map(|key| key.share()),
        start_hash,
        tags: tags.map(|(key, value)| Tag { key: key.share(), value: value.share() }).collect(),
        ..workflow::begin(draft.next_run_id(), &workflow, command.input.clone(), now.log)
    };
    apply::run::begun(draft, stamp(draft, now), &run);
    Ok(Begun::New(run))
}

/// Refuses a version that no longer compiles.
pub(super) fn check_whole(workflow: &Workflow) -> Result<(), Rejection> {
    let Some(fault) = workflow.faults().first() else { return Ok(()) };
    let (name, version) = (Arc::clone(&workflow.name), workflow.version);
    Err(Rejection::WorkflowBroken { name, version, message: fault.to_string() })
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

fn check_input(
    draft: &Draft<'_>,
    workflow: &Workflow,
    command: &StartRun,
) -> Result<(), Rejection> {
    let (definition, bytes) = (workflow.definition(), command.input.bytes());
    let bytes_max = INPUT_BYTES_MAX.saturating_sub(definition.context_defaults.bytes());
    if bytes > bytes_max {
        return Err(Rejection::ValueTooLarge { what: "the input", bytes, bytes_max });
    }
    let Some(schema) = &definition.input_schema else { return Ok(()) };
    draft.check(schema, &command.input).map_err(|complaints| Rejection::InputInvalid {
        message: workflow::sentence("the input", &complaints),
    })
}

//! Requests about workflows and runs: what the outward model says, as commands.

use std::sync::Arc;

use tenure_api as api;
use tenure_code::{Code, Echo};
use tenure_coordinator::{RUN_STATES, RunFilter};
use tenure_core::command::{
    RegisterWorkflow, SignalByKey, SignalRun, SignalStart, StartRun, StartRuns,
};
use tenure_flow::{Definition, Fault, FaultCode, yaml};
use tenure_record::id::RunId;
use tenure_record::limits::PAYLOAD_BYTES_MAX;
use tenure_record::name::{SignalText, TaskKey};
use tenure_value::Value;

use super::{list, terms};
use crate::problem::Problem;

type Parsed<T> = Result<T, Problem>;

/// A definition as it came.
#[derive(Clone, Copy, Debug)]
enum Text<'a> {
    Json(&'a [u8]),
    Yaml(&'a [u8]),
}

impl Text<'_> {
    fn compile(self) -> Result<Definition, Vec<Fault>> {
        match self {
            Text::Json(bytes) => Definition::from_json(bytes),
            Text::Yaml(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Definition::from_yaml(text),
                Err(error) => {
                    let at = error.valid_up_to();
                    let message =
                        format!("the text is no UTF-8 from byte {at} on; save it as UTF-8");
                    Err(vec![Fault::new("", FaultCode::Syntax, message)])
                }
            },
        }
    }

    /// What a definition with faults says it is called, as far as it can be read.
    fn name(self) -> Option<Arc<str>> {
        let source = match self {
            Text::Json(bytes) => Value::from_json(bytes).ok(),
            Text::Yaml(bytes) => yaml::parse(std::str::from_utf8(bytes).ok()?).ok(),
        };
        source?.as_map()?.get("workflow")?.as_text().map(Arc::from)
    }
}

/// A definition to register. If the address names it, both names must be the same. Takes its time
/// for a large one.
pub(crate) fn definition(definition: &api::Definition) -> Parsed<RegisterWorkflow> {
    let name = definition.name.as_deref();
    let text = match definition.format {
        api::DefinitionFormat::Json => Text::Json(&definition.text),
        api::DefinitionFormat::Yaml => Text::Yaml(&definition.text),
    };
    let differs = |said: &str| {
        let name = name.filter(|name| *name != said)?;
        let (said, name) = (Echo(said), Echo(name));
        let message = format!("the workflow is called {said} here and {name} in the address");
        let message = format!("{message}; make them the same");
        Some(Fault::new("/workflow", FaultCode::BadValue, message))
    };
    let faults = match text.compile() {
        Ok(definition) => match differs(&definition.name) {
            None => return Ok(RegisterWorkflow { definition: Arc::new(definition) }),
            Some(fault) => vec![fault],
        },
        Err(faults) => {
            let differs = text.name().and_then(|said| differs(&said));
            differs.into_iter().chain(faults).collect()
        }
    };
    Err(Problem::faulty(faults))
}

/// A definition compiled on a thread of its own, because a large one takes its time.
pub(crate) async fn compiled(text: api::Definition) -> Parsed<RegisterWorkflow> {
    let compiled = tokio::task::spawn_blocking(move || definition(&text)).await;
    compiled.map_err(|_| Problem::stopping())?
}

/// A value from JSON text, which may be as large as a payload. What a run could not hold as it is
/// written is refused with its place.
fn value(field: &str, json: &[u8]) -> Parsed<Value> {
    let bytes = json.len();
    if bytes > PAYLOAD_BYTES_MAX {
        let detail = format!("{field} has {bytes} bytes; at most {PAYLOAD_BYTES_MAX} are allowed");
        return Err(Problem::new(Code::PayloadTooLarge, detail));
    }
    Value::from_json_exact(json).map_err(|fault| Problem::invalid(fault.about(field)))
}

/// A version of a workflow.
pub(crate) fn version(version: Option<u32>) -> Parsed<Option<u32>> {
    match version {
        Some(0) => {
            let max = u32::MAX;
            Err(Problem::invalid(format!("version is 0; it must be from 1 to {max}")))
        }
        version => Ok(version),
    }
}

/// A run to start.
pub(crate) fn start(workflow: &str, run: api::NewRun) -> Parsed<StartRun> {
    let api::NewRun { input, key, version: wanted, tags } = run;
    Ok(StartRun {
        workflow: workflow.into(),
        version: version(wanted)?,
        input: value("input", given(&input, b"{}"))?,
        key: key.as_deref().map(TaskKey::parse).transpose()?,
        tags: terms::tags(tags)?,
    })
}

fn given<'p>(payload: &'p api::Payload, default: &'static [u8]) -> &'p [u8] {
    if payload.is_empty() { default } else { payload.as_bytes() }
}

/// Runs to start together. A refusal says which run it is about.
pub(crate) fn start_batch(
    workflow: &str,
    runs: impl Iterator<Item = api::NewRun>,
) -> Parsed<StartRuns> {
    let parse = |(index, run)| {
        start(workflow, run).map_err(|problem| problem.within(&format!("runs[{index}]: ")))
    };
    let runs = runs.enumerate().map(parse).collect::<Result<_, _>>()?;
    Ok(StartRuns { runs })
}

/// A signal for a run, or for the run that holds a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SignalCommand {
    Run(SignalRun),
    ByKey(SignalByKey),
}

/// A signal.
pub(crate) fn signal(run: api::RunRef, name: &str, signal: api::Signal) -> Parsed<SignalCommand> {
    let api::Signal { payload, correlation, signal_id, start: begin } = signal;
    let text = |field: &str, text: &str| {
        let parsed = SignalText::parse(text);
        parsed.map_err(|invalid| Problem::invalid(format!("{field}: {invalid}")))
    };
    let signal_id = signal_id.as_deref().map(|id| text("signal_id", id)).transpose()?;
    if signal_id.as_ref().is_some_and(|id| id.as_str().is_empty()) {
        return Err(Problem::invalid("signal_id is empty; leave it out, or give it a text"));
    }
    let mut signal = SignalRun {
        run_id: RunId(0),
        name: name.into(),
        payload: value("payload", given(&payload, b"null"))?,
        correlation: text("correlation", correlation.as_deref().unwrap_or_default())?,
        signal_id,
    };
    match (run, begin) {
        (api::RunRef::Id(_), Some(_)) => Err(Problem::invalid(
            "start is given for a run that is named by its id; name the run by its key",
        )),
        (api::RunRef::Id(run_id), None) => {
            signal.run_id = RunId(run_id);
            Ok(SignalCommand::Run(signal))
        }
        (api::RunRef::Key { workflow, key }, begin) => Ok(SignalCommand::ByKey(SignalByKey {
            workflow: workflow.into(),
            key: TaskKey::parse(&key)?,
            signal,
            start: begin.map(signal_start).transpose()?,
        })),
    }
}

/// The run that a signal starts if there is none.
fn signal_start(begin: api::SignalStart) -> Parsed<SignalStart> {
    let api::SignalStart { input, version, tags } = begin;
    let run = api::NewRun { input, key: None, version, tags };
    let StartRun { version, input, tags, .. } =
        start("", run).map_err(|problem| problem.within("start."))?;
    Ok(SignalStart { version, input, tags })
}

/// Which runs to list.
pub(crate) fn filter(filter: api::RunFilter) -> Parsed<RunFilter> {
    let state = |given: api::RunState| {
        RUN_STATES.into_iter().find(|state| *state == given.as_str()).ok_or_else(|| {
            let (given, names) = (Echo(given.as_str()), RUN_STATES.join(", "));
            Problem::invalid(format!("state is {given}; it must be one of {names}"))
        })
    };
    Ok(RunFilter {
        workflow: filter.workflow.map(Arc::from),
        state: filter.state.map(state).transpose()?,
        tag: list::tag(filter.tag.as_deref())?,
        key: filter.key.as_deref().map(TaskKey::parse).transpose()?,
        before: list::cursor(filter.cursor.as_deref())?.map(RunId),
        limit: list::limit(filter.limit)?,
    })
}

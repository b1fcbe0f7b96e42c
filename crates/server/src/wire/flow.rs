//! What both doors say about workflows and runs in their own way and mean alike.

use std::sync::Arc;

use tenure_code::{Code, Echo};
use tenure_coordinator::{RUN_STATES, RunFilter};
use tenure_core::command::{RegisterWorkflow, SignalByKey, SignalRun, SignalStart, StartRun};
use tenure_flow::{Definition, Fault, FaultCode, yaml};
use tenure_record::id::RunId;
use tenure_record::limits::PAYLOAD_BYTES_MAX;
use tenure_record::name::{SignalText, TaskKey};
use tenure_value::Value;

use super::pairs::Pairs;
use super::{list, terms};
use crate::problem::Problem;

type Parsed<T> = Result<T, Problem>;

/// A definition as it came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text<'a> {
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
pub(crate) fn definition(name: Option<&str>, text: Text<'_>) -> Parsed<RegisterWorkflow> {
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

/// A value from JSON text, which may be as large as a payload. What a run could not hold as it is
/// written is refused with its place.
pub(crate) fn value(field: &str, json: &[u8]) -> Parsed<Value> {
    let bytes = json.len();
    if bytes > PAYLOAD_BYTES_MAX {
        let detail = format!("{field} has {bytes} bytes; at most {PAYLOAD_BYTES_MAX} are allowed");
        return Err(Problem::new(Code::PayloadTooLarge, detail));
    }
    Value::from_json_exact(json).map_err(|fault| Problem::invalid(fault.about(field)))
}

/// A version of a workflow.
pub(crate) fn version(version: Option<i64>) -> Parsed<Option<u32>> {
    let parse = |version: i64| {
        let parsed = u32::try_from(version).ok();
        parsed.filter(|parsed| *parsed > 0).ok_or_else(|| {
            let max = u32::MAX;
            Problem::invalid(format!("version is {version}; it must be from 1 to {max}"))
        })
    };
    version.map(parse).transpose()
}

/// A run to begin, as it came.
#[derive(Debug, Default)]
pub(crate) struct SaidStart<'a> {
    pub(crate) workflow: String,
    pub(crate) version: Option<i64>,
    /// JSON text; none for `{}`.
    pub(crate) input: Option<&'a [u8]>,
    pub(crate) key: Option<String>,
    pub(crate) tags: Pairs,
}

impl SaidStart<'_> {
    /// The run that is meant.
    pub(crate) fn parse(self) -> Parsed<StartRun> {
        Ok(StartRun {
            workflow: self.workflow.into(),
            version: version(self.version)?,
            input: value("input", self.input.unwrap_or(b"{}"))?,
            key: self.key.as_deref().map(TaskKey::parse).transpose()?,
            tags: terms::tags("tags", self.tags.0)?,
        })
    }
}

/// News for a run, as it came.
#[derive(Debug, Default)]
pub(crate) struct SaidSignal<'a> {
    pub(crate) run_id: u64,
    pub(crate) name: String,
    /// JSON text; none for null.
    pub(crate) payload: Option<&'a [u8]>,
    pub(crate) correlation: Option<String>,
    pub(crate) signal_id: Option<String>,
}

impl SaidSignal<'_> {
    /// The signal that is meant.
    pub(crate) fn parse(self) -> Parsed<SignalRun> {
        let text = |field: &str, text: &str| {
            let parsed = SignalText::parse(text);
            parsed.map_err(|invalid| Problem::invalid(format!("{field}: {invalid}")))
        };
        let signal_id = self.signal_id.as_deref().map(|id| text("signal_id", id)).transpose()?;
        if signal_id.as_ref().is_some_and(|id| id.as_str().is_empty()) {
            return Err(Problem::invalid("signal_id is empty; leave it out, or give it a text"));
        }
        Ok(SignalRun {
            run_id: RunId(self.run_id),
            name: self.name.into(),
            payload: value("payload", self.payload.unwrap_or(b"null"))?,
            correlation: text("correlation", self.correlation.as_deref().unwrap_or_default())?,
            signal_id,
        })
    }
}

/// News for the run that holds a key, and how to begin it if there is none.
pub(crate) fn signal_by_key(
    workflow: String,
    key: &str,
    signal: SaidSignal<'_>,
    start: Option<SaidStart<'_>>,
) -> Parsed<SignalByKey> {
    let in_start =
        |problem: Problem| Problem { detail: format!("start.{}", problem.detail), ..problem };
    let start = start.map(|start| start.parse().map_err(in_start)).transpose()?;
    Ok(SignalByKey {
        workflow: workflow.into(),
        key: TaskKey::parse(key)?,
        signal: signal.parse()?,
        start: start.map(|StartRun { version, input, tags, .. }| SignalStart {
            version,
            input,
            tags,
        }),
    })
}

/// Which runs to list, as it came.
#[derive(Debug, Default)]
pub(crate) struct SaidRuns<'a> {
    pub(crate) workflow: Option<&'a str>,
    pub(crate) state: Option<&'a str>,
    pub(crate) tag: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
    pub(crate) limit: Option<usize>,
    pub(crate) cursor: Option<&'a str>,
}

impl SaidRuns<'_> {
    /// The runs that are meant.
    pub(crate) fn parse(self) -> Parsed<RunFilter> {
        let state = |name: &str| {
            RUN_STATES.into_iter().find(|state| *state == name).ok_or_else(|| {
                let (name, names) = (Echo(name), RUN_STATES.join(", "));
                Problem::invalid(format!("state is {name}; it must be one of {names}"))
            })
        };
        Ok(RunFilter {
            workflow: self.workflow.map(Arc::from),
            state: self.state.map(state).transpose()?,
            tag: list::tag(self.tag)?,
            key: self.key.map(TaskKey::parse).transpose()?,
            before: list::cursor(self.cursor)?.map(RunId),
            limit: list::limit(self.limit)?,
        })
    }
}

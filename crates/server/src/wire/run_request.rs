//! Requests about runs as they come over HTTP.

use serde::Deserialize;
use serde_json::value::RawValue;
use tenure_core::command::{SignalByKey, SignalRun, StartRun};
use utoipa::ToSchema;

use super::flow::{self, SaidSignal, SaidStart};
use super::pairs::Pairs;
use crate::problem::Problem;

/// A run to begin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartBody<'a> {
    /// What it is given; `{}` if not given. The workflow's input schema says what it may be.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    input: Option<&'a RawValue>,
    /// The same start under the same key gives the same run; another one is a conflict.
    #[schema(max_length = 256, min_length = 1)]
    key: Option<String>,
    /// Which version of the workflow; the newest if not given.
    #[schema(minimum = 1)]
    version: Option<i64>,
    /// Labels for people.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    tags: Option<Pairs>,
}

impl StartBody<'_> {
    /// The run that is meant.
    pub(crate) fn parse(self, workflow: String) -> Result<StartRun, Problem> {
        SaidStart {
            workflow,
            version: self.version,
            input: self.input.map(|input| input.get().as_bytes()),
            key: self.key,
            tags: self.tags.unwrap_or_default(),
        }
        .parse()
    }
}

/// Runs to begin together.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartBatchBody<'a> {
    /// All of them begin, or none.
    #[serde(borrow)]
    #[schema(max_items = 1_000)]
    runs: Vec<StartBody<'a>>,
}

impl StartBatchBody<'_> {
    /// The runs that are meant.
    pub(crate) fn parse(self, workflow: &str) -> Result<Vec<StartRun>, Problem> {
        let parse = |(index, run): (usize, StartBody<'_>)| {
            run.parse(workflow.to_owned()).map_err(|problem| in_batch(index, problem))
        };
        self.runs.into_iter().enumerate().map(parse).collect()
    }
}

/// A refusal that says which item of a batch it is about.
pub(crate) fn in_batch(index: usize, problem: Problem) -> Problem {
    Problem { detail: format!("runs[{index}]: {}", problem.detail), ..problem }
}

/// News from outside for the run that holds a key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalByKeyBody<'a> {
    /// What it says; null if not given.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<&'a RawValue>,
    /// What tells it from others of the name.
    #[schema(max_length = 256)]
    correlation: Option<String>,
    /// The same signal under the same id counts once; another one is a conflict.
    #[schema(max_length = 256, min_length = 1)]
    signal_id: Option<String>,
    /// How to begin the run if no run holds the key.
    #[serde(borrow)]
    start: Option<SignalStartBody<'a>>,
}

/// A run that a signal begins if there is none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignalStartBody<'a> {
    /// What it is given; `{}` if not given.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    input: Option<&'a RawValue>,
    /// Which version of the workflow; the newest if not given.
    #[schema(minimum = 1)]
    version: Option<i64>,
    /// Labels for people.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    tags: Option<Pairs>,
}

impl SignalByKeyBody<'_> {
    /// The signal that is meant.
    pub(crate) fn parse(
        self,
        workflow: String,
        key: &str,
        name: String,
    ) -> Result<SignalByKey, Problem> {
        let signal = SaidSignal {
            run_id: 0,
            name,
            payload: self.payload.map(|payload| payload.get().as_bytes()),
            correlation: self.correlation,
            signal_id: self.signal_id,
        };
        let start = self.start.map(|start| SaidStart {
            workflow: String::new(),
            version: start.version,
            input: start.input.map(|input| input.get().as_bytes()),
            key: None,
            tags: start.tags.unwrap_or_default(),
        });
        flow::signal_by_key(workflow, key, signal, start)
    }
}

/// News from outside.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalBody<'a> {
    /// What it says; null if not given.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<&'a RawValue>,
    /// What tells it from others of the name.
    #[schema(max_length = 256)]
    correlation: Option<String>,
    /// The same signal under the same id counts once; another one is a conflict.
    #[schema(max_length = 256, min_length = 1)]
    signal_id: Option<String>,
}

impl SignalBody<'_> {
    /// The signal that is meant.
    pub(crate) fn parse(self, run_id: u64, name: String) -> Result<SignalRun, Problem> {
        SaidSignal {
            run_id,
            name,
            payload: self.payload.map(|payload| payload.get().as_bytes()),
            correlation: self.correlation,
            signal_id: self.signal_id,
        }
        .parse()
    }
}

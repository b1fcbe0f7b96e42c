//! Requests about runs as they come over HTTP.

use serde::Deserialize;
use serde_json::value::RawValue;
use tenure_core::command::{SignalRun, StartRun};
use utoipa::ToSchema;

use super::flow::{SaidSignal, SaidStart};
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
    #[schema(minimum = 1, maximum = 10_000)]
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

//! Messages about workflows and runs as they come over gRPC.

use tenure_coordinator::RunFilter;
use tenure_core::command::{RegisterWorkflow, SignalRun, StartRun};
use tenure_proto::v1;

use super::parse::{given, unknown};
use crate::problem::Problem;
use crate::wire::flow::{self, SaidRuns, SaidSignal, SaidStart, Text};
use crate::wire::pairs::Pairs;

type Parsed<T> = Result<T, Problem>;

/// A definition to register.
pub(crate) fn definition(put: &v1::PutWorkflowRequest) -> Parsed<RegisterWorkflow> {
    let text = match v1::DefinitionFormat::try_from(put.format) {
        Ok(v1::DefinitionFormat::Unspecified | v1::DefinitionFormat::Json) => {
            Text::Json(&put.definition)
        }
        Ok(v1::DefinitionFormat::Yaml) => Text::Yaml(&put.definition),
        Err(_) => return Err(unknown("format", put.format)),
    };
    flow::definition(given(&put.name), text)
}

/// A run to begin.
pub(crate) fn start(start: v1::StartRunRequest) -> Parsed<StartRun> {
    SaidStart {
        workflow: start.workflow,
        version: start.version.map(i64::from),
        input: Some(start.input.as_slice()).filter(|input| !input.is_empty()),
        key: start.key,
        tags: Pairs(start.tags.into_iter().collect()),
    }
    .parse()
}

/// News from outside.
pub(crate) fn signal(signal: v1::SignalRequest) -> Parsed<SignalRun> {
    SaidSignal {
        run_id: signal.run_id,
        name: signal.name,
        payload: Some(signal.payload.as_slice()).filter(|payload| !payload.is_empty()),
        correlation: signal.correlation,
        signal_id: signal.signal_id,
    }
    .parse()
}

/// Which runs to list.
pub(crate) fn runs(list: &v1::ListRunsRequest) -> Parsed<RunFilter> {
    let state = match v1::RunState::try_from(list.state) {
        Ok(v1::RunState::Unspecified) => None,
        Ok(state) => state.as_str_name().strip_prefix("RUN_STATE_"),
        Err(_) => return Err(unknown("state", list.state)),
    };
    SaidRuns {
        workflow: list.workflow.as_deref(),
        state,
        tag: list.tag.as_deref(),
        limit: list.limit.map(|limit| limit as usize),
        cursor: given(&list.cursor),
    }
    .parse()
}

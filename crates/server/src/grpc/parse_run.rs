//! Messages about workflows and runs as they come over gRPC.

use tenure_coordinator::RunFilter;
use tenure_core::command::{RegisterWorkflow, SignalByKey, SignalRun, StartRun};
use tenure_proto::v1;

use super::parse::{given, unknown};
use crate::problem::Problem;
use crate::wire::flow::{self, SaidRuns, SaidSignal, SaidStart, Text};
use crate::wire::pairs::Pairs;
use crate::wire::run_request::in_batch;

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

/// Runs to begin together.
pub(crate) fn start_batch(batch: v1::StartRunBatchRequest) -> Parsed<Vec<StartRun>> {
    let v1::StartRunBatchRequest { workflow, runs } = batch;
    let parse = |(index, run): (usize, v1::BatchRun)| {
        let v1::BatchRun { version, input, key, tags } = run;
        let one = v1::StartRunRequest { workflow: workflow.clone(), version, input, key, tags };
        start(one).map_err(|problem| in_batch(index, problem))
    };
    runs.into_iter().enumerate().map(parse).collect()
}

/// A signal for a run, or for the run that holds a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Run(SignalRun),
    ByKey(SignalByKey),
}

/// Parses a signal.
pub(crate) fn signal(mut signal: v1::SignalRequest) -> Parsed<Signal> {
    let (by_key, start) = (signal.by_key.take(), signal.start.take());
    let Some(v1::RunKey { workflow, key }) = by_key else {
        if start.is_some() {
            let detail = "start is given without by_key; a run that is named by its id exists";
            return Err(Problem::invalid(detail));
        }
        return said(&signal).parse().map(Signal::Run);
    };
    if signal.run_id > 0 {
        return Err(Problem::invalid("run_id and by_key are both given; keep one"));
    }
    let start = start.as_ref().map(|start| SaidStart {
        workflow: String::new(),
        version: start.version.map(i64::from),
        input: Some(start.input.as_slice()).filter(|input| !input.is_empty()),
        key: None,
        tags: Pairs(start.tags.clone().into_iter().collect()),
    });
    flow::signal_by_key(workflow, &key, said(&signal), start).map(Signal::ByKey)
}

fn said(signal: &v1::SignalRequest) -> SaidSignal<'_> {
    SaidSignal {
        run_id: signal.run_id,
        name: signal.name.clone(),
        payload: Some(signal.payload.as_slice()).filter(|payload| !payload.is_empty()),
        correlation: signal.correlation.clone(),
        signal_id: signal.signal_id.clone(),
    }
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
        key: list.key.as_deref(),
        limit: list.limit.map(|limit| limit as usize),
        cursor: given(&list.cursor),
    }
    .parse()
}

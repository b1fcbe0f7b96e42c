//! Runs, their tokens and history, and signals.

use tenure_api::{
    DecisionPair, Ending, History, NewRun, Page, Parent, Parking, Redecided, Refusal, Run,
    RunFilter, RunRef, RunState, RunStep, Signal, SignalOutcome, SignalStart, SignalWait, Signaled,
    Timestamp, Token, TokenState,
};

use super::{Malformed, all, given, ms, time};
use crate::v1;

/// The run that a message names: by its id, or by its key.
pub fn run_ref(run_id: u64, by_key: Option<v1::RunKey>) -> Result<RunRef, Malformed> {
    match by_key {
        None => Ok(RunRef::Id(run_id)),
        Some(v1::RunKey { workflow, key }) if run_id == 0 => Ok(RunRef::Key { workflow, key }),
        Some(_) => Err(Malformed("run_id and by_key are both given; keep one".to_owned())),
    }
}

/// How a message names a run: its id, zero for none, and its key.
#[must_use]
pub fn wire_ref(run: RunRef) -> (u64, Option<v1::RunKey>) {
    match run {
        RunRef::Id(run_id) => (run_id, None),
        RunRef::Key { workflow, key } => (0, Some(v1::RunKey { workflow, key })),
    }
}

/// The state that a number stands for; `None` for an unspecified one.
pub(super) fn state(number: i32) -> Option<RunState> {
    Some(match v1::RunState::try_from(number) {
        Ok(v1::RunState::Unspecified) => return None,
        Ok(v1::RunState::Running) => RunState::Running,
        Ok(v1::RunState::Waiting) => RunState::Waiting,
        Ok(v1::RunState::Completed) => RunState::Completed,
        Ok(v1::RunState::Failed) => RunState::Failed,
        Ok(v1::RunState::Canceled) => RunState::Canceled,
        Ok(v1::RunState::TimedOut) => RunState::TimedOut,
        Err(_) => RunState::Other(number.to_string()),
    })
}

/// The state of a message that always has one.
fn some_state(number: i32) -> RunState {
    state(number).unwrap_or_else(|| RunState::Other("UNSPECIFIED".to_owned()))
}

impl From<&RunState> for v1::RunState {
    fn from(state: &RunState) -> Self {
        match state {
            RunState::Running => v1::RunState::Running,
            RunState::Waiting => v1::RunState::Waiting,
            RunState::Completed => v1::RunState::Completed,
            RunState::Failed => v1::RunState::Failed,
            RunState::Canceled => v1::RunState::Canceled,
            RunState::TimedOut => v1::RunState::TimedOut,
            _ => v1::RunState::Unspecified,
        }
    }
}

pub(super) fn state_number(state: Option<&RunState>) -> i32 {
    state.map_or(v1::RunState::Unspecified, Into::into).into()
}

impl From<Run> for v1::Run {
    fn from(run: Run) -> Self {
        let Run {
            id,
            workflow,
            version,
            state,
            input,
            context,
            output,
            error,
            started_at,
            finished_at,
            deadline_at,
            parent,
            root,
            ending,
            parked,
            key,
            tags,
            tokens,
            live_tokens,
            kept_signals,
        } = run;
        Self {
            id,
            workflow,
            version,
            state: state_number(Some(&state)),
            input: input.into(),
            context: context.into(),
            output: output.into(),
            error: error.into(),
            started_at: started_at.as_ms(),
            finished_at: ms(finished_at),
            deadline_at: ms(deadline_at),
            parent: parent.map(Into::into),
            key,
            tags,
            tokens,
            live_tokens,
            kept_signals,
            root,
            ending: ending.map(Into::into),
            parked: parked.map(Into::into),
        }
    }
}

impl From<v1::Run> for Run {
    fn from(run: v1::Run) -> Self {
        let v1::Run {
            id,
            workflow,
            version,
            state,
            input,
            context,
            output,
            error,
            started_at,
            finished_at,
            deadline_at,
            parent,
            key,
            tags,
            tokens,
            live_tokens,
            kept_signals,
            root,
            ending,
            parked,
        } = run;
        Self {
            id,
            workflow,
            version,
            state: some_state(state),
            input: input.into(),
            context: context.into(),
            output: output.into(),
            error: error.into(),
            started_at: Timestamp(started_at),
            finished_at: time(finished_at),
            deadline_at: time(deadline_at),
            parent: parent.map(Into::into),
            root,
            ending: ending.map(Into::into),
            parked: parked.map(Into::into),
            key,
            tags,
            tokens,
            live_tokens,
            kept_signals,
        }
    }
}

impl From<Parent> for v1::ParentOfRun {
    fn from(Parent { run_id, token }: Parent) -> Self {
        Self { run_id, token }
    }
}

impl From<v1::ParentOfRun> for Parent {
    fn from(v1::ParentOfRun { run_id, token }: v1::ParentOfRun) -> Self {
        Self { run_id, token }
    }
}

impl From<Ending> for v1::EndingOfRun {
    fn from(Ending { state, error, since }: Ending) -> Self {
        Self { state: state_number(Some(&state)), error: error.into(), since: since.as_ms() }
    }
}

impl From<v1::EndingOfRun> for Ending {
    fn from(v1::EndingOfRun { state, error, since }: v1::EndingOfRun) -> Self {
        Self { state: some_state(state), error: error.into(), since: Timestamp(since) }
    }
}

impl From<Parking> for v1::ParkingOfRun {
    fn from(Parking { reason, at }: Parking) -> Self {
        Self { reason, at: at.as_ms() }
    }
}

impl From<v1::ParkingOfRun> for Parking {
    fn from(v1::ParkingOfRun { reason, at }: v1::ParkingOfRun) -> Self {
        Self { reason, at: Timestamp(at) }
    }
}

/// With the workflow's name.
impl From<(String, NewRun)> for v1::StartRunRequest {
    fn from((workflow, NewRun { input, key, version, tags }): (String, NewRun)) -> Self {
        Self { workflow, version, input: input.into(), key, tags }
    }
}

impl From<v1::StartRunRequest> for (String, NewRun) {
    fn from(start: v1::StartRunRequest) -> Self {
        let v1::StartRunRequest { workflow, version, input, key, tags } = start;
        (workflow, NewRun { input: input.into(), key, version, tags })
    }
}

impl From<NewRun> for v1::BatchRun {
    fn from(NewRun { input, key, version, tags }: NewRun) -> Self {
        Self { version, input: input.into(), key, tags }
    }
}

impl From<v1::BatchRun> for NewRun {
    fn from(v1::BatchRun { version, input, key, tags }: v1::BatchRun) -> Self {
        Self { input: input.into(), key, version, tags }
    }
}

impl From<RunFilter> for v1::ListRunsRequest {
    fn from(RunFilter { workflow, state, tag, key, limit, cursor }: RunFilter) -> Self {
        let (state, cursor) = (state_number(state.as_ref()), cursor.unwrap_or_default());
        Self { workflow, state, tag, limit, cursor, key }
    }
}

impl From<v1::ListRunsRequest> for RunFilter {
    fn from(list: v1::ListRunsRequest) -> Self {
        let v1::ListRunsRequest { workflow, state: number, tag, limit, cursor, key } = list;
        Self { workflow, state: state(number), tag, key, limit, cursor: given(cursor) }
    }
}

impl From<Page<Run>> for v1::ListRunsResponse {
    fn from(Page { items, next_cursor }: Page<Run>) -> Self {
        Self { runs: all(items), next_cursor: next_cursor.unwrap_or_default() }
    }
}

impl From<v1::ListRunsResponse> for Page<Run> {
    fn from(v1::ListRunsResponse { runs, next_cursor }: v1::ListRunsResponse) -> Self {
        Self { items: all(runs), next_cursor: given(next_cursor) }
    }
}

impl From<Token> for v1::Token {
    fn from(token: Token) -> Self {
        let Token {
            id,
            node,
            path,
            parent,
            state,
            via,
            group,
            branch_index,
            branch_total,
            task_id,
            child_run_id,
            signal,
            wakes_at,
            deadline_at,
            error,
        } = token;
        let (signal, correlation) =
            signal.map(|SignalWait { name, correlation }| (name, correlation)).unzip();
        Self {
            id,
            node,
            path,
            parent,
            state: state.as_str().to_owned(),
            via,
            group,
            branch_index,
            branch_total,
            task_id,
            child_run_id,
            signal,
            correlation,
            wakes_at: ms(wakes_at),
            deadline_at: ms(deadline_at),
            error: error.into(),
        }
    }
}

impl From<v1::Token> for Token {
    fn from(token: v1::Token) -> Self {
        let v1::Token {
            id,
            node,
            path,
            parent,
            state,
            via,
            group,
            branch_index,
            branch_total,
            task_id,
            child_run_id,
            signal,
            correlation,
            wakes_at,
            deadline_at,
            error,
        } = token;
        let correlation = correlation.unwrap_or_default();
        Self {
            id,
            node,
            path,
            parent,
            state: TokenState::from(state),
            via,
            group,
            branch_index,
            branch_total,
            task_id,
            child_run_id,
            signal: signal.map(|name| SignalWait { name, correlation }),
            wakes_at: time(wakes_at),
            deadline_at: time(deadline_at),
            error: error.into(),
        }
    }
}

impl From<Page<Token>> for v1::ListTokensResponse {
    fn from(Page { items, next_cursor }: Page<Token>) -> Self {
        Self { tokens: all(items), next_cursor: next_cursor.unwrap_or_default() }
    }
}

impl From<v1::ListTokensResponse> for Page<Token> {
    fn from(v1::ListTokensResponse { tokens, next_cursor }: v1::ListTokensResponse) -> Self {
        Self { items: all(tokens), next_cursor: given(next_cursor) }
    }
}

impl From<RunStep> for v1::RunStep {
    fn from(RunStep { lsn, at, cause, decisions }: RunStep) -> Self {
        Self { lsn, at: at.as_ms(), cause: cause.into(), decisions: all(decisions) }
    }
}

impl From<v1::RunStep> for RunStep {
    fn from(v1::RunStep { lsn, at, cause, decisions }: v1::RunStep) -> Self {
        Self { lsn, at: Timestamp(at), cause: cause.into(), decisions: all(decisions) }
    }
}

impl From<History<RunStep>> for v1::RunHistoryResponse {
    fn from(history: History<RunStep>) -> Self {
        let History { items, next_cursor, truncated_before } = history;
        let next_cursor = next_cursor.unwrap_or_default();
        Self { steps: all(items), truncated_before, next_cursor }
    }
}

impl From<v1::RunHistoryResponse> for History<RunStep> {
    fn from(history: v1::RunHistoryResponse) -> Self {
        let v1::RunHistoryResponse { steps, truncated_before, next_cursor } = history;
        Self { items: all(steps), next_cursor: given(next_cursor), truncated_before }
    }
}

/// With the run, and the signal's name.
impl From<(RunRef, String, Signal)> for v1::SignalRequest {
    fn from((run, name, signal): (RunRef, String, Signal)) -> Self {
        let Signal { payload, correlation, signal_id, start } = signal;
        let (run_id, by_key) = wire_ref(run);
        let start = start.map(Into::into);
        Self { run_id, name, payload: payload.into(), correlation, signal_id, by_key, start }
    }
}

impl TryFrom<v1::SignalRequest> for (RunRef, String, Signal) {
    type Error = Malformed;

    fn try_from(request: v1::SignalRequest) -> Result<Self, Malformed> {
        let v1::SignalRequest { run_id, name, payload, correlation, signal_id, by_key, start } =
            request;
        let start = start.map(Into::into);
        let signal = Signal { payload: payload.into(), correlation, signal_id, start };
        Ok((run_ref(run_id, by_key)?, name, signal))
    }
}

impl From<SignalStart> for v1::SignalStart {
    fn from(SignalStart { input, version, tags }: SignalStart) -> Self {
        Self { input: input.into(), version, tags }
    }
}

impl From<v1::SignalStart> for SignalStart {
    fn from(v1::SignalStart { input, version, tags }: v1::SignalStart) -> Self {
        Self { input: input.into(), version, tags }
    }
}

impl From<Signaled> for v1::SignalResponse {
    fn from(Signaled { run_id, signal, outcome, token, started }: Signaled) -> Self {
        let outcome = match outcome {
            SignalOutcome::Given => v1::SignalOutcome::Given,
            SignalOutcome::Kept => v1::SignalOutcome::Kept,
            SignalOutcome::Known => v1::SignalOutcome::Known,
            _ => v1::SignalOutcome::Unspecified,
        };
        Self { outcome: outcome.into(), token, run_id, started, signal }
    }
}

impl From<v1::SignalResponse> for Signaled {
    fn from(response: v1::SignalResponse) -> Self {
        let v1::SignalResponse { outcome, token, run_id, started, signal } = response;
        let outcome = match v1::SignalOutcome::try_from(outcome) {
            Ok(v1::SignalOutcome::Given) => SignalOutcome::Given,
            Ok(v1::SignalOutcome::Kept) => SignalOutcome::Kept,
            Ok(v1::SignalOutcome::Known) => SignalOutcome::Known,
            Ok(v1::SignalOutcome::Unspecified) | Err(_) => {
                SignalOutcome::Other(outcome.to_string())
            }
        };
        Self { run_id, signal, outcome, token, started }
    }
}

impl From<Redecided> for v1::RedecideResponse {
    fn from(redecided: Redecided) -> Self {
        let Redecided { run_id, lsn, at, same, cause, decisions, refused } = redecided;
        Self {
            lsn,
            at: at.as_ms(),
            same,
            cause: cause.into(),
            decisions: all(decisions),
            refused: refused.map(Into::into),
            run_id,
        }
    }
}

impl From<v1::RedecideResponse> for Redecided {
    fn from(response: v1::RedecideResponse) -> Self {
        let v1::RedecideResponse { lsn, at, same, cause, decisions, refused, run_id } = response;
        Self {
            run_id,
            lsn,
            at: Timestamp(at),
            same,
            cause: cause.into(),
            decisions: all(decisions),
            refused: refused.map(Into::into),
        }
    }
}

impl From<DecisionPair> for v1::RedecidedPair {
    fn from(DecisionPair { same, recorded, decided }: DecisionPair) -> Self {
        Self { same, recorded: recorded.into(), decided: decided.into() }
    }
}

impl From<v1::RedecidedPair> for DecisionPair {
    fn from(v1::RedecidedPair { same, recorded, decided }: v1::RedecidedPair) -> Self {
        Self { same, recorded: recorded.into(), decided: decided.into() }
    }
}

impl From<Refusal> for v1::RedecideRefusal {
    fn from(Refusal { code, detail }: Refusal) -> Self {
        Self { code, detail }
    }
}

impl From<v1::RedecideRefusal> for Refusal {
    fn from(v1::RedecideRefusal { code, detail }: v1::RedecideRefusal) -> Self {
        Self { code, detail }
    }
}

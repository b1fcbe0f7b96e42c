//! Runs as programs see them: the same JSON as over HTTP, field by field; and their states and
//! errors in words.

use std::collections::BTreeMap;

use serde::Serialize;
use tenure_sdk::{
    EndingOfRun, ParkingOfRun, Run, RunHistory, RunStep, SignalOutcome, Signaled, Token,
};

use crate::shown::Verbatim;
use crate::ui::moment::{relative, rfc_3339};
use crate::ui::plain;
use crate::ui::style::{run_state, run_state_name};
use crate::ui::table::Cell;

pub(super) fn state_cell(state: i32) -> Cell {
    Cell::styled(run_state_name(state).unwrap_or("-"), run_state(state))
}

/// An error of a run or a token in a sentence: `CODE at node: message`.
pub(super) fn error_words(error: &[u8]) -> Option<String> {
    let error: serde_json::Value = serde_json::from_slice(error).ok()?;
    let text = |field: &str| error.get(field).and_then(serde_json::Value::as_str);
    let mut words = plain::line(text("code")?);
    if let Some(node) = text("node") {
        words.push_str(&format!(" at {}", plain::line(node)));
    }
    if let Some(message) = text("message") {
        words.push_str(&format!(": {}", plain::line(message)));
    }
    Some(words)
}

/// What a run's state does not say, in words: how it is ending, or why it is parked.
pub(super) fn standing_words(run: &Run, now: u64) -> Option<String> {
    if let Some(ending) = &run.ending {
        let state = run_state_name(ending.state).unwrap_or("-");
        let error = error_words(&ending.error).map(|error| format!(" ({error})"));
        return Some(format!(
            "ending as {state}{} since {}: {} tokens left",
            error.unwrap_or_default(),
            since(ending.since, now),
            grouped(run.live_tokens.into())
        ));
    }
    let parked = run.parked.as_ref()?;
    Some(format!(
        "PARKED since {}: {}; cancel it or `tenure run unpark {}`",
        since(parked.at, now),
        plain::line(&parked.reason),
        run.id
    ))
}

/// What a run's state does not say, in a few words for a list.
pub(super) fn standing_brief(run: &Run) -> Option<String> {
    if let Some(ending) = &run.ending {
        return Some(format!("ending as {}", run_state_name(ending.state).unwrap_or("-")));
    }
    run.parked.as_ref().map(|parked| format!("PARKED: {}", plain::line(&parked.reason)))
}

/// A moment with how long ago it was.
fn since(at: u64, now: u64) -> String {
    format!("{} ({})", rfc_3339(at), relative(at, now))
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A run.
#[derive(Debug, Serialize)]
pub(super) struct ShownRun<'a> {
    id: u64,
    workflow: &'a str,
    version: u32,
    state: Option<&'static str>,
    input: Verbatim<'a>,
    context: Verbatim<'a>,
    output: Verbatim<'a>,
    error: Verbatim<'a>,
    started_at: String,
    finished_at: Option<String>,
    deadline_at: Option<String>,
    parent: Option<ShownParent>,
    root: u64,
    ending: Option<ShownEnding<'a>>,
    parked: Option<ShownParking<'a>>,
    key: Option<&'a str>,
    tags: &'a BTreeMap<String, String>,
    tokens: u64,
    live_tokens: u32,
    kept_signals: u64,
}

/// Who waits for a run.
#[derive(Debug, Serialize)]
struct ShownParent {
    run_id: u64,
    token: u32,
}

/// How a run ends whose end is decided and not yet complete.
#[derive(Debug, Serialize)]
struct ShownEnding<'a> {
    state: Option<&'static str>,
    error: Verbatim<'a>,
    since: String,
}

impl<'a> ShownEnding<'a> {
    fn of(ending: &'a EndingOfRun) -> Self {
        let state = run_state_name(ending.state);
        Self { state, error: Verbatim(&ending.error), since: rfc_3339(ending.since) }
    }
}

/// Why a run is parked.
#[derive(Debug, Serialize)]
struct ShownParking<'a> {
    reason: &'a str,
    at: String,
}

impl<'a> ShownParking<'a> {
    fn of(parked: &'a ParkingOfRun) -> Self {
        Self { reason: &parked.reason, at: rfc_3339(parked.at) }
    }
}

impl<'a> ShownRun<'a> {
    pub(super) fn of(run: &'a Run) -> Self {
        let parent = run.parent.as_ref();
        Self {
            id: run.id,
            workflow: &run.workflow,
            version: run.version,
            state: run_state_name(run.state),
            input: Verbatim(&run.input),
            context: Verbatim(&run.context),
            output: Verbatim(&run.output),
            error: Verbatim(&run.error),
            started_at: rfc_3339(run.started_at),
            finished_at: run.finished_at.map(rfc_3339),
            deadline_at: run.deadline_at.map(rfc_3339),
            parent: parent.map(|it| ShownParent { run_id: it.run_id, token: it.token }),
            root: run.root,
            ending: run.ending.as_ref().map(ShownEnding::of),
            parked: run.parked.as_ref().map(ShownParking::of),
            key: run.key.as_deref(),
            tags: &run.tags,
            tokens: run.tokens,
            live_tokens: run.live_tokens,
            kept_signals: run.kept_signals,
        }
    }
}

/// A token.
#[derive(Debug, Serialize)]
pub(super) struct ShownToken<'a> {
    id: u32,
    node: &'a str,
    path: &'a str,
    parent: Option<u32>,
    state: &'a str,
    via: Option<&'a str>,
    group: Option<u32>,
    branch_index: Option<u32>,
    branch_total: Option<u32>,
    task_id: Option<u64>,
    child_run_id: Option<u64>,
    signal: Option<ShownWait<'a>>,
    wakes_at: Option<String>,
    deadline_at: Option<String>,
    error: Verbatim<'a>,
}

/// What a token waits for.
#[derive(Debug, Serialize)]
struct ShownWait<'a> {
    name: &'a str,
    correlation: &'a str,
}

impl<'a> ShownToken<'a> {
    pub(super) fn of(token: &'a Token) -> Self {
        let correlation = token.correlation.as_deref().unwrap_or_default();
        Self {
            id: token.id,
            node: &token.node,
            path: &token.path,
            parent: token.parent,
            state: &token.state,
            via: token.via.as_deref(),
            group: token.group,
            branch_index: token.branch_index,
            branch_total: token.branch_total,
            task_id: token.task_id,
            child_run_id: token.child_run_id,
            signal: token.signal.as_deref().map(|name| ShownWait { name, correlation }),
            wakes_at: token.wakes_at.map(rfc_3339),
            deadline_at: token.deadline_at.map(rfc_3339),
            error: Verbatim(&token.error),
        }
    }
}

/// What was decided about a run.
#[derive(Debug, Serialize)]
pub(super) struct ShownRunHistory<'a> {
    items: Vec<ShownRunStep<'a>>,
    /// The pages are put together, so there is none to go on with.
    next_cursor: Option<&'static str>,
    truncated_before: Option<u64>,
}

/// What one record did to a run.
#[derive(Debug, Serialize)]
struct ShownRunStep<'a> {
    lsn: u64,
    at: String,
    cause: Verbatim<'a>,
    decisions: Vec<Verbatim<'a>>,
}

impl<'a> ShownRunHistory<'a> {
    pub(super) fn of(history: &'a RunHistory) -> Self {
        let step = |step: &'a RunStep| ShownRunStep {
            lsn: step.lsn,
            at: rfc_3339(step.at),
            cause: Verbatim(&step.cause),
            decisions: step.decisions.iter().map(|decision| Verbatim(decision)).collect(),
        };
        Self {
            items: history.steps.iter().map(step).collect(),
            next_cursor: None,
            truncated_before: history.truncated_before,
        }
    }
}

/// What became of a signal.
#[derive(Debug, Serialize)]
pub(super) struct ShownSignal<'a> {
    run_id: u64,
    signal: &'a str,
    outcome: Option<&'static str>,
    token: Option<u32>,
}

impl<'a> ShownSignal<'a> {
    pub(super) fn of(run_id: u64, signal: &'a str, signaled: &Signaled) -> Self {
        let outcome = match signaled.outcome() {
            SignalOutcome::Unspecified => None,
            SignalOutcome::Given => Some("given"),
            SignalOutcome::Kept => Some("kept"),
            SignalOutcome::Known => Some("known"),
        };
        Self { run_id, signal, outcome, token: signaled.token }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_read_in_groups_of_three() {
        let shown: Vec<_> = [0, 999, 1_000, 48_000, 4_000_000].map(grouped).into();
        assert_eq!(shown, ["0", "999", "1,000", "48,000", "4,000,000"]);
    }

    #[test]
    fn a_run_that_is_ending_says_how_and_how_much_is_left() {
        let error = br#"{"code": "RUN_TIMEOUT", "message": "60 s are over"}"#.to_vec();
        let state = tenure_sdk::RunState::TimedOut.into();
        let ending = Some(EndingOfRun { state, error, since: 1_794_782_400_500 });
        let run = Run { id: 7, live_tokens: 48_000, ending, ..Run::default() };
        let words = "ending as TIMED_OUT (RUN_TIMEOUT: 60 s are over) since \
                     2026-11-15T22:40:00.500Z (3s ago): 48,000 tokens left";
        assert_eq!(standing_words(&run, 1_794_782_403_500).unwrap(), words);
        assert_eq!(standing_brief(&run).unwrap(), "ending as TIMED_OUT");
        assert_eq!(standing_words(&Run::default(), 0), None);
    }
}

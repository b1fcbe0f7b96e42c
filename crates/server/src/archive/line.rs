//! A finished task or run as one line: what the HTTP API shows of it, and its history.

use serde::Serialize;
use tenure_coordinator::{History, RunHistory, RunInfo, TaskInfo};

use crate::wire::run_shown::{ShownRun, ShownRunStep};
use crate::wire::shown::{ShownStep, ShownTask};

#[derive(Serialize)]
struct Line<'a, T, S> {
    #[serde(flatten)]
    shown: T,
    /// The last record of its history. Of several lines about one task, the one with the largest
    /// counts.
    last_lsn: u64,
    archived_at: &'a str,
    history: Past<S>,
}

/// As `/history` shows it.
#[derive(Serialize)]
struct Past<S> {
    items: Vec<S>,
    truncated_before: Option<u64>,
}

/// A task.
pub(super) fn of_task(task: &TaskInfo, history: &History, archived_at: &str) -> Vec<u8> {
    let history = Past {
        items: history.steps.iter().map(ShownStep::of).collect(),
        truncated_before: history.truncated_before.map(|lsn| lsn.0),
    };
    let (shown, last_lsn) = (ShownTask::of(task), task.last_lsn.0);
    one_line(&Line { shown, last_lsn, archived_at, history })
}

/// A run.
pub(super) fn of_run(run: &RunInfo, history: &RunHistory, archived_at: &str) -> Vec<u8> {
    let history = Past {
        items: history.steps.iter().map(ShownRunStep::of).collect(),
        truncated_before: history.truncated_before.map(|lsn| lsn.0),
    };
    let (shown, last_lsn) = (ShownRun::of(run), run.last_lsn.0);
    one_line(&Line { shown, last_lsn, archived_at, history })
}

/// A payload is shown as it came, and may have been written over several lines. Inside of a text a
/// line break is escaped; so any that is left stands between tokens, where a blank means the same.
fn one_line(shown: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(shown).expect("what is shown has texts for keys");
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Verbatim;

    #[test]
    fn a_payload_of_several_lines_is_one_line() {
        let payload: &[u8] = b"{\n  \"a\": \"x\\ny\",\r\n  \"b\": 1.50\n}";
        let line = one_line(&Verbatim(payload.into()));
        assert_eq!(line, b"{   \"a\": \"x\\ny\",    \"b\": 1.50 }");
    }
}

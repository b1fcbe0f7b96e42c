//! A finished task or run as one line: what the HTTP API shows of it, and its history.

use serde::Serialize;
use tenure_api::{Archived, Timestamp};
use tenure_coordinator::{History, RunHistory, RunInfo, TaskInfo};

use crate::show;

/// A task.
pub(super) fn of_task(task: &TaskInfo, history: &History, archived_at: Timestamp) -> Vec<u8> {
    one_line(&Archived {
        item: show::task::task(task),
        last_lsn: task.last_lsn.0,
        archived_at,
        history: show::task::history(&history.steps, None, history).into(),
    })
}

/// A run.
pub(super) fn of_run(run: &RunInfo, history: &RunHistory, archived_at: Timestamp) -> Vec<u8> {
    one_line(&Archived {
        item: show::run::run(run),
        last_lsn: run.last_lsn.0,
        archived_at,
        history: show::run::history(&history.steps, None, history).into(),
    })
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

    #[test]
    fn a_payload_of_several_lines_is_one_line() {
        let payload: &[u8] = b"{\n  \"a\": \"x\\ny\",\r\n  \"b\": 1.50\n}";
        let line = one_line(&tenure_api::Payload::from(payload.to_vec()));
        assert_eq!(line, b"{   \"a\": \"x\\ny\",    \"b\": 1.50 }");
    }
}

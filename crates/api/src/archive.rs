//! Lines of the archive: ended tasks and runs with their history.

use serde::{Deserialize, Serialize};

use crate::{History, Run, RunStep, Task, TaskStep, Timestamp};

/// An ended task with its history, as the archive keeps it: one line of JSON.
pub type ArchivedTask = Archived<Task, TaskStep>;
/// An ended run with its history, as the archive keeps it: one line of JSON.
pub type ArchivedRun = Archived<Run, RunStep>;

/// An ended task or run with its history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Archived<T, S> {
    /// The task or the run; its fields are those of the line.
    #[serde(flatten)]
    pub item: T,
    /// The LSN of the last record of the history. Of several lines about one item, the one with the
    /// largest LSN counts.
    pub last_lsn: u64,
    /// When the line was written.
    pub archived_at: Timestamp,
    /// The history.
    pub history: ArchivedHistory<S>,
}

/// The whole history of an ended task or run, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedHistory<S> {
    /// The steps.
    pub items: Vec<S>,
    /// Steps before this LSN were no longer in the log; `None` if the history is complete.
    pub truncated_before: Option<u64>,
}

impl<S> From<History<S>> for ArchivedHistory<S> {
    fn from(History { items, next_cursor: _, truncated_before }: History<S>) -> Self {
        Self { items, truncated_before }
    }
}

impl<'l, T: Deserialize<'l>, S: Deserialize<'l>> Archived<T, S> {
    /// Reads a line.
    pub fn parse(line: &'l str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Frame<S> {
            last_lsn: u64,
            archived_at: Timestamp,
            history: ArchivedHistory<S>,
        }
        // The line is read twice, because serde cannot keep the text of a payload in a flattened
        // struct.
        let Frame { last_lsn, archived_at, history } = serde_json::from_str(line)?;
        Ok(Self { item: serde_json::from_str(line)?, last_lsn, archived_at, history })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_back_whole() {
        let item =
            Task { payload: "{\"a\":  1.50}".into(), output: "\u{1}".into(), ..Task::default() };
        let history = ArchivedHistory { items: vec![TaskStep::default()], truncated_before: None };
        let (last_lsn, archived_at) = (7, Timestamp(9));
        let line = ArchivedTask { item, last_lsn, archived_at, history };
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.starts_with("{\"id\":0,") && text.contains("\"last_lsn\":7"), "{text}");
        assert_eq!(ArchivedTask::parse(&text).unwrap(), line);
    }
}

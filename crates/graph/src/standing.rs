//! The states of tokens as they are drawn: a sign, a word and colors for each.

use serde::Serialize;

/// The state of a token; the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The token ended with an error.
    Failed,
    /// The deadline of the token passed.
    TimedOut,
    /// A worker executes the task.
    Executing,
    /// The task waits for a worker.
    Dispatched,
    /// The token has not begun.
    Pending,
    /// The token waits for a signal.
    #[serde(rename = "waiting_for_signal")]
    WaitsForSignal,
    /// The token waits for its moment.
    #[serde(rename = "waiting_for_timer")]
    WaitsForTimer,
    /// The token waits for a child run.
    #[serde(rename = "waiting_for_workflow")]
    WaitsForWorkflow,
    /// The token waits for the other branches.
    #[serde(rename = "waiting_for_siblings")]
    WaitsForSiblings,
    /// The token is done.
    Completed,
    /// The token was canceled.
    Canceled,
    /// The state is unknown to this version.
    #[serde(rename = "unknown")]
    Other,
}

impl Standing {
    /// Reads the state's name in the API.
    #[must_use]
    pub fn of(state: &str) -> Self {
        match state {
            "failed" => Standing::Failed,
            "timed_out" => Standing::TimedOut,
            "executing" => Standing::Executing,
            "dispatched" => Standing::Dispatched,
            "pending" => Standing::Pending,
            "waiting_for_signal" => Standing::WaitsForSignal,
            "waiting_for_timer" => Standing::WaitsForTimer,
            "waiting_for_workflow" => Standing::WaitsForWorkflow,
            "waiting_for_siblings" => Standing::WaitsForSiblings,
            "completed" => Standing::Completed,
            "canceled" => Standing::Canceled,
            _ => Standing::Other,
        }
    }

    /// The state as people read it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Standing::Failed => "failed",
            Standing::TimedOut => "timed out",
            Standing::Executing => "executing",
            Standing::Dispatched => "waits for a worker",
            Standing::Pending => "pending",
            Standing::WaitsForSignal => "waits for a signal",
            Standing::WaitsForTimer => "waits for its time",
            Standing::WaitsForWorkflow => "waits for its child",
            Standing::WaitsForSiblings => "waits for siblings",
            Standing::Completed => "completed",
            Standing::Canceled => "canceled",
            Standing::Other => "unknown",
        }
    }

    /// The sign before a node.
    #[must_use]
    pub fn sign(self) -> char {
        match self {
            Standing::Failed | Standing::TimedOut => '✗',
            Standing::Executing => '▶',
            Standing::Dispatched | Standing::Pending => '▷',
            Standing::WaitsForSignal
            | Standing::WaitsForTimer
            | Standing::WaitsForWorkflow
            | Standing::WaitsForSiblings => '◔',
            Standing::Completed => '✓',
            Standing::Canceled => '⊘',
            Standing::Other => '?',
        }
    }

    /// Whether the state is final.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(
            self,
            Standing::Failed | Standing::TimedOut | Standing::Completed | Standing::Canceled
        )
    }

    /// Whether the token ended with an error.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Standing::Failed | Standing::TimedOut)
    }

    /// In a picture: the line, and what is inside of it.
    pub(crate) fn colors(self) -> Colors {
        match self {
            Standing::Failed | Standing::TimedOut => Colors { line: "#c0362c", fill: "#fdecea" },
            Standing::Executing => Colors { line: "#0e7490", fill: "#e3f6fa" },
            Standing::Dispatched
            | Standing::Pending
            | Standing::WaitsForSignal
            | Standing::WaitsForTimer
            | Standing::WaitsForWorkflow
            | Standing::WaitsForSiblings => Colors { line: "#b7791f", fill: "#fdf4e1" },
            Standing::Completed => Colors { line: "#2f855a", fill: "#e9f6ef" },
            Standing::Canceled => Colors { line: "#7c5a96", fill: "#f3eef7" },
            Standing::Other => IDLE,
        }
    }
}

/// Two colors that go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colors {
    pub(crate) line: &'static str,
    pub(crate) fill: &'static str,
}

/// Of a node where nothing is.
pub(crate) const IDLE: Colors = Colors { line: "#b6bec9", fill: "#ffffff" };

//! How a token stands, as it is drawn: a sign, a word and a color for each of its states.

use anstyle::{AnsiColor, Style};

/// How a token stands; the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    Failed,
    TimedOut,
    Executing,
    Dispatched,
    Pending,
    WaitsForSignal,
    WaitsForTimer,
    WaitsForWorkflow,
    WaitsForSiblings,
    Completed,
    Canceled,
    /// One that this version does not know.
    Other,
}

impl Standing {
    /// By the state's name in the API.
    pub(crate) fn of(state: &str) -> Self {
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

    /// As people read it.
    pub(crate) fn word(self) -> &'static str {
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

    pub(crate) fn sign(self) -> char {
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

    /// Whether nothing will happen to it any more.
    pub(crate) fn is_over(self) -> bool {
        matches!(
            self,
            Standing::Failed | Standing::TimedOut | Standing::Completed | Standing::Canceled
        )
    }

    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Standing::Failed | Standing::TimedOut)
    }

    /// On a terminal.
    pub(crate) fn style(self) -> Style {
        let color = match self {
            Standing::Failed | Standing::TimedOut => AnsiColor::Red,
            Standing::Executing => AnsiColor::Cyan,
            Standing::Dispatched
            | Standing::Pending
            | Standing::WaitsForSignal
            | Standing::WaitsForTimer
            | Standing::WaitsForWorkflow
            | Standing::WaitsForSiblings => AnsiColor::Yellow,
            Standing::Completed => AnsiColor::Green,
            Standing::Canceled => AnsiColor::Magenta,
            Standing::Other => return Style::new(),
        };
        Style::new().fg_color(Some(color.into()))
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

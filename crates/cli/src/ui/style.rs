//! Colors: only for people, only on a terminal, and not where `NO_COLOR` is set.

use std::io::{self, IsTerminal};

use anstyle::{AnsiColor, Style};
use tenure_graph::Standing;
use tenure_graph::text::Tone;
use tenure_sdk::{RunState, TaskState};

/// Whether colors are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Colors,
    Plain,
}

impl Paint {
    /// As standard output and the environment want it.
    pub(crate) fn of_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match io::stdout().is_terminal() && !unwanted && !is_dumb {
            true => Paint::Colors,
            false => Paint::Plain,
        }
    }

    /// Text in a style.
    pub(crate) fn draw(self, style: Style, text: &str) -> String {
        match self {
            Paint::Colors if style != Style::new() => format!("{style}{text}{style:#}"),
            Paint::Colors | Paint::Plain => text.to_owned(),
        }
    }
}

/// The columns of the terminal that standard output is; none if it is no terminal.
pub(crate) fn terminal_columns() -> Option<usize> {
    let (columns, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(columns.0))
}

/// What heads a table, and what names a fact.
pub(crate) fn heading() -> Style {
    Style::new().bold()
}

/// What matters less.
pub(crate) fn faint() -> Style {
    Style::new().dimmed()
}

/// The style of a piece of a graph.
pub(crate) fn tone(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Heading => heading(),
        Tone::Faint => faint(),
        Tone::Standing(state) => standing(state),
    }
}

/// The style of a token's state.
pub(crate) fn standing(standing: Standing) -> Style {
    let color = match standing {
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

/// What was and is not, and what was not and is; `=` is neither.
pub(crate) fn difference(mark: char) -> Style {
    match mark {
        '-' => Style::new().fg_color(Some(AnsiColor::Red.into())),
        '+' => Style::new().fg_color(Some(AnsiColor::Green.into())),
        _ => Style::new(),
    }
}

/// How a task's state is drawn.
pub(crate) fn state(state: &TaskState) -> Style {
    let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
    match state {
        TaskState::Waiting => color(AnsiColor::Yellow),
        TaskState::Leased => color(AnsiColor::Cyan),
        TaskState::Completed => color(AnsiColor::Green),
        TaskState::Failed | TaskState::Dead => color(AnsiColor::Red),
        TaskState::Canceled => color(AnsiColor::Magenta),
        TaskState::Other(_) | _ => Style::new(),
    }
}

/// How a run's state is drawn.
pub(crate) fn run_state(state: &RunState) -> Style {
    let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
    match state {
        RunState::Waiting => color(AnsiColor::Yellow),
        RunState::Running => color(AnsiColor::Cyan),
        RunState::Completed => color(AnsiColor::Green),
        RunState::Failed | RunState::TimedOut => color(AnsiColor::Red),
        RunState::Canceled => color(AnsiColor::Magenta),
        RunState::Other(_) | _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_plain() {
        let red = state(&TaskState::Dead);
        assert_eq!(Paint::Plain.draw(red, "DEAD"), "DEAD");
        assert_eq!(Paint::Colors.draw(red, "DEAD"), "\u{1b}[31mDEAD\u{1b}[0m");
        assert_eq!(Paint::Colors.draw(Style::new(), "x"), "x");
    }
}

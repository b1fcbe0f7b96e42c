//! Tables for people: as wide as the terminal and no wider, one line for each row.

use anstyle::Style;
use tenure_sdk::{RunState, TaskState};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::ui::output::Lines;
use crate::ui::plain;
use crate::ui::style::{self, Paint};

const GAP: &str = "  ";
/// A column that gives way is not cut below this.
const SHRUNK_COLUMNS_MIN: usize = 8;
const CUT: char = '…';
/// Stands where there is nothing.
const NOTHING: &str = "-";

/// One column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Numbers, at the right side of their column.
    Number,
    /// Short words, which are not cut before there is no other way.
    Word,
    /// Text of any length, which gives way.
    Text,
}

impl Column {
    pub(crate) const fn number(name: &'static str) -> Self {
        Self { name, kind: Kind::Number }
    }

    pub(crate) const fn word(name: &'static str) -> Self {
        Self { name, kind: Kind::Word }
    }

    pub(crate) const fn text(name: &'static str) -> Self {
        Self { name, kind: Kind::Text }
    }
}

/// What stands in one place of a table.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A task's state in its color.
    pub(crate) fn state(state: &TaskState) -> Self {
        Self::styled(state.as_str(), style::state(state))
    }

    /// A run's state in its color.
    pub(crate) fn run_state(state: &RunState) -> Self {
        Self::styled(state.as_str(), style::run_state(state))
    }

    /// Text in a style.
    pub(crate) fn styled(text: &str, style: Style) -> Self {
        Self { text: plain::line(text), style }
    }

    /// Something that may not be there.
    pub(crate) fn maybe(text: Option<impl ToString>) -> Self {
        text.map_or_else(|| NOTHING.into(), |text| text.to_string().into())
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: plain::line(&text.into()), style: Style::new() }
    }
}

/// Rows under a heading.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(cells.into());
    }

    /// Prints all of it, or what there is instead of rows.
    pub(crate) fn print(&self, out: &mut Lines, instead: &str) {
        if self.rows.is_empty() {
            out.print(instead);
            return;
        }
        for line in self.render(style::terminal_columns(), Paint::of_stdout()) {
            out.print(line);
        }
    }

    fn render(&self, fit: Option<usize>, paint: Paint) -> Vec<String> {
        if fit.is_some_and(|fit| total(&self.widths(None)) > fit) && self.has_idle_columns() {
            return self.without_idle_columns().render(fit, paint);
        }
        let widths = self.widths(fit);
        let heading =
            |column: &Column| Cell { text: column.name.to_owned(), style: style::heading() };
        let heading: Vec<_> = self.columns.iter().map(heading).collect();
        let rows = std::iter::once(&heading).chain(&self.rows);
        rows.map(|row| self.line(row, &widths, paint)).collect()
    }

    /// Whether a column says nothing in any row.
    fn has_idle_columns(&self) -> bool {
        (0..self.columns.len()).any(|at| self.is_idle(at))
    }

    fn is_idle(&self, at: usize) -> bool {
        !self.rows.is_empty()
            && self.rows.iter().all(|row| row.get(at).is_none_or(|cell| cell.text == NOTHING))
    }

    /// The same without those columns, so that the others have their room.
    fn without_idle_columns(&self) -> Self {
        fn busy<T: Clone>(table: &Table, items: &[T]) -> Vec<T> {
            let items = items.iter().enumerate().filter(|(at, _)| !table.is_idle(*at));
            items.map(|(_, item)| item.clone()).collect()
        }
        let rows = self.rows.iter().map(|row| busy(self, row)).collect();
        Self { columns: busy(self, &self.columns), rows }
    }

    fn line(&self, row: &[Cell], widths: &[usize], paint: Paint) -> String {
        let mut line = String::new();
        let mut blanks = 0;
        for ((cell, width), column) in row.iter().zip(widths).zip(&self.columns) {
            let text = cut(&cell.text, *width);
            let free = width - text.width().min(*width);
            let (before, after) = if column.kind == Kind::Number { (free, 0) } else { (0, free) };
            // Blanks are held back until something follows: no line ends in them.
            line.extend(std::iter::repeat_n(' ', blanks + before));
            line.push_str(&paint.draw(cell.style, &text));
            blanks = after + GAP.len();
        }
        line
    }

    /// How wide each column is; those that have no room at all are left out.
    fn widths(&self, fit: Option<usize>) -> Vec<usize> {
        let widest = |at: usize, column: &Column| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.map(|cell| cell.text.width()).max().unwrap_or(0).max(column.name.width())
        };
        let mut widths: Vec<_> =
            self.columns.iter().enumerate().map(|(at, column)| widest(at, column)).collect();
        let Some(fit) = fit else { return widths };
        while total(&widths) > fit {
            let texts = self.columns.iter().zip(&mut widths);
            let texts = texts.filter(|(column, _)| column.kind == Kind::Text);
            match texts.map(|(_, width)| width).max_by_key(|width| **width) {
                Some(width) if *width > SHRUNK_COLUMNS_MIN => *width -= 1,
                _ => break,
            }
        }
        while total(&widths) > fit {
            let over = total(&widths) - fit;
            match widths.last_mut() {
                Some(last) if *last > over => *last -= over,
                Some(_) => drop(widths.pop()),
                None => break,
            }
        }
        widths
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// So much of a text as has room, with a mark where something is missing.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let mut kept = String::new();
    for c in text.chars() {
        match room.checked_sub(c.width().unwrap_or(0)) {
            Some(left) => room = left,
            None => break,
        }
        kept.push(c);
    }
    if width > 0 {
        kept.push(CUT);
    }
    kept
}

/// Facts about one thing, each on a line under its name. What somebody asked to see is not cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(Vec<(&'static str, Cell)>);

impl Facts {
    pub(crate) fn add(&mut self, name: &'static str, value: impl Into<Cell>) {
        self.0.push((name, value.into()));
    }

    /// Adds it only if it is there.
    pub(crate) fn add_some(&mut self, name: &'static str, value: Option<impl Into<Cell>>) {
        self.0.extend(value.map(|value| (name, value.into())));
    }

    pub(crate) fn print(&self, out: &mut Lines) {
        for line in self.render(Paint::of_stdout()) {
            out.print(line);
        }
    }

    fn render(&self, paint: Paint) -> Vec<String> {
        let width = self.0.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
        let line = |(name, cell): &(&str, Cell)| {
            let name = paint.draw(style::faint(), &format!("{name:<width$}"));
            format!("{name}{GAP}{}", paint.draw(cell.style, &cell.text))
        };
        self.0.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests;

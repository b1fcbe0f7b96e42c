//! How far a batch is, for somebody who sits in front of it: a bar on stderr, and nothing at all if
//! that is no terminal.

use indicatif::{ProgressBar, ProgressStyle};

const KNOWN: &str = "{bar:30} {percent:>3}%  {msg}  {elapsed}, {eta} to go";
const UNKNOWN: &str = "{spinner} {msg}  {elapsed}";

pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Of so many bytes, if that is known.
    pub(super) fn new(bytes: Option<u64>) -> Self {
        let (bar, template) = match bytes {
            Some(bytes) => (ProgressBar::new(bytes), KNOWN),
            None => (ProgressBar::new_spinner(), UNKNOWN),
        };
        let style = ProgressStyle::with_template(template);
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    pub(super) fn tell(&self, read_bytes: u64, tasks: u64) {
        self.0.set_position(read_bytes);
        self.0.set_message(format!("{tasks} tasks"));
    }

    /// Prints something without disturbing the bar.
    pub(super) fn aside(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    /// Wipes the bar out.
    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}

//! How far a copy is, for somebody who sits in front of it: a bar on stderr, and nothing at all if
//! that is no terminal.

use indicatif::{ProgressBar, ProgressStyle};

const TEMPLATE: &str =
    "{bar:30} {percent:>3}%  {bytes} of {total_bytes}  {bytes_per_sec}, {eta} to go";

/// A bar that is wiped out at the end.
pub(crate) struct Copying(ProgressBar);

impl Copying {
    /// Of so many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let style = ProgressStyle::with_template(TEMPLATE);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(bytes).with_style(style))
    }

    pub(crate) fn tell(&self, bytes: u64) {
        self.0.set_position(bytes);
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

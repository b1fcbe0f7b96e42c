//! How far a long reading is, for somebody who sits in front of it.

use std::io::{self, IsTerminal, Write};

/// A line is written after so many records: a few times a second.
const EVERY_RECORDS: u64 = 1 << 18;

/// One line on stderr that is written over again and again; nothing at all if that is no terminal.
pub(super) struct Progress {
    is_watched: bool,
    next: u64,
    width: usize,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { is_watched: io::stderr().is_terminal(), next: EVERY_RECORDS, width: 0 }
    }

    pub(super) fn tell(&mut self, records: u64, file: &str) {
        if !self.is_watched || records < self.next {
            return;
        }
        self.next = records + EVERY_RECORDS;
        let line = format!("{records} records are sound so far, now in {file}");
        self.write(&line);
        self.width = line.len();
    }

    /// Wipes the line out.
    pub(super) fn end(&mut self) {
        if self.width > 0 {
            self.write(&" ".repeat(self.width));
            self.write("");
            self.width = 0;
        }
    }

    fn write(&self, line: &str) {
        let mut stderr = io::stderr();
        // Nobody is worse off if it cannot be shown.
        let _ = write!(stderr, "\r{line}").and_then(|()| stderr.flush());
    }
}

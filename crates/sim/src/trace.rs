//! One number for everything that happened, and, if somebody wants to read along, the lines.

use std::fmt::{self, Write};

/// Everything that happened so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace {
    hash: u64,
    pub(crate) events: u64,
    is_loud: bool,
}

impl Trace {
    pub(crate) fn new(is_loud: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, events: 0, is_loud }
    }

    /// Something happened at a moment of virtual time.
    pub(crate) fn note(&mut self, now: u64, what: fmt::Arguments<'_>) {
        self.events += 1;
        if self.is_loud {
            eprintln!("{now:>8} {what}");
        }
        let _ = writeln!(self, "{now} {what}");
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }
}

impl Write for Trace {
    /// FNV-1a.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

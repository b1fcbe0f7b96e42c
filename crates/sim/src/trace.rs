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
        self.note_in_words(now, what, what);
    }

    /// Something happened, of which whoever reads along wants to know more. The number comes from
    /// the few words: many words cost more than what they tell of.
    pub(crate) fn note_in_words(
        &mut self,
        now: u64,
        few: fmt::Arguments<'_>,
        many: fmt::Arguments<'_>,
    ) {
        self.events += 1;
        if self.is_loud {
            eprintln!("{now:>8} {many}");
        }
        let _ = writeln!(self, "{now} {few}");
    }

    /// A record is durable. All that was asked for and accepted is in one.
    pub(crate) fn record(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.config(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.config(u64::from(*byte)));
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// As FNV-1a, and what the multiplication does not reach is folded back.
    fn config(&mut self, word: u64) {
        let mixed = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.hash = mixed ^ (mixed >> 32);
    }
}

impl Write for Trace {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.config(u64::from(byte)));
        Ok(())
    }
}

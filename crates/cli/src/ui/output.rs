//! Printing. Whoever reads our output may stop whenever they like: a closed pipe is the end, not a
//! failure.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::process;

use crate::ui::plain;

/// Our output could not be written, as a log's `Fault` has it.
const EXIT_IO: i32 = 74;

/// Standard output, a line at a time.
pub(crate) struct Lines(BufWriter<StdoutLock<'static>>);

impl Lines {
    pub(crate) fn new() -> Self {
        Self(BufWriter::new(io::stdout().lock()))
    }

    /// Prints a line. Does not return if nobody can read it.
    pub(crate) fn print(&mut self, line: impl Display) {
        writeln!(self.0, "{line}").unwrap_or_else(|error| end(&error));
    }

    /// Prints a part of a line.
    pub(crate) fn part(&mut self, part: impl Display) {
        write!(self.0, "{part}").unwrap_or_else(|error| end(&error));
    }

    /// Hands over what was printed so far.
    pub(crate) fn flush(&mut self) {
        self.0.flush().unwrap_or_else(|error| end(&error));
    }

    /// Hands over what is still held back.
    pub(crate) fn finish(mut self) {
        self.flush();
    }
}

/// Somebody may listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    There,
    Gone,
}

impl Listener {
    /// Prints lines to a listener who is there. One who goes away does not end what is being done.
    pub(crate) fn tell(&mut self, lines: impl IntoIterator<Item = impl Display>) {
        if *self == Listener::Gone {
            return;
        }
        let mut out = BufWriter::new(io::stdout().lock());
        let told = lines.into_iter().try_for_each(|line| writeln!(out, "{line}"));
        match told.and_then(|()| out.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // What it still holds is for nobody.
                let _ = out.into_parts();
                *self = Listener::Gone;
            }
            Err(error) => end(&error),
        }
    }
}

/// Says on stderr what went wrong.
pub(crate) fn complain(sentence: &impl Display) {
    // Not `eprintln!`, which panics when stderr is closed.
    let sentence = plain::lines(&sentence.to_string());
    let _ = writeln!(io::stderr(), "tenure: {sentence}");
}

/// Says on stdout how something went. Nobody need listen.
pub(crate) fn say(sentence: &str) {
    let _ = writeln!(io::stdout(), "{sentence}");
}

fn end(error: &io::Error) -> ! {
    if error.kind() == io::ErrorKind::BrokenPipe {
        process::exit(0);
    }
    complain(&format!(
        "cannot write the output: {error}; make room where it goes and run it again"
    ));
    process::exit(EXIT_IO);
}

//! The form of a story: blocks of commands and what they are expected to do.

mod command;
mod print;
mod run;
mod story;
mod words;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::story::Story;

const DASHES: &str = "----";

/// A place where a story does not go as it is told.
pub(crate) enum Failure {
    /// Something else happened than the story says.
    Otherwise { place: String, difference: String },
    /// The story cannot be played, or a law was broken.
    Fault { place: String, sentence: String },
}

impl Failure {
    pub(crate) fn fault(name: &str, line: usize, sentence: &str) -> Self {
        Failure::Fault { place: format!("{name}:{line}"), sentence: sentence.to_owned() }
    }

    pub(crate) fn is_fault(&self) -> bool {
        matches!(self, Failure::Fault { .. })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Otherwise { place, difference } => {
                write!(f, "{place}: expected (-), happened (+)\n{difference}")
            }
            Failure::Fault { place, sentence } => write!(f, "{place}: {sentence}"),
        }
    }
}

/// Plays a story. Gives back its text with what happened, and where that is not what it told.
pub(crate) fn play(name: &str, told: &str) -> (String, Vec<Failure>) {
    let mut failures = Vec::new();
    let mut happened = String::new();
    if !told.starts_with("# ") {
        failures.push(Failure::fault(name, 1, "begin with `# ` and the law that this story tells"));
    }
    let mut story = Story::new();
    let mut lines = told.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        happened.push_str(line);
        happened.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut output = String::new();
        let mut run = |at: usize, line: &str, output: &mut String| {
            let played = catch_unwind(AssertUnwindSafe(|| story.play(line, output)));
            let played = played.unwrap_or_else(|panic| Err(said(panic.as_ref())));
            played.err().map(|sentence| Failure::fault(name, at + 1, &sentence))
        };
        // Lines that begin with `|` belong to the command before them.
        let mut whole = line.to_owned();
        while let Some((_, more)) = lines.next_if(|(_, line)| line.starts_with('|')) {
            happened.push_str(more);
            happened.push('\n');
            whole.push('\n');
            whole.push_str(more[1..].strip_prefix(' ').unwrap_or(&more[1..]));
        }
        let mut fault = run(at, &whole, &mut output);
        while let Some((at, line)) = lines.next_if(|(_, line)| !line.is_empty() && *line != DASHES)
        {
            happened.push_str(line);
            happened.push('\n');
            if !line.starts_with('#') {
                fault = fault.or_else(|| run(at, line, &mut output));
            }
        }
        happened.push_str(DASHES);
        happened.push('\n');
        let is_told = lines.next_if(|(_, line)| *line == DASHES).is_some();
        let mut expected = String::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
            expected.push_str(line);
            expected.push('\n');
        }
        if let Some(fault) = fault {
            failures.push(fault);
            happened.push_str(&expected);
            // What comes after a fault would be about another state than the story means.
            lines.for_each(|(_, line)| happened.extend([line, "\n"]));
            return (happened, failures);
        }
        if output != expected || !is_told {
            let place = format!("{name}:{}", at + 1);
            failures.push(Failure::Otherwise { place, difference: difference(&expected, &output) });
        }
        happened.push_str(&output);
    }
    if let Err(sentence) = story.verify() {
        failures.push(Failure::fault(name, told.lines().count(), &sentence));
    }
    (happened, failures)
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the rules panicked: {}", text.unwrap_or("without a word"))
}

/// The lines of both texts, those of only one marked.
fn difference(expected: &str, happened: &str) -> String {
    let (a, b): (Vec<_>, Vec<_>) = (expected.lines().collect(), happened.lines().collect());
    // `common[i][j]`: how many lines of a[i..] and b[j..] can stay in place.
    let mut common = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = match a[i] == b[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut text) = (0, 0, String::new());
    while i < a.len() || j < b.len() {
        let (mark, line) = if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
            (' ', a[i - 1])
        } else if j == b.len() || (i < a.len() && common[i + 1][j] >= common[i][j + 1]) {
            i += 1;
            ('-', a[i - 1])
        } else {
            j += 1;
            ('+', b[j - 1])
        };
        text.extend([&format!("  {mark} "), line, "\n"]);
    }
    text
}

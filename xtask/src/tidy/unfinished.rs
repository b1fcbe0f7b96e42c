//! Nothing in the tree waits for another day. A thing left open is an issue, not a comment.

use super::tree::Tree;
use super::{Outcome, Problem};

/// Put together at compile time, or this file would be the first to be refused.
const MARKS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
];

pub(super) fn check(tree: &Tree) -> Outcome {
    let mut problems = Vec::new();
    for (path, text) in tree.rust_files() {
        for (at, line) in text.lines().enumerate() {
            if let Some(mark) = MARKS.into_iter().find(|mark| has_word(line, mark)) {
                let advice = format!("finish what `{mark}` leaves open, or open an issue for it");
                problems.push(Problem::new(path, at + 1, advice));
            }
        }
    }
    Outcome::Checked(problems)
}

fn has_word(line: &str, word: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        let goes_on = word.ends_with(letter) && after.starts_with(letter);
        !before.ends_with(letter) && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_is_refused() {
        for mark in MARKS {
            let text = format!("fn f() {{\n    // {mark} later\n}}\n");
            let tree = Tree::of([("crates/core/src/a.rs", &text), ("notes.md", &text)]);
            assert_eq!(check(&tree).places(), ["crates/core/src/a.rs:2"], "{mark}");
        }
        let call = format!("    {}reason)\n", MARKS[4]);
        assert_eq!(check(&Tree::of([("a.rs", &call)])).places(), ["a.rs:1"]);
    }

    #[test]
    fn a_mark_inside_a_longer_word_is_no_mark() {
        let text = format!("let {0}S = \"X{1}X\"; my_{2}x);\n", MARKS[0], MARKS[2], MARKS[3]);
        assert!(check(&Tree::of([("a.rs", &text)])).places().is_empty());
    }
}

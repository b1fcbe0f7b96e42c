//! Every promise that the book makes names tests that prove it. Each of them is there, and its file
//! carries the number.

use super::tree::Tree;
use super::{Outcome, Problem};

const PAGE: &str = "docs/book/src/promises.md";
/// A row begins so: `| P12 |`.
const ROW: &str = "| P";

pub(super) fn check(tree: &Tree) -> Outcome {
    let Some(page) = tree.text(PAGE) else {
        return Outcome::Skipped("there are no promises yet");
    };
    let mut problems = Vec::new();
    let mut promises = 0;
    for (at, row) in page.lines().enumerate().filter(|(_, line)| line.starts_with(ROW)) {
        promises += 1;
        let tell = |advice: String| Problem::new(PAGE, at + 1, advice);
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let number = cells.first().copied().unwrap_or_default();
        if number != format!("P{promises}") {
            problems.push(tell(format!("promises are numbered in order: this is P{promises}")));
        }
        let tests: Vec<_> = cells.last().map(|cell| quoted(cell).collect()).unwrap_or_default();
        if tests.is_empty() {
            problems.push(tell(format!(
                "{number} names no test; name one as `crates/cli/tests/kills.rs::its_name`, or do \
                 not promise it"
            )));
        }
        problems.extend(tests.iter().filter_map(|test| missing(tree, test, number)).map(tell));
    }
    match promises {
        0 => Outcome::Stuck(format!("{PAGE} has no row that begins with `{ROW}1 |`")),
        _ => Outcome::Checked(problems),
    }
}

/// What stands between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// What is wrong with a test that is named so for a promise.
fn missing(tree: &Tree, test: &str, number: &str) -> Option<String> {
    let Some((path, name)) = test.split_once("::") else {
        return Some(format!("`{test}` is no test; write `crates/…/file.rs::its_name`"));
    };
    let Some(text) = tree.text(path) else {
        return Some(format!("`{test}`: there is no file {path}"));
    };
    let mut lines = text.lines().map(str::trim);
    let mut was_marked = false;
    let is_there = lines.any(|line| {
        let declared = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        let is_it = declared.is_some_and(|rest| {
            rest.strip_prefix(name).is_some_and(|after| after.starts_with('('))
        });
        let found = is_it && was_marked;
        was_marked = match line {
            "#[test]" => true,
            _ if line.starts_with("#[tokio::test") => true,
            _ => was_marked && line.starts_with("#["),
        };
        found
    });
    if !is_there {
        return Some(format!("`{test}`: {path} has no test of that name"));
    }
    let carries = text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == number);
    (!carries).then(|| format!("say in {path} that it proves {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "//! P1 and P2.\n#[test]\nfn nothing_is_lost() {}\nfn no_test() {}\n#[test]\n#[ignore = \"long\"]\nfn marked_twice() {}\n";

    fn checked(page: &str) -> Vec<String> {
        let page = page.replace("CELL", "a promise | a mechanism");
        let silent = ("crates/wal/tests/silent.rs", "#[test]\nfn nothing_is_lost() {}");
        check(&Tree::of([(PAGE, &page), ("crates/wal/tests/a.rs", TEST), silent])).places()
    }

    #[test]
    fn a_promise_with_a_test_passes() {
        let row = |test| format!("| P1 | CELL | `crates/wal/tests/a.rs::{test}` |");
        assert!(checked(&row("nothing_is_lost")).is_empty());
        assert!(checked(&row("marked_twice")).is_empty());
    }

    #[test]
    fn a_promise_without_a_live_test_is_a_problem() {
        for cell in [
            "",
            "someone's word",
            "`nothing_is_lost`",
            "`crates/wal/tests/a.rs::no_test`",
            "`crates/wal/tests/a.rs::nothing`",
            "`crates/wal/tests/b.rs::nothing_is_lost`",
            "`crates/wal/tests/silent.rs::nothing_is_lost`",
        ] {
            let page = format!("# Promises\n| P1 | CELL | {cell} |");
            assert_eq!(checked(&page), [format!("{PAGE}:2")], "{cell}");
        }
    }

    #[test]
    fn a_number_that_is_left_out_is_a_problem() {
        let page = "| P2 | CELL | `crates/wal/tests/a.rs::nothing_is_lost` |";
        assert_eq!(checked(page), [format!("{PAGE}:1")]);
    }
}

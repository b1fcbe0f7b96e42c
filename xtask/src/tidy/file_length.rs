//! A long file has two subjects. Its tests do not count.

use super::tree::{Tree, is_generated};
use super::{Outcome, Problem};

const LINES_MAX: usize = 500;

pub(super) fn check(tree: &Tree) -> Outcome {
    let long = tree
        .crate_sources()
        .filter(|(path, text)| !path.ends_with("/tests.rs") && !is_generated(text))
        .filter_map(|(path, text)| {
            let lines = lines_before_tests(text);
            (lines > LINES_MAX).then(|| {
                let advice = format!(
                    "{lines} lines before the tests, of {LINES_MAX}; \
                     find the second subject in the file and give it one of its own"
                );
                Problem::new(path, LINES_MAX + 1, advice)
            })
        });
    Outcome::Checked(long.collect())
}

/// Only a test module with a body ends the count: `mod tests;` may stand at the top of a long file.
fn lines_before_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    lines
        .windows(2)
        .position(|two| two[0] == "#[cfg(test)]" && two[1].ends_with('{'))
        .unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_over_the_limit_is_refused() {
        let just_right = "x\n".repeat(LINES_MAX);
        let too_long = "x\n".repeat(LINES_MAX + 1);
        let with_tests = format!("{just_right}#[cfg(test)]\nmod tests {{\n{too_long}}}\n");
        let tests_elsewhere = format!("#[cfg(test)]\nmod tests;\n{just_right}");
        let tree = Tree::of([
            ("crates/core/src/a.rs", &just_right),
            ("crates/core/src/b.rs", &with_tests),
            ("crates/core/src/c.rs", &tests_elsewhere),
            ("crates/core/src/d.rs", &too_long),
            ("crates/core/src/d/tests.rs", &too_long),
            ("crates/core/tests/e.rs", &too_long),
        ]);
        let places = ["crates/core/src/c.rs:501", "crates/core/src/d.rs:501"];
        assert_eq!(check(&tree).places(), places);
    }
}

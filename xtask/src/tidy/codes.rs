//! Every rejection code has a page that says what to do, and no page is left behind.

use std::collections::BTreeMap;

use super::tree::Tree;
use super::{Outcome, Problem};

/// Where codes are given out, and in which function: by the rules, by the coordinator, and at the
/// doors.
const SOURCES: [(&str, &str); 3] = [
    ("crates/core/src/rejection.rs", "fn code("),
    ("crates/coordinator/src/ask.rs", "fn code("),
    ("crates/server/src/problem.rs", "fn status_of("),
];
const PAGES: &str = "docs/book/src/codes/";

pub(super) fn check(tree: &Tree) -> Outcome {
    let pages: Vec<&str> = tree.files().filter_map(|(path, _)| code_of_page(path)).collect();
    if SOURCES.iter().all(|(source, _)| tree.text(source).is_none()) && pages.is_empty() {
        return Outcome::Skipped("there are no rejections yet");
    }
    let mut codes = BTreeMap::new();
    for (source, function) in SOURCES {
        let Some(text) = tree.text(source) else {
            return Outcome::Stuck(format!("{source} is missing; if it moved, tell this rule"));
        };
        let found = codes_in(text, function);
        if found.is_empty() {
            return Outcome::Stuck(format!(
                "{source} has no `{function}` with codes in it; if they moved, tell this rule"
            ));
        }
        codes.extend(found.into_iter().map(|(code, line)| (code, (source, line))));
    }
    let unexplained =
        codes.iter().filter(|(code, _)| !pages.contains(code)).map(|(code, (source, line))| {
            let advice = format!("explain `{code}` and what to do about it in {PAGES}{code}.md");
            Problem::new(source, *line, advice)
        });
    let orphaned = pages.iter().filter(|page| !codes.contains_key(*page)).map(|page| {
        let advice = format!("no rejection has the code `{page}`; remove or rename the page");
        Problem::new(&format!("{PAGES}{page}.md"), 1, advice)
    });
    Outcome::Checked(unexplained.chain(orphaned).collect())
}

fn code_of_page(path: &str) -> Option<&str> {
    let code = path.strip_prefix(PAGES)?.strip_suffix(".md")?;
    (code != "README").then_some(code)
}

/// The codes in the body of a function, each with its line.
fn codes_in<'s>(source: &'s str, function: &str) -> BTreeMap<&'s str, usize> {
    let mut lines = source.lines().enumerate().skip_while(|(_, line)| !line.contains(function));
    let Some((_, first)) = lines.next() else { return BTreeMap::new() };
    let indent = first.len() - first.trim_start().len();
    // Rustfmt puts the brace that closes a function under the word that opens it.
    let closes = |line: &str| line.trim_end() == format!("{:indent$}}}", "");
    lines
        .take_while(|(_, line)| !closes(line))
        .flat_map(|(at, line)| literals(line).map(move |literal| (literal, at + 1)))
        .filter(|(literal, _)| is_snake_case(literal))
        .collect()
}

fn literals(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or(line);
    code.split('"').skip(1).step_by(2)
}

fn is_snake_case(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const REJECTIONS: &str = r#"//! Rejections.
impl Rejection {
    /// The code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::LeaseLost { .. } => "lease_lost", // was "lease_gone" once
            Self::NotFound => {
                "task_not_found"
            }
        }
    }

    pub fn sentence(&self) -> &'static str {
        "elsewhere"
    }
}
"#;

    #[test]
    fn codes_are_read_from_their_function_only() {
        let expected = [("lease_lost", 6), ("task_not_found", 8)];
        assert_eq!(codes_in(REJECTIONS, "fn code("), BTreeMap::from(expected));
    }

    #[test]
    fn a_code_without_page_and_a_page_without_code_are_refused() {
        let tree = Tree::of([
            (SOURCES[0].0, REJECTIONS),
            (SOURCES[1].0, "fn code() {\n    \"overloaded\"\n}\n"),
            (SOURCES[2].0, "fn status_of() {\n    \"lease_lost\"\n}\n"),
            ("docs/book/src/codes/README.md", ""),
            ("docs/book/src/codes/lease_gone.md", ""),
            ("docs/book/src/codes/lease_lost.md", ""),
        ]);
        let places = [
            "crates/coordinator/src/ask.rs:2",
            "crates/core/src/rejection.rs:8",
            "docs/book/src/codes/lease_gone.md:1",
        ];
        assert_eq!(check(&tree).places(), places);
    }

    #[test]
    fn codes_that_cannot_be_found_are_noticed() {
        let empty = Tree::of([(SOURCES[0].0, REJECTIONS), (SOURCES[1].0, "//! Refusals.\n")]);
        assert!(matches!(check(&empty), Outcome::Stuck(_)));
        let moved = Tree::of([("docs/book/src/codes/lease_lost.md", "")]);
        assert!(matches!(check(&moved), Outcome::Stuck(_)));
        assert!(matches!(check(&Tree::of([])), Outcome::Skipped(_)));
    }
}

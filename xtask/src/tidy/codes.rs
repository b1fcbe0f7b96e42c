//! Error codes in the book: every code has a page with its status and retryability, a row in the
//! table of codes and an entry in the summary, and no page is left behind. The codes themselves are
//! read from `tenure_code::Code`.

use tenure_code::Code;

use super::tree::Tree;
use super::{Outcome, Problem};

const BOOK: &str = "docs/book/src/";
const TABLE: &str = "docs/book/src/codes/README.md";
const SUMMARY: &str = "docs/book/src/SUMMARY.md";

pub(super) fn check(tree: &Tree) -> Outcome {
    let (Some(table), Some(summary)) = (tree.text(TABLE), tree.text(SUMMARY)) else {
        return Outcome::Stuck(format!(
            "{TABLE} or {SUMMARY} is missing; if they moved, tell this rule"
        ));
    };
    let mut problems = Vec::new();
    for code in Code::ALL {
        problems.extend(check_page(tree, *code));
        problems.extend(check_line(TABLE, table, &row(*code)));
        let entry = format!("  - [{code}]({})", code.page());
        problems.extend(check_line(SUMMARY, summary, &entry));
    }
    let rows = table.lines().zip(1..).filter(|(line, _)| line.starts_with("| [`"));
    for (_, line) in rows.filter(|(found, _)| Code::ALL.iter().all(|code| row(*code) != *found)) {
        let advice = "this row is not what `tenure_code::Code` says; remove or change it";
        problems.push(Problem::new(TABLE, line, advice));
    }
    for (path, _) in tree.files() {
        let page = path.strip_prefix(BOOK).filter(|page| page.starts_with("codes/"));
        let is_known = |page: &str| Code::ALL.iter().any(|code| code.page() == page);
        if page.is_some_and(|page| page != "codes/README.md" && !is_known(page)) {
            problems.push(Problem::new(
                path,
                1,
                "no error code has this page; remove or rename it",
            ));
        }
    }
    Outcome::Checked(problems)
}

/// What the page of a code says under its heading.
fn facts(code: Code) -> String {
    format!(
        "HTTP {} · gRPC `{}` · {}",
        code.http_status(),
        code.grpc_status().as_str(),
        if code.is_retryable() { "retryable" } else { "not retryable" }
    )
}

/// The row of a code in the table of codes.
fn row(code: Code) -> String {
    let (http, grpc) = (code.http_status(), code.grpc_status().as_str());
    let retryable = if code.is_retryable() { "yes" } else { "no" };
    format!("| [`{code}`]({code}.md) | {http} | `{grpc}` | {retryable} | {} |", code.title())
}

fn check_page(tree: &Tree, code: Code) -> Option<Problem> {
    let path = format!("{BOOK}{}", code.page());
    let Some(text) = tree.text(&path) else {
        let advice = format!("explain `{code}` and what to do about it in {path}");
        return Some(Problem::new("crates/code/src/lib.rs", 1, advice));
    };
    let wanted = format!("# `{code}`\n\n{}\n\n", facts(code));
    let advice =
        format!("the page must begin with the heading `{code}` and the line: {}", facts(code));
    (!text.starts_with(&wanted)).then(|| Problem::new(&path, 1, advice))
}

fn check_line(path: &str, text: &str, wanted: &str) -> Option<Problem> {
    let is_there = text.lines().any(|line| line == wanted);
    (!is_there).then(|| Problem::new(path, 1, format!("add this line: {wanted}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A book in which all codes are explained.
    fn book() -> BTreeMap<String, String> {
        let mut files: BTreeMap<_, _> = Code::ALL
            .iter()
            .map(|code| {
                let text = format!("# `{code}`\n\n{}\n\nWhy.\n", facts(*code));
                (format!("{BOOK}{}", code.page()), text)
            })
            .collect();
        let rows: Vec<_> = Code::ALL.iter().map(|code| row(*code)).collect();
        files.insert(TABLE.to_owned(), format!("# Error codes\n\n{}\n", rows.join("\n")));
        let entries = Code::ALL.iter().map(|code| format!("  - [{code}]({})\n", code.page()));
        files.insert(SUMMARY.to_owned(), entries.collect());
        files
    }

    fn places(files: &BTreeMap<String, String>) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        check(&Tree::of_all(&files)).places()
    }

    #[test]
    fn a_whole_book_is_fine() {
        assert_eq!(places(&book()), [""; 0]);
    }

    #[test]
    fn a_code_without_page_and_a_page_without_code_are_refused() {
        let mut book = book();
        book.remove("docs/book/src/codes/lease_lost.md");
        book.insert("docs/book/src/codes/lease_gone.md".to_owned(), String::new());
        let wanted = ["crates/code/src/lib.rs:1", "docs/book/src/codes/lease_gone.md:1"];
        assert_eq!(places(&book), wanted);
    }

    #[test]
    fn what_the_book_says_about_a_code_is_what_the_enum_says() {
        let mut book = book();
        let page = book.get_mut("docs/book/src/codes/overloaded.md").unwrap();
        *page = page.replace("429", "503");
        let table = book.get_mut(TABLE).unwrap();
        *table = table.replace("| 413 |", "| 400 |");
        let summary = book.get_mut(SUMMARY).unwrap();
        *summary = summary.replace("  - [forbidden](codes/forbidden.md)\n", "");
        // The row that is missing, and the one that is wrong.
        let wanted = [
            "docs/book/src/SUMMARY.md:1",
            "docs/book/src/codes/overloaded.md:1",
            "docs/book/src/codes/README.md:1",
            "docs/book/src/codes/README.md:17",
        ];
        assert_eq!(places(&book), wanted);
    }

    #[test]
    fn a_book_that_cannot_be_found_is_noticed() {
        assert!(matches!(check(&Tree::of([])), Outcome::Stuck(_)));
    }
}

//! No file knows the machine that it was written on.

use super::tree::Tree;
use super::{Outcome, Problem};

/// Put together at compile time, or this file would be the first to be refused.
const FOLDERS: [&str; 4] =
    [concat!("/", "home/"), concat!("/", "root/"), concat!("/", "work/"), concat!("/", "Users/")];

pub(super) fn check(tree: &Tree) -> Outcome {
    let mut problems = Vec::new();
    for (path, text) in tree.files() {
        for (at, line) in text.lines().enumerate() {
            if let Some(folder) = FOLDERS.into_iter().find(|folder| begins_a_path(line, folder)) {
                let advice = format!("`{folder}` is on one machine only; use a path from the root");
                problems.push(Problem::new(path, at + 1, advice));
            }
        }
    }
    Outcome::Checked(problems)
}

/// `docs/work/` and `/v1/work/` are no such paths: there the folder follows another name.
fn begins_a_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-.~}".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_refused_wherever_it_stands() {
        for folder in FOLDERS {
            for before in ["", "cd ", "\"", "(", "=", "file://"] {
                let text = format!("one\n{before}{folder}me\n");
                let tree = Tree::of([("notes.md", &text)]);
                assert_eq!(check(&tree).places(), ["notes.md:2"], "{text}");
            }
        }
    }

    #[test]
    fn a_folder_inside_another_path_is_fine() {
        let text = FOLDERS.map(|folder| format!("docs{folder}a ..{folder}b ${{HOME}}{folder}c\n"));
        assert!(check(&Tree::of([("notes.md", &text.concat())])).places().is_empty());
    }
}

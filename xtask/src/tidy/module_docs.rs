//! Every source file says on its first line what it is for.

use super::tree::{Tree, is_generated};
use super::{Outcome, Problem};

pub(super) fn check(tree: &Tree) -> Outcome {
    let chores = tree.rust_files().filter(|(path, _)| path.starts_with("xtask/"));
    let bare = tree
        .crate_sources()
        .chain(chores)
        .filter(|(_, text)| !text.starts_with("//! ") && !is_generated(text))
        .map(|(path, _)| {
            Problem::new(path, 1, "begin the file with a `//!` line that says what it is for")
        });
    Outcome::Checked(bare.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_first_doc_line_is_refused() {
        let tree = Tree::of([
            ("crates/core/src/bare.rs", "fn f() {}\n//! Too late.\n"),
            ("crates/core/src/empty.rs", ""),
            ("crates/core/src/good.rs", "//! The good.\n"),
            ("crates/core/src/made.rs", "// @generated\nfn f() {}\n"),
            ("crates/core/tests/free.rs", "fn f() {}\n"),
            ("xtask/src/bare.rs", "\n//! One line too low.\n"),
        ]);
        let places =
            ["crates/core/src/bare.rs:1", "crates/core/src/empty.rs:1", "xtask/src/bare.rs:1"];
        assert_eq!(check(&tree).places(), places);
    }
}

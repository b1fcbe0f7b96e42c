//! The ledger is what was kept of the runs, and nothing else.

use super::tree::Tree;
use super::{Outcome, Problem};
use crate::evidence::{self, PAGE};

pub(super) fn check(tree: &Tree) -> Outcome {
    let Some(page) = tree.text(PAGE) else {
        return Outcome::Skipped("there is no ledger yet");
    };
    let drawn = evidence::page(|path| tree.text(path).map(str::to_owned));
    let stale = page.lines().zip(drawn.lines()).position(|(there, drawn)| there != drawn);
    let problem = |line| {
        Problem::new(
            PAGE,
            line,
            "this was not drawn from docs/evidence; run `cargo xtask evidence`",
        )
    };
    Outcome::Checked(match stale {
        Some(at) => vec![problem(at + 1)],
        None if page != drawn => vec![problem(page.lines().count())],
        None => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_nobody_measured_are_noticed() {
        let drawn = evidence::page(|_| None);
        assert!(check(&Tree::of([(PAGE, &drawn)])).places().is_empty());
        let forged = drawn.replacen("Not yet run", "Run a million times", 1);
        assert_eq!(check(&Tree::of([(PAGE, &forged)])).places().len(), 1);
        let longer = format!("{drawn}more\n");
        assert_eq!(check(&Tree::of([(PAGE, &longer)])).places().len(), 1);
    }
}

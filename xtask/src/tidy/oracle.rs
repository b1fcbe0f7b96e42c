//! The codec tests' oracle was generated from the schema as it is now.

use super::tree::Tree;
use super::{Outcome, Problem};
use crate::proto::{ORACLE, PROTO, header};

pub(super) fn check(tree: &Tree) -> Outcome {
    let stale = |path| {
        let advice = format!("{ORACLE} is not from this {PROTO}; run `cargo xtask proto`");
        Outcome::Checked(vec![Problem::new(path, 1, advice)])
    };
    match (tree.text(PROTO), tree.text(ORACLE)) {
        (None, None) => Outcome::Skipped("there is no record.proto yet"),
        (None, Some(_)) => {
            let advice = format!("{PROTO} is missing; bring it back or remove this file");
            Outcome::Checked(vec![Problem::new(ORACLE, 1, advice)])
        }
        (Some(_), None) => stale(PROTO),
        (Some(proto), Some(oracle)) if oracle.lines().next() != Some(&header(proto)) => {
            stale(ORACLE)
        }
        (Some(_), Some(_)) => Outcome::Checked(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_or_lonely_file_is_refused() {
        let old = format!("{}\ncode", header("old"));
        let stale = Tree::of([(PROTO, "new"), (ORACLE, &old)]);
        assert_eq!(check(&stale).places(), [format!("{ORACLE}:1")]);
        assert_eq!(check(&Tree::of([(PROTO, "new")])).places(), [format!("{PROTO}:1")]);
        assert_eq!(check(&Tree::of([(ORACLE, &old)])).places(), [format!("{ORACLE}:1")]);
    }

    #[test]
    fn a_fresh_oracle_is_good_and_none_at_all_is_skipped() {
        let new = format!("{}\ncode", header("new"));
        assert!(check(&Tree::of([(PROTO, "new"), (ORACLE, &new)])).places().is_empty());
        assert!(matches!(check(&Tree::of([])), Outcome::Skipped(_)));
    }
}

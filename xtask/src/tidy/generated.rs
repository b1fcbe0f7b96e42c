//! What is generated from a schema was generated from the schema as it is now.

use super::tree::Tree;
use super::{Outcome, Problem};
use crate::proto::{SCHEMAS, Schema, header};

pub(super) fn check(tree: &Tree) -> Outcome {
    let has = |schema: &Schema| tree.text(schema.proto).or(tree.text(schema.code)).is_some();
    if !SCHEMAS.iter().any(has) {
        return Outcome::Skipped("there is no schema yet");
    }
    Outcome::Checked(SCHEMAS.into_iter().filter_map(|schema| problem(tree, schema)).collect())
}

fn problem(tree: &Tree, schema: Schema) -> Option<Problem> {
    let Schema { proto, code } = schema;
    let stale = |path| {
        let advice = format!("{code} is not from this {proto}; run `cargo xtask proto`");
        Some(Problem::new(path, 1, advice))
    };
    match (tree.text(proto), tree.text(code)) {
        (None, None) => None,
        (None, Some(_)) => {
            let advice = format!("{proto} is missing; bring it back or remove this file");
            Some(Problem::new(code, 1, advice))
        }
        (Some(_), None) => stale(proto),
        (Some(text), Some(made)) if made.lines().next() != Some(&header(schema, text)) => {
            stale(code)
        }
        (Some(_), Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_or_lonely_file_is_refused() {
        for schema in SCHEMAS {
            let Schema { proto, code } = schema;
            let old = format!("{}\ncode", header(schema, "old"));
            let stale = Tree::of([(proto, "new"), (code, &old)]);
            assert_eq!(check(&stale).places(), [format!("{code}:1")]);
            assert_eq!(check(&Tree::of([(proto, "new")])).places(), [format!("{proto}:1")]);
            assert_eq!(check(&Tree::of([(code, &old)])).places(), [format!("{code}:1")]);
        }
    }

    #[test]
    fn fresh_code_is_good_and_none_at_all_is_skipped() {
        for schema in SCHEMAS {
            let new = format!("{}\ncode", header(schema, "new"));
            let tree = Tree::of([(schema.proto, "new"), (schema.code, &new)]);
            assert!(check(&tree).places().is_empty());
        }
        assert!(matches!(check(&Tree::of([])), Outcome::Skipped(_)));
    }
}

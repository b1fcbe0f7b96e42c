//! What core may use of other people's code: data structures and hashes. A runtime, a clock or a
//! source of randomness would end the promise that a log always gives the same state.

use super::manifest::dependencies;
use super::tree::Tree;
use super::{Outcome, Problem};

const MANIFEST: &str = "crates/core/Cargo.toml";
const ALLOWED: [&str; 6] =
    ["blake3", "foldhash", "hashbrown", "roaring", "smallvec", "tenure-flow"];

pub(super) fn check(tree: &Tree) -> Outcome {
    let Some(text) = tree.text(MANIFEST) else {
        return Outcome::Stuck(format!("{MANIFEST} is missing; if core moved, tell this rule"));
    };
    let strangers = dependencies(text)
        .into_iter()
        .filter(|dependency| !dependency.is_dev && !ALLOWED.contains(&dependency.package))
        .map(|dependency| {
            let advice = format!(
                "core may use only {}; put what needs `{}` into another crate",
                ALLOWED.join(", "),
                dependency.package
            );
            Problem::new(MANIFEST, dependency.line, advice)
        });
    Outcome::Checked(strangers.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_in_core_is_refused() {
        let text = "[dependencies]\nsmallvec = \"1\"\ntokio = \"1\"\n\
                    [dev-dependencies]\nproptest = \"1\"\n\
                    [build-dependencies]\nrand = \"1\"\n";
        let places = ["crates/core/Cargo.toml:3", "crates/core/Cargo.toml:7"];
        assert_eq!(check(&Tree::of([(MANIFEST, text)])).places(), places);
    }

    #[test]
    fn a_lost_manifest_is_noticed() {
        assert!(matches!(check(&Tree::of([])), Outcome::Stuck(_)));
    }
}

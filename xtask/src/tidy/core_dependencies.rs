//! Allowed dependencies of the pure crates: data structures and hashes. A runtime, a clock or a source
//! of randomness would end the promise that a log always gives the same state.

use super::manifest::dependencies;
use super::tree::Tree;
use super::{Outcome, Problem};

/// Each pure crate and what it may use. Dev-dependencies are free.
const PURE: [(&str, &[&str]); 4] = [
    ("value", &["serde", "serde_json"]),
    ("record", &["foldhash", "hashbrown", "tenure-code", "tenure-value"]),
    ("audit", &["foldhash", "hashbrown", "tenure-record", "tenure-value"]),
    (
        "core",
        &[
            "blake3",
            "foldhash",
            "hashbrown",
            "roaring",
            "smallvec",
            "tenure-code",
            "tenure-flow",
            "tenure-record",
            "tenure-value",
        ],
    ),
];

pub(super) fn check(tree: &Tree) -> Outcome {
    let mut problems = Vec::new();
    for (name, allowed) in PURE {
        let manifest = manifest(name);
        let Some(text) = tree.text(&manifest) else {
            return Outcome::Stuck(format!(
                "{manifest} is missing; if {name} moved, tell this rule"
            ));
        };
        let strangers = dependencies(text)
            .into_iter()
            .filter(|dependency| !dependency.is_dev && !allowed.contains(&dependency.package));
        problems.extend(strangers.map(|dependency| {
            let advice = format!(
                "{name} may use only {}; put what needs `{}` into another crate",
                allowed.join(", "),
                dependency.package
            );
            Problem::new(&manifest, dependency.line, advice)
        }));
    }
    Outcome::Checked(problems)
}

fn manifest(name: &str) -> String {
    format!("crates/{name}/Cargo.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_in_a_pure_crate_is_refused() {
        let text = "[dependencies]\nfoldhash = \"1\"\ntokio = \"1\"\n\
                    [dev-dependencies]\nproptest = \"1\"\n\
                    [build-dependencies]\nrand = \"1\"\n";
        let files = PURE.map(|(name, _)| (manifest(name), if name == "core" { text } else { "" }));
        let files = files.each_ref().map(|(path, text)| (path.as_str(), *text));
        let places = ["crates/core/Cargo.toml:3", "crates/core/Cargo.toml:7"];
        assert_eq!(check(&Tree::of(files)).places(), places);
    }

    #[test]
    fn a_lost_manifest_is_noticed() {
        assert!(matches!(check(&Tree::of([])), Outcome::Stuck(_)));
    }
}

//! Packages come from the public registries. A mirror's name is the business of one machine, and a
//! lock file that carries it cannot be used on any other.

use super::tree::Tree;
use super::{Outcome, Problem};

/// What comes before a registry's name, and the only names that may follow.
const PUBLIC: &[(&str, &[&str])] = &[
    ("registry+", &["https://github.com/rust-lang/crates.io-index"]),
    ("sparse+", &["https://index.crates.io/"]),
    ("replace-with", &[]),
    ("index-url", &[]),
    ("registry = \"", &["https://pypi.org/simple\""]),
    ("registry=", &["https://registry.npmjs.org/"]),
    ("\"resolved\": \"", &["https://registry.npmjs.org/"]),
];

pub(super) fn check(tree: &Tree) -> Outcome {
    let mut problems = Vec::new();
    // Rust source configures no registry.
    for (path, text) in tree.files().filter(|(path, _)| !path.ends_with(".rs")) {
        for (at, line) in text.lines().enumerate() {
            if PUBLIC.iter().any(|(mark, names)| names_another(line, mark, names)) {
                let advice = "name no registry but the public one; a mirror belongs into the \
                              settings of the machine that uses it";
                problems.push(Problem::new(path, at + 1, advice));
            }
        }
    }
    Outcome::Checked(problems)
}

fn names_another(line: &str, mark: &str, names: &[&str]) -> bool {
    line.split_once(mark).is_some_and(|(_, rest)| !names.iter().any(|name| rest.starts_with(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_is_refused() {
        for line in [
            r#"source = "registry+https://mirror.example/index""#,
            r#"index = "sparse+https://mirror.example/""#,
            r#"replace-with = "mirror""#,
            "--extra-index-url https://mirror.example/simple",
            r#"source = { registry = "https://mirror.example/simple" }"#,
            "registry=https://mirror.example/",
            r#"  "resolved": "https://mirror.example/x.tgz","#,
        ] {
            let tree = Tree::of([("lock", line)]);
            assert_eq!(check(&tree).places(), ["lock:1"], "{line}");
        }
    }

    #[test]
    fn the_public_registries_are_fine() {
        let lock = r#"
source = "registry+https://github.com/rust-lang/crates.io-index"
source = { registry = "https://pypi.org/simple" }
  "resolved": "https://registry.npmjs.org/x/-/x-1.0.0.tgz",
"#;
        assert!(check(&Tree::of([("lock", lock)])).places().is_empty());
    }
}

//! Which of our crates may know which. Tests keep to it too.

use super::manifest::{dependencies, package_name};
use super::tree::Tree;
use super::{Outcome, Problem};

/// `code` has the error codes. `record` is the format and depends on `code` and `value`. `audit`
/// depends on `record` and so cannot call `decide` or `apply`; `core` depends on `audit` in its
/// tests only (`core_dependencies` checks that). `log` is the log interface, which `wal`
/// implements. Core and logs do not know each other; the coordinator is where they meet. `tenure`
/// is what programs embed, on the coordinator. The server decides nothing, so it sees core only for
/// the types of commands and replies. The SDK is on the other side of the wire, and both sides know
/// code and proto. Nothing depends on sim.
const ALLOWED: &[(&str, &[&str])] = &[
    ("tenure-code", &[]),
    ("tenure-value", &[]),
    ("tenure-flow", &["tenure-code", "tenure-value"]),
    ("tenure-graph", &["tenure-code", "tenure-flow"]),
    ("tenure-record", &["tenure-code", "tenure-value"]),
    ("tenure-audit", &["tenure-record", "tenure-value"]),
    (
        "tenure-core",
        &["tenure-audit", "tenure-code", "tenure-flow", "tenure-record", "tenure-value"],
    ),
    ("tenure-log", &[]),
    ("tenure-wal", &["tenure-log"]),
    (
        "tenure-coordinator",
        &[
            "tenure-code",
            "tenure-core",
            "tenure-flow",
            "tenure-log",
            "tenure-record",
            "tenure-value",
            "tenure-wal",
        ],
    ),
    (
        "tenure",
        &[
            "tenure-code",
            "tenure-coordinator",
            "tenure-core",
            "tenure-flow",
            "tenure-record",
            "tenure-value",
        ],
    ),
    ("tenure-api", &["tenure-code"]),
    ("tenure-proto", &["tenure-api", "tenure-code"]),
    (
        "tenure-server",
        &[
            "tenure-api",
            "tenure-code",
            "tenure-core",
            "tenure-flow",
            "tenure-graph",
            "tenure-record",
            "tenure-value",
            "tenure-coordinator",
            "tenure-proto",
        ],
    ),
    ("tenure-sdk", &["tenure-api", "tenure-code", "tenure-proto"]),
    (
        "tenure-cli",
        &[
            "tenure-api",
            "tenure-audit",
            "tenure-code",
            "tenure-core",
            "tenure-flow",
            "tenure-graph",
            "tenure-log",
            "tenure-record",
            "tenure-value",
            "tenure-wal",
            "tenure-server",
            "tenure-sdk",
            "tenure-proto",
        ],
    ),
    (
        "tenure-sim",
        &[
            "tenure-core",
            "tenure-flow",
            "tenure-log",
            "tenure-record",
            "tenure-value",
            "tenure-wal",
            "tenure-coordinator",
        ],
    ),
    (
        "tenure-fuzz",
        &[
            "tenure-core",
            "tenure-flow",
            "tenure-log",
            "tenure-record",
            "tenure-value",
            "tenure-wal",
            "tenure-server",
        ],
    ),
    ("fuzz-guided", &["tenure-fuzz"]),
    ("xtask", &["tenure-code"]),
    ("proto-gen", &[]),
];

pub(super) fn check(tree: &Tree) -> Outcome {
    let mut problems = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with("Cargo.toml")) {
        let Some(package) = package_name(text) else { continue };
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package) else {
            let advice =
                format!("say which crates `{package}` may know, in xtask/src/tidy/crate_graph.rs");
            problems.push(Problem::new(path, 1, advice));
            continue;
        };
        for dependency in dependencies(text) {
            let name = dependency.package;
            // A crate may know itself: that is how its tests ask for its features.
            let is_ours = ALLOWED.iter().any(|(ours, _)| *ours == name && *ours != package);
            if is_ours && !allowed.contains(&name) {
                let advice = format!(
                    "`{package}` must not know `{name}`; move what it needs, or change the graph \
                     in xtask/src/tidy/crate_graph.rs and in ARCHITECTURE.md"
                );
                problems.push(Problem::new(path, dependency.line, advice));
            }
        }
    }
    Outcome::Checked(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(package: &str, dependencies: &str) -> Vec<String> {
        let text = format!("[package]\nname = \"{package}\"\n{dependencies}");
        check(&Tree::of([("Cargo.toml", &text)])).places()
    }

    #[test]
    fn a_forbidden_edge_is_refused() {
        let core = "[dependencies]\ntenure-core.workspace = true\n";
        assert_eq!(places("tenure-wal", core), ["Cargo.toml:4"]);
        assert_eq!(places("tenure-sdk", core), ["Cargo.toml:4"]);
        assert_eq!(places("tenure-audit", core), ["Cargo.toml:4"], "a second opinion");
        let sim = "[dev-dependencies]\ntenure-sim = { path = \"../sim\" }\n";
        assert_eq!(places("tenure-coordinator", sim), ["Cargo.toml:4"]);
        assert_eq!(places("tenure-coordinator", core), [""; 0]);
    }

    #[test]
    fn a_crate_without_a_row_is_refused() {
        assert_eq!(places("tenure-common", ""), ["Cargo.toml:1"]);
    }

    #[test]
    fn only_sim_and_the_cli_stand_at_the_end() {
        for (name, allowed) in ALLOWED {
            assert!(!allowed.contains(&"tenure-sim") && !allowed.contains(&"tenure-cli"), "{name}");
        }
    }
}

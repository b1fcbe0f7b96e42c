//! Who may know a log provider: only the code that opens, repairs or simulates a log names the crate
//! `wal`, and only providers make the proof that a record is released. Tests, benches and examples
//! may name the crate, but they cannot make the proof either.

use super::tree::Tree;
use super::{Outcome, Problem};

/// Files and folders that may name the provider on the local disk.
const MAY_NAME_WAL: [&str; 11] = [
    "crates/wal/",
    "crates/sim/",
    "crates/fuzz/",
    // Opening, restoring and securing a data folder.
    "crates/coordinator/src/opening/",
    // Commands that work on a folder without a server.
    "crates/cli/src/backup.rs",
    "crates/cli/src/doctor.rs",
    "crates/cli/src/wal/",
    "crates/cli/examples/",
    "crates/cli/tests/",
    "crates/coordinator/benches/",
    "crates/coordinator/tests/",
];
const WAL: &str = concat!("tenure", "_wal");

/// Files that may make the proof.
const MAY_RELEASE: [&str; 3] =
    ["crates/log/src/released.rs", "crates/log/src/memory/writer.rs", "crates/wal/src/writer.rs"];
const RELEASE: &str = concat!("after", "_commit");

pub(super) fn check(tree: &Tree) -> Outcome {
    for path in MAY_RELEASE {
        if !tree.text(path).is_some_and(|text| text.contains(RELEASE)) {
            return Outcome::Stuck(format!(
                "{path} makes no `Released` any more; if that moved, tell this rule"
            ));
        }
    }
    let mut problems = Vec::new();
    for (path, text) in tree.rust_files() {
        let may_name_wal = MAY_NAME_WAL.iter().any(|place| path.starts_with(place));
        let may_release = MAY_RELEASE.contains(&path);
        for (at, line) in text.lines().enumerate() {
            if !may_name_wal && line.contains(WAL) {
                let advice = format!(
                    "`{WAL}` is named here; use the interface in `tenure_log`, or move what needs a \
                     folder into coordinator/src/opening"
                );
                problems.push(Problem::new(path, at + 1, advice));
            }
            if !may_release && line.contains(RELEASE) {
                let advice = format!(
                    "`Released::{RELEASE}` is named here; only a log that has committed a frame may \
                     release it, see xtask/src/tidy/providers.rs"
                );
                problems.push(Problem::new(path, at + 1, advice));
            }
        }
    }
    Outcome::Checked(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(path: &str, text: &str) -> Vec<String> {
        let release = format!("Released::{RELEASE}(lsn)\n");
        let [one, two, three] = MAY_RELEASE.map(|path| (path, release.as_str()));
        check(&Tree::of([one, two, three, (path, text)])).places()
    }

    #[test]
    fn only_those_who_open_a_folder_name_the_local_log() {
        let text = format!("//! A.\nuse {WAL}::Wal;\n");
        for path in ["crates/server/src/app.rs", "crates/coordinator/src/step.rs"] {
            assert_eq!(places(path, &text), [format!("{path}:2")]);
        }
        for path in ["crates/coordinator/src/opening/mod.rs", "crates/sim/src/log.rs"] {
            assert_eq!(places(path, &text), [""; 0]);
        }
    }

    #[test]
    fn only_providers_make_the_proof() {
        let text = format!("Released::{RELEASE}(lsn)\n");
        for path in ["crates/coordinator/src/respond.rs", "crates/coordinator/tests/it/a.rs"] {
            assert_eq!(places(path, &text), [format!("{path}:1")]);
        }
    }

    #[test]
    fn a_provider_that_moved_is_noticed() {
        assert!(matches!(check(&Tree::of([])), Outcome::Stuck(_)));
    }
}

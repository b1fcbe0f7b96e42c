//! Golden files are what released versions have written. They are added, never edited or removed.

use std::collections::BTreeMap;
use std::path::Path;

use super::tree::{Tree, git};
use super::{Outcome, Problem};
use crate::command::stdout_of;

/// The commit from which the rule counts: the golden files that it contains, and those that were
/// added since, are frozen. What was written before it was never released.
const SINCE: &str = "16188a93361a5b8969ce561f1698bdd21bc7d5c1";

const GOLDEN: &str = ":(glob)**/tests/golden/**";

pub(super) fn check(tree: &Tree) -> Outcome {
    changed(tree.root(), SINCE).map_or_else(Outcome::Stuck, Outcome::Checked)
}

/// Compares with the first version since that commit, so that a bad commit can be fixed by a later
/// one. A shallow clone compares with the oldest version that it has.
fn changed(root: &Path, since: &str) -> Result<Vec<Problem>, String> {
    let added = added(root, since)?;
    let present: Vec<&str> =
        added.keys().map(String::as_str).filter(|path| root.join(path).exists()).collect();
    let hashes = match present[..] {
        [] => String::new(),
        _ => stdout_of(git(root).args(["hash-object", "--"]).args(&present))?,
    };
    let now: BTreeMap<&str, &str> = present.into_iter().zip(hashes.lines()).collect();
    let changed = added.iter().filter_map(|(path, first)| {
        let done = match now.get(path.as_str()) {
            Some(hash) if hash == first => return None,
            Some(_) => "edited",
            None => "removed",
        };
        let advice = format!(
            "a golden file was {done}, and old logs must stay readable; bring it back with \
             `git cat-file blob {first} > {path}` and add a new file instead"
        );
        Some(Problem::new(path, 1, advice))
    });
    Ok(changed.collect())
}

/// Every golden file at that commit or added since, with the hash of its first content.
fn added(root: &Path, since: &str) -> Result<BTreeMap<String, String>, String> {
    let mut added = BTreeMap::new();
    let mut range = Vec::new();
    let commit = format!("{since}^{{commit}}");
    if stdout_of(git(root).args(["cat-file", "-e", &commit])).is_ok() {
        let mut tree = git(root);
        tree.args(["-c", "core.quotePath=false", "ls-tree", "-r", "--full-tree", since]);
        for line in stdout_of(&mut tree)?.lines() {
            // `100644 blob <hash><tab><path>`
            let Some((about, path)) = line.split_once('\t') else { continue };
            let Some(hash) = about.split(' ').nth(2) else { continue };
            if path.contains("/tests/golden/") {
                added.insert(path.to_owned(), hash.to_owned());
            }
        }
        range.push(format!("{since}..HEAD"));
    }
    let mut log = git(root);
    log.args(["-c", "core.quotePath=false", "log", "--format=", "--raw", "--no-abbrev"]);
    // Oldest first; a rename counts as a removal and an addition.
    log.args(["--reverse", "--topo-order", "--no-renames", "--diff-filter=A"]);
    log.args(range).args(["--", GOLDEN]);
    for line in stdout_of(&mut log)?.lines() {
        // `:000000 100644 <no hash> <hash> A<tab><path>`
        let Some((about, path)) = line.split_once('\t') else { continue };
        let Some(hash) = about.split(' ').nth(3) else { continue };
        added.entry(path.to_owned()).or_insert_with(|| hash.to_owned());
    }
    Ok(added)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// A repository of its own in a folder that goes away with it.
    struct Repository {
        root: PathBuf,
        since: String,
    }

    impl Repository {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("tidy-{}-{name}", std::process::id()));
            fs::create_dir_all(root.join("crates/core/tests/golden")).unwrap();
            let mut repository = Self { root, since: String::new() };
            repository.git(&["init", "--quiet"]);
            // What was there before the first release does not count.
            repository.write("v0.log", "zero");
            repository.commit();
            repository.git(&["rm", "--quiet", "crates/core/tests/golden/v0.log"]);
            fs::create_dir_all(repository.root.join("crates/core/tests/golden")).unwrap();
            repository.write("v1.log", "one");
            repository.commit();
            let since = stdout_of(git(&repository.root).args(["rev-parse", "HEAD"])).unwrap();
            repository.since = since.trim().to_owned();
            repository.write("v2.log", "two");
            repository.commit();
            repository
        }

        fn git(&self, args: &[&str]) {
            let who = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
            let unsigned = ["-c", "commit.gpgSign=false"];
            stdout_of(git(&self.root).args(who).args(unsigned).args(args)).unwrap();
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.root.join("crates/core/tests/golden").join(name), text).unwrap();
        }

        fn commit(&self) {
            self.git(&["add", "--all"]);
            self.git(&["commit", "--quiet", "--message=change"]);
        }

        fn places(&self) -> Vec<String> {
            Outcome::Checked(changed(&self.root, &self.since).unwrap()).places()
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.root);
        }
    }

    #[test]
    fn an_edit_is_refused_before_and_after_its_commit_until_it_is_undone() {
        let repository = Repository::new("edit");
        assert_eq!(repository.places(), [""; 0]);
        repository.write("v1.log", "won");
        assert_eq!(repository.places(), ["crates/core/tests/golden/v1.log:1"]);
        repository.commit();
        assert_eq!(repository.places(), ["crates/core/tests/golden/v1.log:1"]);
        repository.write("v1.log", "one");
        assert_eq!(repository.places(), [""; 0]);
        repository.commit();
        assert_eq!(repository.places(), [""; 0]);
    }

    #[test]
    fn a_removal_is_refused_and_so_is_a_rename() {
        let repository = Repository::new("remove");
        repository.git(&["rm", "--quiet", "crates/core/tests/golden/v1.log"]);
        repository.git(&["mv", "crates/core/tests/golden/v2.log", "crates/core/v2.log"]);
        repository.commit();
        let places = ["crates/core/tests/golden/v1.log:1", "crates/core/tests/golden/v2.log:1"];
        assert_eq!(repository.places(), places);
    }

    #[test]
    fn an_addition_is_welcome() {
        let repository = Repository::new("add");
        repository.write("v3.log", "three");
        assert_eq!(repository.places(), [""; 0]);
        repository.commit();
        assert_eq!(repository.places(), [""; 0]);
    }
}

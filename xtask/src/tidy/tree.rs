//! The repository as the rules see it: every text file that is tracked or about to be.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{program, stdout_of};

pub(super) struct Tree {
    root: PathBuf,
    texts: BTreeMap<String, String>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        // New files count before `git add`, so that tidy does not turn red only after the commit.
        let mut list = git(root);
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let names = stdout_of(&mut list)?;
        let mut texts = BTreeMap::new();
        for name in names.split_terminator('\0') {
            // What is not UTF-8 is no text; what is gone from the disk is about to be removed.
            if let Ok(text) = fs::read_to_string(root.join(name)) {
                texts.insert(name.to_owned(), text);
            }
        }
        Ok(Self { root: root.to_owned(), texts })
    }

    #[cfg(test)]
    pub(super) fn of<const N: usize>(files: [(&str, &str); N]) -> Self {
        Self::of_all(&files)
    }

    #[cfg(test)]
    pub(super) fn of_all(files: &[(&str, &str)]) -> Self {
        let texts = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Self { root: PathBuf::new(), texts: texts.collect() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Every text file by its path from the root, in order.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    pub(super) fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The source of the crates that ship, without their tests, examples and benches.
    pub(super) fn crate_sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rust_files().filter(|(path, _)| {
            matches!(path.split('/').collect::<Vec<_>>()[..], ["crates", _, "src", ..])
        })
    }
}

/// Whether a program wrote the file, so that no rule of style is for it.
pub(super) fn is_generated(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.contains("@generated"))
}

/// Git for the repository at `root`.
pub(super) fn git(root: &Path) -> Command {
    let mut git = program("git");
    git.current_dir(root);
    // A git hook sets these for its own repository, and they would win over the folder.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(name);
    }
    git
}

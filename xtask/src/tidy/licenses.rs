//! Everything we build with may be given away together with Tenure.
//!
//! Looks at the crates that this platform builds: their manifests are on the disk after the first
//! build, so that the rule needs no network.

use std::collections::BTreeMap;
use std::iter::Peekable;

use super::tree::Tree;
use super::{Outcome, Problem};
use crate::command::{cargo, stdout_of};

/// Licenses that ask for no more than a notice. A new one is a decision, so it starts as a failure.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

const LOCK: &str = "Cargo.lock";

pub(super) fn check(tree: &Tree) -> Outcome {
    let mut crates =
        cargo("tree --workspace --edges=normal,build,dev --prefix=none --format={p}|{l}");
    crates.current_dir(tree.root());
    match stdout_of(&mut crates) {
        Ok(crates) => Outcome::Checked(refused(&crates, tree.text(LOCK).unwrap_or_default())),
        Err(sentence) => Outcome::Stuck(sentence),
    }
}

/// `crates` has a line for each, such as `itoa v1.0.0|MIT OR Apache-2.0`.
fn refused(crates: &str, lock: &str) -> Vec<Problem> {
    let licenses: BTreeMap<&str, &str> = crates
        .lines()
        .filter_map(|line| line.split_once('|'))
        // Cargo marks a crate that it has listed before.
        .map(|(name, license)| (name, license.trim_end_matches("(*)").trim()))
        .collect();
    let refused = licenses.into_iter().filter(|(_, license)| !is_allowed(license));
    refused
        .map(|(package, license)| {
            let name = package.split(' ').next().unwrap_or(package);
            let entry = format!("name = \"{name}\"");
            let line = lock.lines().position(|line| line == entry).map_or(1, |at| at + 1);
            let shown = if license.is_empty() { "none" } else { license };
            let advice = format!(
                "the license of `{name}` is `{shown}`; use another crate, \
                 or allow it in xtask/src/tidy/licenses.rs and say why in the commit"
            );
            Problem::new(LOCK, line, advice)
        })
        .collect()
}

/// Whether an SPDX expression can be met by allowed licenses alone.
fn is_allowed(expression: &str) -> bool {
    // Old manifests write `MIT/Apache-2.0` for either.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words) && words.next().is_none()
}

fn any<'a>(words: &mut Peekable<impl Iterator<Item = &'a str>>) -> bool {
    let mut good = all(words);
    while words.next_if_eq(&"OR").is_some() {
        // Not `||`: the words must be read in any case.
        good |= all(words);
    }
    good
}

fn all<'a>(words: &mut Peekable<impl Iterator<Item = &'a str>>) -> bool {
    let mut good = one(words);
    while words.next_if_eq(&"AND").is_some() {
        good &= one(words);
    }
    good
}

fn one<'a>(words: &mut Peekable<impl Iterator<Item = &'a str>>) -> bool {
    let good = match words.next() {
        Some("(") => any(words) & (words.next() == Some(")")),
        Some(license) => ALLOWED.contains(&license),
        None => false,
    };
    // An exception only ever permits more.
    if words.next_if_eq(&"WITH").is_some() {
        words.next();
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_license_that_asks_for_more_is_refused() {
        for expression in [
            "",
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "(MIT OR Apache-2.0) AND OpenSSL",
            "GPL-3.0-only WITH GCC-exception-3.1",
            "(MIT",
            "MIT Apache-2.0",
        ] {
            assert!(!is_allowed(expression), "{expression}");
        }
    }

    #[test]
    fn one_allowed_choice_is_enough() {
        for expression in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-2.0-only OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "CC0-1.0 OR Apache-2.0 OR Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(is_allowed(expression), "{expression}");
        }
    }

    #[test]
    fn a_refused_crate_is_shown_at_its_place_in_the_lock_file() {
        let crates = "good v1.0.0|MIT\nbad v1.0.0|GPL-3.0-only\ngood v1.0.0|MIT (*)\n";
        let lock = "[[package]]\nname = \"bad\"\n\n[[package]]\nname = \"good\"\n";
        assert_eq!(Outcome::Checked(refused(crates, lock)).places(), ["Cargo.lock:2"]);
    }
}

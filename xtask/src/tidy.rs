//! `cargo xtask tidy`: the house rules that the compiler does not know. One file per rule.

mod codes;
mod core_dependencies;
mod crate_graph;
mod file_length;
mod generated;
mod golden;
mod ledger;
mod licenses;
mod machine_paths;
mod manifest;
mod module_docs;
mod promises;
mod providers;
mod registries;
mod sdk_surface;
mod tree;
mod unfinished;

use crate::command;
use tree::Tree;

type Rule = fn(&Tree) -> Outcome;

const RULES: &[(&str, Rule)] = &[
    ("module docs", module_docs::check),
    ("file length", file_length::check),
    ("unfinished code", unfinished::check),
    ("crate graph", crate_graph::check),
    ("core dependencies", core_dependencies::check),
    ("log providers", providers::check),
    ("SDK surface", sdk_surface::check),
    ("error codes", codes::check),
    ("promises", promises::check),
    ("ledger", ledger::check),
    ("golden files", golden::check),
    ("generated code", generated::check),
    ("machine paths", machine_paths::check),
    ("registries", registries::check),
    ("licenses", licenses::check),
];

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    command::no_arguments("tidy", args)?;
    let tree = Tree::read(command::root())?;
    let mut problems = 0;
    for (name, check) in RULES {
        match check(&tree) {
            Outcome::Checked(found) => {
                problems += found.len();
                for Problem { path, line, advice } in found {
                    println!("{path}:{line}: {advice}");
                }
            }
            Outcome::Skipped(why) => println!("({name}: not checked, as {why})"),
            Outcome::Stuck(sentence) => {
                problems += 1;
                println!("{name}: {sentence}");
            }
        }
    }
    let (rules, files) = (RULES.len(), tree.files().count());
    match problems {
        0 => {
            println!("{rules} rules looked at {files} files and found nothing.");
            Ok(())
        }
        1 => Err(format!("Tidy found one problem. Mend it, and {AGAIN}")),
        _ => Err(format!("Tidy found {problems} problems. Mend them, and {AGAIN}")),
    }
}

const AGAIN: &str = "look again with:\n    cargo xtask tidy";

/// What a rule has to say about the repository.
#[derive(Debug)]
enum Outcome {
    Checked(Vec<Problem>),
    /// There is nothing to check yet; the reason follows "as".
    Skipped(&'static str),
    /// The rule itself could not do its work.
    Stuck(String),
}

#[derive(Debug, PartialEq)]
struct Problem {
    path: String,
    /// From 1; a problem of the whole file is on its first line.
    line: usize,
    /// What is wrong and what to do.
    advice: String,
}

impl Problem {
    fn new(path: &str, line: usize, advice: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, advice: advice.into() }
    }
}

#[cfg(test)]
impl Outcome {
    /// `path:line` of each problem.
    fn places(self) -> Vec<String> {
        match self {
            Outcome::Checked(found) => {
                found.iter().map(|problem| format!("{}:{}", problem.path, problem.line)).collect()
            }
            Outcome::Skipped(why) => panic!("skipped, as {why}"),
            Outcome::Stuck(sentence) => panic!("{sentence}"),
        }
    }
}

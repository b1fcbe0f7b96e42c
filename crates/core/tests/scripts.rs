//! Whole stories, played through the rules: every file in `tests/scripts` is one.
//!
//! A story is a row of blocks. A block is one or more commands, a line of dashes, and what comes
//! of them: the record with its number and event, one line for each transition, and the answer
//! (`ok:`) or the refusal (`no:`, with its code and sentence). Where no record is shown, none was
//! written. A blank line ends a block; lines that begin with `#` are for the reader.
//!
//! Beside what the story shows, every record is encoded, decoded and compared, the draft on which
//! it was decided is compared with the state after it, and all laws are checked. At the end of
//! each story the whole log is replayed and must give the same state.
//!
//! `cargo xtask scripts --update` writes what happened into the stories. The commands are in
//! `tests/script/command.rs`.

#![allow(clippy::disallowed_methods, reason = "stories are files, and a flag rewrites them")]

mod script;

use std::fs;
use std::path::{Path, PathBuf};

use script::Failure;

/// A story that was not found is a story that is not told.
const STORIES_MIN: usize = 25;

#[test]
fn every_story_goes_as_it_is_told() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let update = std::env::var("UPDATE_SCRIPTS").is_ok_and(|flag| flag == "1");
    let mut stories: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    stories.sort();
    let mut failures: Vec<Failure> = Vec::new();
    for path in &stories {
        let name = path.file_name().unwrap().to_string_lossy();
        let name = format!("tests/scripts/{name}");
        if path.extension().is_none_or(|extension| extension != "txt") {
            failures.push(Failure::fault(&name, 1, "this is no story; its name must end in .txt"));
            continue;
        }
        let told = fs::read_to_string(path).unwrap();
        let (happened, found) = script::play(&name, &told);
        let is_playable = !found.iter().any(Failure::is_fault);
        if update && is_playable && happened != told {
            fs::write(path, happened).unwrap();
        }
        if !(update && is_playable) {
            failures.extend(found);
        }
    }
    assert!(stories.len() >= STORIES_MIN, "only {} stories were found", stories.len());
    let count = failures.len();
    let text: String = failures.iter().map(|failure| format!("\n{failure}\n")).collect();
    assert!(failures.is_empty(), "{count} blocks went otherwise:\n{text}");
}

#[test]
fn a_story_that_cannot_be_played_says_where() {
    let faults = [
        ("# Law.\n\nsubmit q\nfrobnicate q\n----\n", "s:4: the verb `frobnicate` is not known"),
        ("# Law.\n\nsubmit q colour=red\n----\n", "s:3: `colour=` is not known here"),
        ("# Law.\n\nlease w q q\n----\n", "s:3: `q` is not known here"),
        ("# Law.\n\nwait 30\n----\n", "s:3: `30` is no span of time"),
        ("# Law.\n\nsubmit \"q\n----\n", "s:3: a quote is not closed"),
        ("# Law.\n\nsubmit q priority=101\n----\n", "s:3: the door would refuse this"),
        ("wait 1s\n----\nnow 1s\n", "s:1: begin with `# `"),
    ];
    for (told, expected) in faults {
        let (_, failures) = script::play("s", told);
        let found = failures.iter().map(Failure::to_string).collect::<Vec<_>>();
        assert!(failures[0].is_fault() && found[0].starts_with(expected), "{found:?}");
    }
}

#[test]
fn what_happened_is_shown_and_can_be_written_down() {
    let told = "# Law.\n\nwait 1s\nwait 90s\n----\nnow 2s\nnow 1m31s\n\nwait 1s\n";
    let (happened, failures) = script::play("s", told);
    let differences: Vec<_> = failures.iter().map(Failure::to_string).collect();
    let head = "expected (-), happened (+)";
    assert_eq!(differences[0], format!("s:3: {head}\n  - now 2s\n  + now 1s\n    now 1m31s\n"));
    assert_eq!(differences[1], format!("s:9: {head}\n  + now 1m32s\n"));
    let (again, failures) = script::play("s", &happened);
    assert!(failures.is_empty() && again == happened, "{happened}");
}

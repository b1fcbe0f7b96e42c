//! Every verb says what it does, with examples.

use std::process::Command;

const VERBS: &[&[&str]] = &[
    &[],
    &["serve"],
    &["dev"],
    &["submit"],
    &["task"],
    &["task", "get"],
    &["task", "list"],
    &["task", "cancel"],
    &["task", "retry"],
    &["task", "explain"],
    &["task", "history"],
    &["watch"],
    &["queue"],
    &["queue", "list"],
    &["queue", "pause"],
    &["queue", "resume"],
    &["queue", "configure"],
    &["queue", "delete"],
    &["worker"],
    &["worker", "exec"],
    &["worker", "http"],
    &["worker", "list"],
    &["bench"],
    &["history"],
    &["snapshot"],
    &["backup"],
    &["restore"],
    &["doctor"],
    &["workflow"],
    &["workflow", "check"],
    &["workflow", "put"],
    &["workflow", "list"],
    &["workflow", "get"],
    &["workflow", "delete"],
    &["run"],
    &["run", "start"],
    &["run", "get"],
    &["run", "list"],
    &["run", "cancel"],
    &["run", "unpark"],
    &["run", "signal"],
    &["run", "graph"],
    &["run", "tokens"],
    &["run", "history"],
    &["run", "redecide"],
    &["status"],
    &["completions"],
];

fn help(verb: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for name in ["COLUMNS", "TENURE_SERVER", "TENURE_API_KEY"] {
        command.env_remove(name);
    }
    let output = command.args(verb).arg("--help").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{verb:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_verb_has_help_with_examples() {
    for verb in VERBS {
        let text = help(verb);
        assert!(text.contains("Examples:\n  "), "{verb:?}");
        let name = ["help"].iter().chain(*verb).copied().collect::<Vec<_>>().join("-");
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn no_verb_is_forgotten_here() {
    for verb in VERBS {
        let text = help(verb);
        let Some((_, commands)) = text.split_once("Commands:\n") else { continue };
        let named = commands.lines().take_while(|line| !line.is_empty());
        for name in named.filter_map(|line| line.split_whitespace().next()) {
            let path: Vec<_> = verb.iter().copied().chain([name]).collect();
            // The verbs of the log have tests of their own.
            let is_known = matches!(name, "help" | "wal") || VERBS.contains(&path.as_slice());
            assert!(is_known, "{path:?}");
        }
    }
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        let output = command.args(["completions", shell]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("submit") && text.contains("max-failures"), "{shell}: {text}");
    }
}

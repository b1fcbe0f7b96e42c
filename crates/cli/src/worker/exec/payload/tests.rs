//! What is refused, then what is not.

use super::*;

fn refusal(payload: &str) -> String {
    read(payload.as_bytes(), Accepts::Argv).unwrap_err()
}

#[test]
fn what_cannot_be_run_is_refused_with_a_sentence() {
    for (payload, says) in [
        ("", "not JSON"),
        ("\u{0}", "not JSON"),
        ("null", "must be an object"),
        ("[\"echo\"]", "must be an object"),
        ("{}", "no `argv`"),
        (r#"{"argv": []}"#, "at least one"),
        (r#"{"argv": "echo hello"}"#, "must be a list"),
        (r#"{"argv": ["echo", 1]}"#, "argv[1]"),
        (r#"{"argv": [""]}"#, "must not be empty"),
        (r#"{"argv": ["a\u0000b"]}"#, "NUL"),
        (r#"{"argv": ["a"], "command": "a"}"#, "give one of them"),
        (r#"{"command": "echo $HOME"}"#, "--shell"),
        (r#"{"command": 1}"#, "must be a string"),
        (r#"{"argv": ["a"], "env": []}"#, "object of strings"),
        (r#"{"argv": ["a"], "env": {"N": 1}}"#, "put it in quotes"),
        (r#"{"argv": ["a"], "env": {"": "x"}}"#, "name of a variable"),
        (r#"{"argv": ["a"], "env": {"A=B": "x"}}"#, "name of a variable"),
        (r#"{"argv": ["a"], "env": {"A": "\u0000"}}"#, "NUL"),
        (r#"{"argv": ["a"], "cwd": 1}"#, "path of a folder"),
        (r#"{"argv": ["a"], "cwd": ""}"#, "path of a folder"),
    ] {
        let refusal = refusal(payload);
        assert!(refusal.contains(says), "{payload}: {refusal}");
    }
    let deep = "[".repeat(100_000);
    assert!(refusal(&deep).contains("not JSON"));
    assert!(read(b"\xff\xfe", Accepts::Argv).is_err());
}

#[test]
fn a_whole_payload_is_read() {
    let payload = br#"{"argv": ["wc", "-c"], "env": {"A": "1"}, "stdin": {"n": 1.50}, "cwd": "/",
        "note": "the submitter's own"}"#;
    let job = read(payload, Accepts::Argv).unwrap();
    let expected = Job {
        argv: vec!["wc".to_owned(), "-c".to_owned()],
        env: vec![("A".to_owned(), "1".to_owned())],
        stdin: Some(br#"{"n": 1.50}"#.to_vec()),
        cwd: Some(PathBuf::from("/")),
    };
    assert_eq!(job, expected);
}

#[test]
fn a_command_goes_to_a_shell_only_where_that_is_accepted() {
    let job = read(br#"{"command": "echo $HOME"}"#, Accepts::ArgvAndShell).unwrap();
    assert_eq!(job.argv, ["sh", "-c", "echo $HOME"]);
}

#[test]
fn text_goes_to_stdin_as_it_is() {
    let stdin = |json: &str| {
        let payload = format!(r#"{{"argv": ["cat"], "stdin": {json}}}"#);
        read(payload.as_bytes(), Accepts::Argv).unwrap().stdin
    };
    assert_eq!(stdin(r#""a\n""#), Some(b"a\n".to_vec()));
    assert_eq!(stdin("[1, 2]"), Some(b"[1, 2]".to_vec()));
    assert_eq!(stdin("null"), None);
}

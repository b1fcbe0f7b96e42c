//! `tenure wal`, as a user runs it: the real binary on a real folder.
//!
//! Proves P12.
#![allow(clippy::unwrap_used)]

mod trimmed;
mod verify;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::support::{Folder, Ran, SEGMENT_BYTES, Story, tenure};
use serde_json::{Value, json};

/// Runs a verb on a folder, which must come out of it as it went in.
fn wal(verb: &str, folder: &Folder, more: &[&str]) -> Ran {
    let before = folder.contents();
    let ran = tenure(&[&["wal", verb, "--data", folder.path()], more].concat());
    assert_eq!(folder.contents(), before, "{verb} {more:?} changed the folder");
    ran
}

fn json_lines(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn stat(folder: &Folder) -> Value {
    let ran = wal("stat", folder, &["-o", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_dump_has_nothing_that_a_terminal_would_act_on() {
    let mut server = crate::server::Server::start("dump-plain");
    let text = "a\u{9b}2J\u{1b}[31m\u{7f}\u{202e}\u{2066}\u{61c}\u{200f}z";
    let (status, _) = server.post("/v1/tasks", &json!({"payload": text}));
    assert_eq!(status, 201);
    let (_, leases) = server.post("/v1/leases", &json!({"worker": "w", "queues": ["default"]}));
    let failed = json!({"lease_id": leases["leases"][0]["lease_id"], "reason": text});
    assert_eq!(server.post("/v1/tasks/1/fail", &failed).0, 200);
    server.kill();
    let ran = tenure(&["wal", "dump", "--data", server.folder.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let acts =
        |c: char| c.is_control() && c != '\n' || "\u{202e}\u{2066}\u{61c}\u{200f}".contains(c);
    assert!(!ran.stdout.contains(acts), "{:?}", ran.stdout);
    let lines = json_lines(&ran);
    let failed = lines.iter().find(|line| line["event"] == "ReportsApplied").unwrap();
    assert!(failed.to_string().contains("31m"), "{failed}");
    assert_eq!(lines[0]["tasks"][0]["payload"], text, "its meaning is the same");
}

#[test]
fn a_dump_has_every_record_on_a_line_of_its_own() {
    let folder = Folder::new("dump");
    Story::lifecycle(&folder);
    let ran = wal("dump", &folder, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let lines: Vec<_> = ran.stdout.lines().collect();
    let expected = [
        concat!(
            r#"{"lsn":1,"at":"2001-09-09T01:46:40.000Z","event":"TaskCreated","tasks":[{"task_id":1,"#,
            r#""queue":"mail","priority":0,"payload":{"to":"ada@example.org","cc":[1.50]},"#,
            r#""not_before":null,"clock":"log","lease_ms":30000,"max_failures":20,"#,
            r#""max_expiries":10,"max_attempts":null,"backoff":null,"total_timeout_ms":null,"#,
            r#""attempt_timeout_ms":null,"deadline_at":null,"key":null,"submit_hash":null,"#,
            r#""key_free_at":null,"key_from":null,"tags":{},"traceparent":null,"name":null},"#,
            r#"{"task_id":2,"queue":"mail","priority":0,"#,
            r#""payload_base64":"/wD+","not_before":null,"clock":"log","lease_ms":30000,"#,
            r#""max_failures":20,"max_expiries":10,"max_attempts":null,"backoff":null,"#,
            r#""total_timeout_ms":null,"attempt_timeout_ms":null,"deadline_at":null,"key":null,"#,
            r#""submit_hash":null,"key_free_at":null,"key_from":null,"tags":{},"traceparent":null,"name":null}]}"#
        ),
        concat!(
            r#"{"lsn":2,"at":"2001-09-09T01:46:40.000Z","event":"LeaseGranted","worker":"anna","#,
            r#""grants":[{"task_id":1,"queue":"mail","priority":0,"attempt":1,"previous":1,"#,
            r#""lease_id":1,"lease_ms":30000,"expires_at":"2001-09-09T01:47:10.000Z","#,
            r#""attempt_deadline_at":null}]}"#
        ),
        concat!(
            r#"{"lsn":3,"at":"2001-09-09T01:47:00.000Z","event":"ReportsApplied","reports":[{"#,
            r#""event":"LeaseExtended","task_id":1,"#,
            r#""lease_id":1,"expires_at":"2001-09-09T01:47:30.000Z"}]}"#
        ),
        concat!(
            r#"{"lsn":4,"at":"2001-09-09T01:47:30.000Z","event":"LeaseExpired","leases":[{"#,
            r#""task_id":1,"queue":"mail","priority":0,"attempt":1,"previous":2,"lease_id":1,"#,
            r#""worker":"anna","to":"WAITING","expiries":1,"cause":"ran_out","#,
            r#""failures":null,"not_before":null}]}"#
        ),
        concat!(
            r#"{"lsn":5,"at":"2001-09-09T01:47:30.000Z","event":"LeaseGranted","worker":"ben","#,
            r#""grants":[{"task_id":1,"queue":"mail","priority":0,"attempt":2,"previous":4,"#,
            r#""lease_id":2,"lease_ms":30000,"expires_at":"2001-09-09T01:48:00.000Z","#,
            r#""attempt_deadline_at":null}]}"#
        ),
        concat!(
            r#"{"lsn":6,"at":"2001-09-09T01:47:30.000Z","event":"ReportsApplied","reports":[{"#,
            r#""event":"StaleReportRejected","task_id":1,"#,
            r#""queue":"mail","priority":0,"attempt":2,"previous":5,"lease_id":1,"#,
            r#""state":"LEASED"}]}"#
        ),
        concat!(
            r#"{"lsn":7,"at":"2001-09-09T01:47:30.000Z","event":"ReportsApplied","reports":[{"#,
            r#""event":"TaskCompleted","task_id":1,"#,
            r#""queue":"mail","priority":0,"attempt":2,"previous":6,"lease_id":2,"#,
            r#""worker":"ben","output":"sent"}]}"#
        ),
    ];
    for (line, expected) in lines.iter().zip(expected) {
        assert_eq!(*line, expected);
    }
    assert_eq!(lines.len(), expected.len());
}

#[test]
fn a_dump_starts_and_stops_where_it_is_told() {
    let folder = Folder::new("range");
    Story::lifecycle(&folder);
    let lsns = |more: &[&str]| -> Vec<u64> {
        let ran = wal("dump", &folder, more);
        assert_eq!(ran.code, 0);
        json_lines(&ran).iter().map(|line| line["lsn"].as_u64().unwrap()).collect()
    };
    assert_eq!(lsns(&["--from", "3", "--limit", "2"]), [3, 4]);
    assert_eq!(lsns(&["--from", "6"]), [6, 7]);
    assert_eq!(lsns(&["--limit", "1"]), [1]);
    assert!(lsns(&["--limit", "0"]).is_empty());
    assert!(lsns(&["--from", "8"]).is_empty());
}

#[test]
fn a_dump_with_a_limit_reads_no_further() {
    let folder = Folder::new("limit");
    let written = Story::lifecycle(&folder);
    // The third record is damaged; nobody who wants less should hear of it.
    let third = written.frames[2];
    folder.flip_byte(third.segment, third.offset + 100);
    for limit in ["1", "2"] {
        let ran = wal("dump", &folder, &["--limit", limit]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "--limit {limit}");
        assert_eq!(json_lines(&ran).len().to_string(), limit);
    }
    let ran = wal("dump", &folder, &["--limit", "3"]);
    assert_eq!((ran.code, json_lines(&ran).len()), (65, 2), "{}", ran.stderr);
    assert_eq!(wal("dump", &folder, &["--from", "3", "--limit", "1"]).code, 65);
}

#[test]
fn the_numbers_of_stat_add_up() {
    let folder = Folder::new("stat");
    let written = Story::lifecycle(&folder);
    let stat = stat(&folder);
    assert_eq!(stat["records"], 7);
    assert_eq!(stat["record_bytes"], written.record_bytes);
    // Seven with records, a mark, and the word of the first segment that the log goes on.
    assert_eq!((&stat["frames"], &stat["marks"]), (&json!(9), &json!(1)));
    assert_eq!((&stat["first_lsn"], &stat["last_lsn"]), (&json!(1), &json!(7)));
    assert_eq!(stat["first_at"], "2001-09-09T01:46:40.000Z");
    assert_eq!(stat["last_at"], "2001-09-09T01:47:30.000Z");
    assert_eq!(stat["events"]["LeaseGranted"]["records"], 2);
    assert_eq!(stat["events"]["ReportsApplied"]["records"], 3);
    assert_eq!(stat["events"].as_object().unwrap().len(), 4);
    assert_eq!(stat["notes"], json!([]));
    assert_eq!(stat["log_id"], "00000000000000000000000000000007");
    let segments = stat["segments"].as_array().unwrap();
    assert!(segments.len() >= 2, "{segments:?}");
    let (last, sealed) = segments.split_last().unwrap();
    assert!(sealed.iter().all(|segment| segment["state"] == "sealed"));
    assert_eq!(
        (&last["state"], &last["marks"], &last["last_lsn"]),
        (&json!("open"), &json!(1), &Value::Null)
    );
    for field in ["frames", "records", "used_bytes", "total_bytes"] {
        let sum: u64 = segments.iter().map(|segment| segment[field].as_u64().unwrap()).sum();
        assert_eq!(stat[field], sum, "{field}");
    }
    assert_eq!((&sealed[0]["first_lsn"], &sealed[0]["last_lsn"]), (&json!(1), &json!(7)));
    assert_eq!(stat["total_bytes"], SEGMENT_BYTES * segments.len() as u64);
}

#[test]
fn the_table_says_the_same_and_draws_the_segments() {
    let folder = Folder::new("table");
    Story::lifecycle(&folder);
    let ran = wal("stat", &folder, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    for part in [
        "records   7, ",
        "LSN 1 to 7",
        "time      2001-09-09T01:46:40.000Z to 2001-09-09T01:47:30.000Z",
        "segment-0000000000000001.wal  sealed",
        "LeaseGranted          2",
        "# used, m with a mark, ! torn, . free",
    ] {
        assert!(ran.stdout.contains(part), "no {part:?} in\n{}", ran.stdout);
    }
    let bars: Vec<_> = ran.stdout.lines().filter(|line| line.contains('[')).collect();
    assert!(bars.last().unwrap().contains('m'), "{bars:?}");
    assert!(!ran.stdout.contains('\u{1b}'), "a color");
}

#[test]
fn a_folder_without_a_log_is_empty_and_not_wrong() {
    let folder = Folder::new("empty");
    let dump = wal("dump", &folder, &[]);
    assert_eq!((dump.code, dump.stdout.as_str(), dump.stderr.as_str()), (0, "", ""));
    assert!(wal("stat", &folder, &[]).stdout.ends_with("has no log yet.\n"));
    let stat = stat(&folder);
    assert_eq!((&stat["records"], &stat["segments"]), (&json!(0), &json!([])));
    assert_eq!((&stat["first_lsn"], &stat["log_id"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_log_without_records_has_no_times() {
    let folder = Folder::new("fresh");
    drop(folder.open());
    let ran = wal("stat", &folder, &[]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains("records   0\n"), "{}", ran.stdout);
    assert_eq!(stat(&folder)["segments"][0]["last_lsn"], Value::Null);
}

#[test]
fn a_missing_folder_is_refused_and_not_made() {
    let folder = Folder::new("missing");
    let missing = format!("{}/nowhere", folder.path());
    let file = format!("{}/file", folder.path());
    std::fs::write(&file, "").unwrap();
    for verb in ["dump", "stat", "verify"] {
        for path in [&missing, &file] {
            let ran = tenure(&["wal", verb, "--data", path]);
            assert_eq!((ran.code, ran.stdout.as_str()), (66, ""));
            assert!(
                ran.stderr.starts_with("tenure: cannot use the data folder "),
                "{}",
                ran.stderr
            );
            assert!(ran.stderr.contains("give another with --data"), "{}", ran.stderr);
            assert_eq!(ran.stderr.lines().count(), 1);
        }
    }
    assert!(!std::path::Path::new(&missing).exists());
}

#[test]
fn a_corrupt_segment_is_refused_with_file_offset_and_lsn() {
    let folder = Folder::new("corrupt");
    let written = Story::lifecycle(&folder);
    let second = written.frames[1];
    folder.flip_byte(second.segment, second.offset + 100);
    for verb in ["dump", "stat"] {
        let ran = wal(verb, &folder, &[]);
        assert_eq!(ran.code, 65, "{}", ran.stderr);
        let place = format!("segment-0000000000000001.wal at offset {}, LSN 2", second.offset);
        assert!(ran.stderr.contains("corrupt") && ran.stderr.contains(&place), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1);
    }
    let before_it = json_lines(&wal("dump", &folder, &[]));
    assert_eq!(before_it.len(), 1, "what comes before is good and is shown");
}

#[test]
fn a_torn_end_is_a_note() {
    let folder = Folder::new("torn");
    let written = Story::lifecycle(&folder);
    let end = written.end;
    folder.write(end.segment, end.offset, b"half a frame");
    let dump = wal("dump", &folder, &[]);
    assert_eq!((dump.code, json_lines(&dump).len()), (0, 7));
    let stat = stat(&folder);
    let note = stat["notes"][0].as_str().unwrap();
    let place = format!("torn frame at offset {}, LSN 8", end.offset);
    for said in [&dump.stderr, note] {
        assert!(said.contains(&place) && said.contains("never acknowledged"), "{said}");
        assert!(said.contains("if a server is running"), "{said}");
    }
    let segments = stat["segments"].as_array().unwrap();
    assert_eq!(segments.last().unwrap()["state"], "torn");
    assert!(wal("stat", &folder, &[]).stdout.contains('!'));

    // The next start seals it and goes on; the scar stays in sight.
    drop(folder.open());
    let stat = self::stat(&folder);
    let states: Vec<_> =
        stat["segments"].as_array().unwrap().iter().map(|s| s["state"].as_str().unwrap()).collect();
    assert!(states.ends_with(&["torn", "open"]), "{states:?}");
    let note = stat["notes"][0].as_str().unwrap();
    assert!(note.contains("torn once") && !note.contains("server is running"), "{note}");
}

#[test]
fn one_bad_header_is_a_note() {
    let folder = Folder::new("header");
    Story::lifecycle(&folder);
    folder.flip_byte(1, 40);
    let ran = wal("dump", &folder, &[]);
    assert_eq!((ran.code, json_lines(&ran).len()), (0, 7));
    assert!(ran.stderr.contains("one of the two headers"), "{}", ran.stderr);
    assert_eq!(stat(&folder)["notes"].as_array().unwrap().len(), 1);
}

#[test]
fn a_record_that_this_binary_does_not_know_is_named() {
    let folder = Folder::new("unknown");
    Story::lifecycle(&folder);
    folder.append(&[8, 99]);
    let ran = wal("dump", &folder, &[]);
    assert_eq!((ran.code, json_lines(&ran).len()), (65, 7));
    assert!(ran.stderr.contains("LSN 8") && ran.stderr.contains("version 99"), "{}", ran.stderr);
    assert_eq!(wal("stat", &folder, &[]).code, 65);
}

#[test]
fn a_log_that_is_being_written_can_be_read() {
    let folder = Folder::new("in-use");
    Story::lifecycle(&folder);
    let _writer = folder.open();
    assert_eq!(json_lines(&wal("dump", &folder, &[])).len(), 7);
    assert_eq!(stat(&folder)["records"], 7);
}

#[test]
fn a_read_only_folder_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("read-only");
    Story::lifecycle(&folder);
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for file in folder.files() {
        set(&file, 0o444);
    }
    set(folder.path().as_ref(), 0o555);
    let ran = wal("dump", &folder, &[]);
    set(folder.path().as_ref(), 0o755);
    assert_eq!((ran.code, json_lines(&ran).len()), (0, 7));
}

#[test]
fn a_closed_pipe_is_the_end_and_no_failure() {
    let folder = Folder::new("pipe");
    Story::flood(&folder);
    let mut child = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["wal", "dump", "--data", folder.path()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    // Reads one line, and closes the pipe with the reader. The log is larger than any pipe holds.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with(r#"{"lsn":1,"#), "{first}");
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

#[test]
fn wrong_usage_ends_with_2_and_help_with_0() {
    let wrong: [&[&str]; 6] = [
        &[],
        &["wal"],
        &["wal", "dump"],
        &["wal", "dmup", "--data", "."],
        &["wal", "dump", "--data", ".", "--from", "x"],
        &["wal", "stat", "--data", ".", "-o", "xml"],
    ];
    for args in wrong {
        let ran = tenure(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
        assert!(!ran.stderr.is_empty());
    }
    let help: [&[&str]; 5] = [
        &["--help"],
        &["wal", "--help"],
        &["wal", "dump", "--help"],
        &["wal", "stat", "--help"],
        &["wal", "verify", "--help"],
    ];
    for args in help {
        let ran = tenure(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        assert!(ran.stdout.contains("Examples:"), "{args:?}");
    }
}

//! What a payload may say, and what comes of it.

use serde_json::{Value, json};

use crate::exec::crew::{LONG, Worker};
use crate::server::Server;

#[test]
fn stdout_is_the_output() {
    let server = Server::start("exec-output");
    let _worker = Worker::exec(&server, &["--slots", "4"]);
    let cases = [
        (json!(["echo", "hello"]), json!("hello")),
        (json!(["echo", "$(id)"]), json!("$(id)")),
        (
            json!(["echo", "a; id | cat > /dev/null && `id`"]),
            json!("a; id | cat > /dev/null && `id`"),
        ),
        (json!(["printf", "{\"a\": [1, \"2.50\"]}\n"]), json!({"a": [1, "2.50"]})),
        (json!(["printf", "17"]), json!(17)),
        (json!(["printf", "two\\nlines\\n\\n"]), json!("two\nlines\n")),
        (json!(["printf", "a\\377b"]), json!("a\u{fffd}b")),
        (json!(["true"]), Value::Null),
        (json!(["sh", "-c", "echo seen; echo unseen >&2"]), json!("seen")),
    ];
    let ids: Vec<_> = cases.iter().map(|(argv, _)| server.submit(&json!({"argv": argv}))).collect();
    for (id, (argv, output)) in ids.iter().zip(&cases) {
        let task = server.ended(*id);
        assert_eq!((&task["state"], &task["output"]), (&json!("COMPLETED"), output), "{argv}");
        assert_eq!(task["attempt"], 1);
    }
    server.check_all(&ids);
}

#[test]
fn what_cannot_work_is_a_final_failure_that_says_why() {
    let server = Server::start("exec-final");
    let _worker = Worker::exec(&server, &["--slots", "4"]);
    let long = "x".repeat(200_000);
    let cases = [
        (json!({"argv": ["there-is-no-such-program"]}), "cannot_start", "there-is-no-such-program"),
        (json!({"argv": ["/etc/passwd"]}), "cannot_start", "ermission denied"),
        (json!({"argv": ["/"]}), "cannot_start", "cannot be started"),
        (json!({"argv": ["echo", long]}), "cannot_start", "cannot be started"),
        (json!({"argv": ["pwd"], "cwd": "/there/is/no/such"}), "cannot_start", "/there/is/no/such"),
        (json!({"argv": []}), "invalid_payload", "at least one"),
        (json!({"argv": ["echo", {}]}), "invalid_payload", "argv[1]"),
        (json!({"argv": ["a\u{0}b"]}), "invalid_payload", "NUL"),
        (json!({"argv": ["true"], "env": {"A": 1}}), "invalid_payload", "\"A\""),
        (json!({"command": "echo hello"}), "invalid_payload", "--shell"),
        (json!("echo hello"), "invalid_payload", "must be an object"),
        (Value::Null, "invalid_payload", "must be an object"),
    ];
    let ids: Vec<_> = cases.iter().map(|(payload, ..)| server.submit(payload)).collect();
    for (id, (_, code, says)) in ids.iter().zip(&cases) {
        let task = server.ended(*id);
        let error = &task["error"];
        assert_eq!((&task["state"], &task["attempt"]), (&json!("FAILED"), &json!(1)), "{error}");
        assert_eq!(error["code"], *code, "{error}");
        assert!(error["message"].as_str().unwrap().contains(says), "{says}: {error}");
    }
    server.check_all(&ids);
}

#[tokio::test]
async fn a_payload_that_is_no_json_is_refused_too() {
    let server = Server::start("exec-bytes");
    let _worker = Worker::exec(&server, &[]);
    let client = tenure_sdk::Client::connect(format!("http://{}", server.address)).await.unwrap();
    let task = tenure_sdk::NewTask::new("default", b"\xff\x00{".to_vec());
    let id = client.tasks().submit(task).await.unwrap().id;
    let task = client.tasks().wait(id, LONG).await.unwrap();
    assert_eq!(task.error.unwrap().code, "invalid_payload");
}

#[test]
fn an_exit_code_is_a_failure_with_the_end_of_stderr() {
    let server = Server::start("exec-exit");
    let _worker = Worker::exec(&server, &["--slots", "4"]);
    let once = json!({"max_failures": 1});
    let sh = |script: &str| server.submit_with(&json!({"argv": ["sh", "-c", script]}), &once);
    let plain = sh("echo lost; echo 'no such customer' >&2; exit 3");
    let silent = sh("exit 255");
    let killed = sh("kill -KILL $$");
    let long = sh("head -c 100000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 7");
    let binary = sh("head -c 9000 /dev/zero | tr '\\0' '\\377' >&2; exit 1");
    let error = |id: u64| {
        let task = server.ended(id);
        assert_eq!((&task["state"], &task["output"]), (&json!("FAILED"), &Value::Null));
        let text = |field: &str| task["error"][field].as_str().unwrap().to_owned();
        (text("code"), text("message"))
    };
    assert_eq!(error(plain), ("exit_3".to_owned(), "no such customer".to_owned()));
    assert_eq!(error(silent).0, "exit_255");
    assert!(error(silent).1.contains("wrote nothing to stderr"));
    assert_eq!(error(killed).0, "signal_9");
    let (code, reason) = error(long);
    assert_eq!(code, "exit_7");
    assert!(reason.ends_with("xxthe end") && (4_000..=4_096).contains(&reason.len()));
    assert!(error(binary).1.len() <= 4_096);

    let again = server.sh("test $TENURE_ATTEMPT = 2");
    let task = server.ended(again);
    assert_eq!((&task["state"], &task["failures"]), (&json!("COMPLETED"), &json!(1)));
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_child_knows_its_task_and_not_the_key() {
    let server = Server::start("exec-env");
    let envs = [
        ("TENURE_API_KEY", "the-secret"),
        ("FROM_WORKER", "yes"),
        ("TRACEPARENT", "of the worker"),
    ];
    let mut worker = Worker::start(&server, "exec", &["--slots", "2"], &envs);
    let script = "echo $TENURE_TASK_ID,$TENURE_LEASE_ID,$TENURE_ATTEMPT,$TENURE_QUEUE,\
                  $FROM_WORKER,$FROM_PAYLOAD,$TENURE_API_KEY,$TRACEPARENT,$TENURE_TRACEPARENT";
    let env = json!({"FROM_PAYLOAD": "$(id)", "TENURE_TASK_ID": "forged"});
    let payload = json!({"argv": ["sh", "-c", script], "env": env});
    let id = server.submit(&payload);
    let lease = |id: u64| {
        let (_, history) = server.get(&format!("/v1/tasks/{id}/history"));
        history["items"][1]["lease_id"].as_u64().unwrap()
    };
    let output = server.ended(id)["output"].clone();
    assert_eq!(output, format!("{id},{},1,default,yes,$(id),,,", lease(id)));
    let traced = server.submit_with(&payload, &json!({"traceparent": TRACE}));
    let output = server.ended(traced)["output"].clone();
    let twice = format!(",{TRACE},{TRACE}");
    assert!(output.as_str().unwrap().ends_with(&twice), "{output}");
    worker.kill();

    let _clean = Worker::start(&server, "exec", &["--clean-env"], &envs);
    let id = server.submit(&json!({"argv": ["env"], "env": {"FROM_PAYLOAD": "x"}}));
    let output = server.ended(id)["output"].as_str().unwrap().to_owned();
    assert!(output.contains("PATH=") && output.contains("FROM_PAYLOAD=x"), "{output}");
    assert!(!output.contains("FROM_WORKER") && !output.contains("the-secret"), "{output}");
}

#[test]
fn a_child_gets_stdin_and_a_folder() {
    let server = Server::start("exec-stdin");
    let _worker = Worker::exec(&server, &["--cwd", "/usr", "--slots", "4"]);
    let output = |payload: &Value| server.ended(server.submit(payload))["output"].clone();
    assert_eq!(output(&json!({"argv": ["cat"], "stdin": {"n": 1}})), json!({"n": 1}));
    assert_eq!(output(&json!({"argv": ["cat"], "stdin": "line\n"})), "line");
    assert_eq!(output(&json!({"argv": ["cat"]})), Value::Null, "nothing is there to be read");
    let large = "x".repeat(900_000);
    assert_eq!(output(&json!({"argv": ["wc", "-c"], "stdin": large})), 900_000);
    assert_eq!(output(&json!({"argv": ["true"], "stdin": large})), Value::Null, "unread");
    assert_eq!(output(&json!({"argv": ["pwd"]})), "/usr");
    assert_eq!(output(&json!({"argv": ["pwd"], "cwd": "bin/.."})), "/usr");
    assert_eq!(output(&json!({"argv": ["pwd"], "cwd": "/"})), "/");
}

#[test]
fn a_shell_is_used_only_where_it_is_allowed() {
    let server = Server::start("exec-shell");
    let _worker = Worker::exec(&server, &["--shell"]);
    let id = server.submit(&json!({"command": "echo $((20 + 3)) | tr 2 4"}));
    assert_eq!(server.ended(id)["output"], 43);
    let id = server.submit(&json!({"argv": ["echo", "$((20 + 3))"]}));
    assert_eq!(server.ended(id)["output"], "$((20 + 3))", "argv never goes through it");
}

#[test]
fn output_without_end_is_cut_off_and_takes_no_memory() {
    let server = Server::start("exec-large");
    let worker = Worker::exec(&server, &["--slots", "2"]);
    let endless = server.submit(&json!({"argv": ["yes"]}));
    let both = server.sh("yes >&2 & yes");
    for id in [endless, both] {
        let task = server.ended(id);
        assert_eq!((&task["state"], &task["attempt"]), (&json!("FAILED"), &json!(1)));
        assert_eq!(task["error"]["code"], "output_too_large");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", worker.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kib < 256 << 10, "{peak_kib} KiB");
    drop(worker);

    let _worker = Worker::exec(&server, &["--output-max", "10"]);
    let fits = server.submit(&json!({"argv": ["printf", "1234567890"]}));
    assert_eq!(server.ended(fits)["output"], 1_234_567_890);
    let over = server.submit(&json!({"argv": ["printf", "12345678901"]}));
    assert_eq!(server.ended(over)["error"]["code"], "output_too_large");
}

#[test]
fn the_largest_output_is_taken_and_one_byte_more_is_not() {
    let server = Server::start("exec-limit");
    let _worker = Worker::exec(&server, &["--slots", "2"]);
    let text = |bytes: u32| server.sh(&format!("head -c {bytes} /dev/zero | tr '\\0' x"));
    // As a JSON string it has two quotes more.
    let (fits, over) = (text((1 << 20) - 2), text((1 << 20) - 1));
    assert_eq!(server.ended(fits)["output"].as_str().unwrap().len(), (1 << 20) - 2);
    assert_eq!(server.ended(over)["error"]["code"], "output_too_large");
}

#[test]
fn a_line_is_told_when_a_task_begins_and_ends_unless_quiet() {
    let server = Server::start("exec-log");
    let talks = Worker::exec(&server, &[]);
    server.ended(server.submit(&json!({"argv": ["echo", "hidden-argument"]})));
    let log = talks.log();
    assert!(log.contains("begins: \"echo\"") && log.contains("done"), "{log}");
    assert!(!log.contains("hidden-argument"), "{log}");
    drop(talks);
    let quiet = Worker::exec(&server, &["--quiet"]);
    server.ended(server.submit(&json!({"argv": ["echo"]})));
    assert_eq!(quiet.log(), "");
}

#[test]
fn nobody_need_read_what_a_worker_says() {
    let server = Server::start("exec-deaf");
    let _deaf = Worker::unheard(&server);
    for _ in 0..5 {
        let task = server.ended(server.submit(&json!({"argv": ["echo", "still"]})));
        assert_eq!((&task["state"], &task["attempt"]), (&json!("COMPLETED"), &json!(1)), "{task}");
    }
}

//! `tenure dev`: a server, a worker, sample tasks and sample workflows, which come only once.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::client::tenure::command;
use crate::server::get_from;

/// Starts it, looks, and stops it. Gives all that it printed.
fn dev(folder: &Path, look: impl FnOnce(&str)) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(["dev", "--listen", "127.0.0.1:0", "--data"]).arg(folder);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    stdout.read_line(&mut text).unwrap();
    let address = text.trim().strip_prefix("tenure is ready at http://").unwrap().to_owned();
    look(&address);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    stdout.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    text
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("tenure-dev-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn dev_has_sample_tasks_done_and_submits_them_once() {
    let folder = folder("tasks");
    for _ in 0..2 {
        let text = dev(&folder, |address| {
            let (status, tasks) = get_from(address, "/v1/tasks?queue=samples");
            let tasks = tasks["items"].as_array().unwrap();
            let tasks: Vec<_> = tasks.iter().filter(|task| task["run"].is_null()).collect();
            assert_eq!((status, tasks.len()), (200, 5));
            for task in tasks {
                let id = &task["id"];
                let (_, task) = get_from(address, &format!("/v1/tasks/{id}?wait_ms=60000"));
                assert_eq!(task["state"], "COMPLETED", "{task}");
            }
        });
        for word in ["tenure task list", "tenure watch", "curl -s", "in good order"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn dev_runs_the_sample_workflows_to_their_end_and_begins_them_once() {
    let folder = folder("workflows");
    for round in 0..2 {
        let text = dev(&folder, |address| {
            let (status, runs) = get_from(address, "/v1/runs");
            let runs = runs["items"].as_array().unwrap();
            assert_eq!((status, runs.len()), (200, 4));
            for run in runs {
                let (id, workflow) = (&run["id"], run["workflow"].as_str().unwrap());
                if workflow == "order" {
                    let payload = r#"{"approved": true, "by": "ada"}"#;
                    let id = id.to_string();
                    let args = ["run", "signal", &id, "approval", "--payload", payload];
                    let signaled = command(address, &args).args(["--signal-id", "1"]).output();
                    assert_eq!(signaled.unwrap().status.code(), Some(0));
                }
                let (_, run) = get_from(address, &format!("/v1/runs/{id}?wait_ms=60000"));
                assert_eq!(run["state"], "COMPLETED", "{run}");
                let expected = match workflow {
                    "order" => ("status", json!("shipped")),
                    "invoices" => ("total", json!(1665)),
                    "race" => ("from", json!("replica")),
                    "agent" => ("passed", json!(true)),
                    other => panic!("{other}"),
                };
                assert_eq!(run["output"][expected.0], expected.1, "round {round}: {run}");
            }
        });
        for word in ["tenure run graph 1", "tenure run signal 1 approval", "samples"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
    assert!(folder.join("samples/order.yaml").exists());
    std::fs::remove_dir_all(&folder).unwrap();
}

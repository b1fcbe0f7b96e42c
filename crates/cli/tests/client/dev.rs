//! `tenure dev`: a server, a worker and sample tasks, which come only once.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

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

#[test]
fn dev_has_sample_tasks_done_and_submits_them_once() {
    let folder = std::env::temp_dir().join(format!("tenure-dev-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    for _ in 0..2 {
        let text = dev(&folder, |address| {
            let (status, tasks) = get_from(address, "/v1/tasks?queue=samples");
            let tasks = tasks["items"].as_array().unwrap();
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

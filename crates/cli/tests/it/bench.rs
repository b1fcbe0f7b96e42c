//! `tenure bench` against the real server: what it says must be what the server did.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::process::Command;

use serde_json::Value;

use crate::server::Server;

fn bench(server: &Server, args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["bench", "-o", "json", "--server", &format!("http://{}", server.address)])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_lifecycle_that_it_counts_is_a_completed_task() {
    let server = Server::start("bench-counts");
    let ways: [&[&str]; 5] = [
        &["--protocol", "grpc", "--lifecycles", "1050"],
        &["--protocol", "http", "--lifecycles", "1050"],
        &["--protocol", "http", "--lifecycles", "100", "--batch", "1", "--connections", "8"],
        &["--protocol", "grpc", "--lifecycles", "20", "--rate", "500"],
        &["--protocol", "http", "--lifecycles", "20", "--rate", "500"],
    ];
    let mut asked = 0;
    for args in ways {
        let shown = bench(&server, args);
        asked += args[3].parse::<u64>().unwrap();
        for figure in ["/lifecycles_per_s", "/requests_per_s", "/latency_us/p50"] {
            assert!(shown.pointer(figure).unwrap().as_u64().unwrap() > 0, "{figure} of {args:?}");
        }
        let latency = |name| shown["latency_us"][name].as_u64().unwrap();
        assert!(latency("p50") <= latency("p99") && latency("p99") <= latency("max"));
        assert_eq!(shown["errors"], 0);
        let tasks = server.get("/v1/status").1["tasks"].clone();
        assert_eq!(tasks["COMPLETED"], asked, "after {args:?}: {tasks}");
        assert_eq!(tasks["WAITING"], 0, "after {args:?}: {tasks}");
    }
}

#[test]
fn a_disk_that_cannot_be_measured_is_named() {
    let server = Server::start("bench-probe");
    let probe = server.folder.join("nowhere");
    let output = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["bench", "--server", &format!("http://{}", server.address), "--probe"])
        .arg(&probe)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(74));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere cannot be measured"));
}

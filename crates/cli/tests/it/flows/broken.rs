//! A workflow whose definition this release no longer compiles: the server starts, the workflow does
//! not, and its runs are parked.

use serde_json::json;

use crate::client::tenure::tenure;
use crate::flows::definitions::complete;
use crate::server::Server;
use crate::support::{Folder, Story};

const OLD: &str = "
workflow: old
initial_node: work
nodes:
  - {ref: work, kind: task, task: {queue: mail}}
  - {ref: end, kind: pass}
transitions:
  - {from: work, to: end, condition: '1 == 1'}
";

#[test]
fn a_definition_that_no_longer_compiles_stops_its_workflow_and_not_the_server() {
    let folder = Folder::new("broken");
    Story::broken(&folder, OLD, "1 == 1", "1 == == 1");
    let path = crate::server::folder_of("broken");
    let _ = std::fs::remove_dir_all(&path);
    std::fs::rename(folder.path(), &path).unwrap();
    let mut server = Server::start_on(path, &[]).unwrap();
    for round in ["first", "second"] {
        let (status, shown) = server.get("/v1/workflows/old");
        assert_eq!(status, 200, "{round}: {shown}");
        assert_eq!(shown["faults"][0]["pointer"], "/transitions/0/condition", "{shown}");
        assert_eq!(shown["definition"]["transitions"][0]["condition"], "1 == == 1");
        let told = tenure(&server, &["workflow", "get", "old"]).good();
        assert!(told.contains("old 1 no longer compiles"), "{told}");
        let (status, refused) = server.post("/v1/workflows/old/runs", &json!({}));
        assert_eq!((status, &refused["code"]), (409, &json!("conflict")), "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains("no longer compiles"), "{refused}");
        let (_, run) = server.get("/v1/runs/1");
        let reason = run["parked"]["reason"].as_str().unwrap();
        assert!(reason.contains("version 1 of workflow") && reason.contains("condition"), "{run}");
        let (status, refused) = complete(&server, &json!({"task_id": 1, "lease_id": 1}), &json!(1));
        assert_eq!((status, &refused["code"]), (409, &json!("run_parked")), "{refused}");
        assert_eq!(server.post("/v1/runs/1/unpark", &json!({})).1["code"], "conflict");
        server.crash_and_come_back();
    }
    let (status, run) = server.post("/v1/runs/1/cancel", &json!({}));
    assert_eq!((status, &run["state"]), (200, &json!("CANCELED")), "{run}");
    let put = server.put_as("/v1/workflows/old", "application/yaml", OLD);
    assert_eq!((put.0, &put.1["version"]), (201, &json!(2)), "{put:?}");
    let (status, run) = server.post("/v1/workflows/old/runs", &json!({}));
    assert_eq!((status, &run["version"]), (201, &json!(2)), "{run}");
    server.kill();
    let verified = server.tenure(&["wal", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
}

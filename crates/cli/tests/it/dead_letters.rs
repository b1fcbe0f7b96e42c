//! Dead letter queues on the real binary: the setting, the copies, and the links between both.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use crate::client::tenure::tenure;
use crate::server::Server;

fn lease(server: &Server, queue: &str) -> Value {
    let body = json!({"worker": "anna", "queues": [queue], "wait_ms": 10_000});
    server.post("/v1/leases", &body).1["leases"][0].clone()
}

#[test]
fn a_task_that_fails_leaves_a_copy_that_is_worked_on_and_survives_a_kill() {
    let mut server = Server::start("dead-letters");
    let shown =
        tenure(&server, &["queue", "configure", "mail", "--dead-letter-queue", "lost"]).good();
    assert!(shown.contains("DEAD LETTERS") && shown.contains("lost"), "{shown}");
    assert_eq!(server.get("/v1/queues/lost").1["depth"], 0, "it comes with the setting");

    let task = json!({"queue": "mail", "payload": {"to": 7}, "tags": {"team": "red"}, "priority": 5,
        "max_failures": 1, "key": "k", "total_timeout_ms": 3_600_000});
    server.post("/v1/tasks", &task);
    let parked = std::thread::scope(|scope| {
        let parked = scope.spawn(|| lease(&server, "lost"));
        let lease_id = lease(&server, "mail")["lease_id"].clone();
        let fail = json!({"lease_id": lease_id, "reason": "full", "code": "E_DISK"});
        let (_, failed) = server.post("/v1/tasks/1/fail", &fail);
        assert_eq!(
            (&failed["state"], &failed["dead_letter"]["task_id"]),
            (&json!("FAILED"), &json!(2))
        );
        parked.join().unwrap()
    });
    assert_eq!((&parked["task_id"], &parked["payload"]), (&json!(2), &json!({"to": 7})));
    let (_, copy) = server.get("/v1/tasks/2");
    assert_eq!(copy["queue"], "lost");
    assert_eq!(copy["dead_letter_of"], json!({"task_id": 1}));
    assert_eq!(copy["dead_letter"], Value::Null);
    assert_eq!((&copy["priority"], &copy["tags"]), (&json!(5), &json!({"team": "red"})));
    assert_eq!(copy["error"], json!({"code": "E_DISK", "message": "full"}));
    assert_eq!((&copy["key"], &copy["total_timeout_ms"]), (&Value::Null, &Value::Null));
    assert_eq!((&copy["max_failures"], &copy["lease_ms"]), (&json!(20), &json!(30_000)));
    let (_, history) = server.get("/v1/tasks/2/history");
    assert_eq!(history["items"][0]["event"], "TaskCreated", "{history}");

    server.crash_and_come_back();
    let (_, ended) = server.get("/v1/tasks/1");
    assert_eq!(ended["dead_letter"], json!({"task_id": 2}));
    assert_eq!(server.get("/v1/tasks/2").1["dead_letter_of"], json!({"task_id": 1}));
    let shown = tenure(&server, &["task", "get", "1"]).good();
    assert!(shown.contains("dead letter") && shown.contains("task 2"), "{shown}");
    let shown = tenure(&server, &["task", "get", "2", "-o", "json"]).good();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["dead_letter_of"], json!({"task_id": 1}));
    let fail = json!({"lease_id": parked["lease_id"], "reason": "no", "retryable": false});
    let (_, failed) = server.post("/v1/tasks/2/fail", &fail);
    assert_eq!((&failed["state"], &failed["dead_letter"]), (&json!("FAILED"), &Value::Null));
}

#[test]
fn a_dead_letter_queue_is_another_queue_and_stays_while_it_is_named() {
    let server = Server::start("dead-letter-settings");
    let set = |body: &Value| server.put("/v1/queues/mail", body);
    let (status, refused) = set(&json!({"dead_letter_queue": "mail"}));
    assert_eq!((status, &refused["code"]), (400, &json!("invalid_request")), "{refused}");
    let (status, refused) = set(&json!({"dead_letter_queue": ""}));
    assert_eq!((status, &refused["code"]), (400, &json!("invalid_request")), "{refused}");
    assert_eq!(set(&json!({"dead_letter_queue": "lost"})).1["dead_letter_queue"], "lost");
    assert_eq!(set(&json!({"retention_ms": 5})).1["dead_letter_queue"], "lost", "it stays");
    let (status, refused) = server.delete("/v1/queues/lost");
    assert_eq!((status, &refused["code"]), (409, &json!("conflict")));
    assert!(refused["detail"].as_str().unwrap().contains("dead letter queue of \"mail\""));
    let both = ["queue", "configure", "mail", "--dead-letter-queue", "x", "--no-dead-letter-queue"];
    assert_ne!(tenure(&server, &both).code, 0);
    tenure(&server, &["queue", "configure", "mail", "--no-dead-letter-queue"]).good();
    assert_eq!(server.get("/v1/queues/mail").1["dead_letter_queue"], Value::Null);
    assert_eq!(tenure(&server, &["queue", "delete", "lost"]).good(), "queue lost is deleted\n");
    assert_eq!(set(&json!({"dead_letter_queue": "lost"})).1["dead_letter_queue"], "lost");
    assert_eq!(set(&json!({"dead_letter_queue": null})).1["dead_letter_queue"], Value::Null);
}

//! A server that is killed in the middle of a sample, after each of several records, and comes back:
//! the outcome is the same, and nothing that was to be done is missing.

use serde_json::{Value, json};

use crate::samples::shop::{Shop, eventually, order, plain_samples};

/// Begins a run, kills the server as soon as the log has so many more records, and brings it back.
fn start_and_kill(shop: &mut Shop, workflow: &str, input: &Value, records: u64) -> u64 {
    let before = shop.lsn();
    let id = shop.start(workflow, input);
    kill_after(shop, before + records);
    id
}

fn kill_after(shop: &mut Shop, lsn: u64) {
    eventually(&format!("LSN {lsn}"), || (shop.lsn() >= lsn).then_some(()));
    shop.server.crash_and_come_back();
}

#[test]
fn samples_that_are_killed_at_several_points_come_to_the_same_end() {
    let mut shop = Shop::open("killed");
    for (name, input, expected) in plain_samples() {
        // An undisturbed run says how many records there are.
        let before = shop.lsn();
        let id = shop.start(name, &input);
        assert_eq!(shop.output(id), expected, "{name}");
        let records = shop.lsn() - before;
        for point in [1, records / 3, records / 2, records * 3 / 4] {
            let id = start_and_kill(&mut shop, name, &input, point.max(1));
            assert_eq!(shop.output(id), expected, "{name}, killed after {point} records");
        }
    }
    shop.verify();
}

#[test]
fn an_order_that_is_killed_at_any_step_is_shipped_once_or_undone() {
    let mut shop = Shop::open("killed-order");
    for point in [1, 2, 4, 6] {
        let number = format!("lost-{point}");
        let id = start_and_kill(&mut shop, "order", &order(&number, 20, "Atlantis"), point);
        let output = shop.output(id);
        let done = json!(["reserve", "charge", "refund", "release"]);
        assert_eq!((&output["status"], &output["done"]), (&json!("canceled"), &done), "{point}");
        assert_eq!(shop.steps(&number), ["charge", "refund", "release", "reserve"]);
    }
    shop.verify();
}

#[test]
fn an_approval_survives_kills_before_and_after_it() {
    let mut shop = Shop::open("killed-approval");
    for after in [1, 2, 3] {
        let number = format!("large-{after}");
        let id = shop.start("order", &order(&number, 1200, "Lisbon"));
        shop.until(id, "WAITING");
        shop.server.crash_and_come_back();
        assert_eq!(shop.run(id)["state"], "WAITING", "it waits as before");
        let lsn = shop.lsn();
        shop.approve(id, &json!({"approved": true, "by": "ada"}));
        kill_after(&mut shop, lsn + after);
        // Whoever does not know whether it was heard says it again.
        shop.approve(id, &json!({"approved": true, "by": "ada"}));
        let shipped = json!({"status": "shipped", "approved_by": "ada", "done": ["reserve", "charge", "ship"]});
        assert_eq!(shop.output(id), shipped, "killed {after} records after the approval");
        assert_eq!(shop.steps(&number), ["charge", "reserve", "ship"]);
    }
    shop.verify();
}

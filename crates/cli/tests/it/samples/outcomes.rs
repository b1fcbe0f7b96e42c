//! What each sample comes to.

use serde_json::json;

use crate::samples::shop::{ALL, Shop, file, order, plain_samples, text};

#[test]
fn every_sample_passes_its_check() {
    for name in ALL {
        let file = file(&format!("{name}.yaml"));
        let check = std::process::Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args(["workflow", "check"])
            .arg(&file)
            .output()
            .unwrap();
        assert_eq!(check.status.code(), Some(0), "{}", text(&check.stdout));
    }
}

#[test]
fn samples_without_a_person_come_to_their_end() {
    let shop = Shop::open("plain");
    for (name, input, expected) in plain_samples() {
        let input = input.to_string();
        let waited = shop.tenure(&["run", "start", name, "--input", &input, "--wait"]);
        assert_eq!(waited.status.code(), Some(0), "{waited:?}");
        let output: serde_json::Value = serde_json::from_slice(&waited.stdout).unwrap();
        assert_eq!(output, expected, "{name}");
    }
    shop.verify();
}

#[test]
fn an_agent_that_cannot_please_gives_up() {
    let shop = Shop::open("gives-up");
    let id = shop
        .start("agent", &json!({"goal": "one two three four five six seven eight nine", "max": 1}));
    let output = shop.output(id);
    assert_eq!((&output["passed"], output["drafts"].as_array().unwrap().len()), (&json!(false), 8));
}

#[test]
fn an_order_takes_the_way_that_fits_it() {
    let shop = Shop::open("order");
    let small = shop.start("order", &order("small", 20, "Lisbon"));
    let large = shop.start("order", &order("large", 1200, "Lisbon"));
    let declined = shop.start("order", &order("declined", 1200, "Lisbon"));
    let lost = shop.start("order", &order("lost", 20, "Atlantis"));
    shop.until(large, "WAITING");
    shop.approve(large, &json!({"approved": true, "by": "ada"}));
    shop.until(declined, "WAITING");
    shop.approve(declined, &json!({"approved": false, "by": "ada"}));
    let shipped = |by: &str| json!({"status": "shipped", "approved_by": by, "done": ["reserve", "charge", "ship"]});
    assert_eq!(shop.output(small), shipped("the rules"));
    assert_eq!(shop.output(large), shipped("ada"));
    assert_eq!(
        shop.output(declined),
        json!({
            "status": "canceled", "approved_by": "ada", "why": "ada said no",
            "done": ["reserve", "release"],
        })
    );
    assert_eq!(
        shop.output(lost),
        json!({
            "status": "canceled", "approved_by": "the rules", "why": "no carrier goes to Atlantis",
            "done": ["reserve", "charge", "refund", "release"],
        })
    );
    assert_eq!(shop.steps("lost"), ["charge", "refund", "release", "reserve"]);
    assert_eq!(shop.steps("large"), ["charge", "reserve", "ship"]);
    shop.verify();
}

#[test]
fn an_order_with_a_bad_input_is_no_run() {
    let shop = Shop::open("bad-input");
    let refused = shop.tenure(&["run", "start", "order", "--input", "{\"order\": \"x\"}"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(text(&refused.stderr).contains("amount"), "{refused:?}");
    assert_eq!(shop.server.get("/v1/runs").1["items"], json!([]));
}

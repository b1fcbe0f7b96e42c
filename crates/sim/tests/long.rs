//! A long life: what is kept stays within the bounds of the policy. `cargo xtask sim --hours 168`
//! lives through a week.

use tenure_sim::{Length, Plan, Voice, run};

#[test]
fn a_day_of_steady_work_keeps_disk_and_memory_within_their_bounds() {
    let plan = Plan { length: Length::Hours(24), ..Plan::of(1) };
    let ran = run(&plan, Voice::Quiet).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(ran.virtual_ms >= 24 * 3_600_000);
    assert!(
        ran.coverage.count("log", "segment trimmed") > 5,
        "the policy never had anything to do"
    );
    assert!(ran.coverage.count("event", "TasksPurged") > 50, "nothing was ever forgotten");
    let records = ran.records;
    assert!(records > 10_000, "{records} records are no steady work");
    for sample in &ran.curve {
        println!("{sample:?}");
    }
}

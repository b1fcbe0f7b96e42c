//! Seeds that once broke a law, from `seeds/failed.txt`: they are lived through for ever.

use tenure_sim::{Plan, Voice, run};

const FAILED: &str = include_str!("../seeds/failed.txt");

fn plans() -> Vec<Plan> {
    let lines = FAILED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| Plan::parse(line).expect("it is written as the flags are")).collect()
}

#[test]
fn no_seed_that_once_failed_fails_again() {
    for plan in plans() {
        let failed = run(&plan, Voice::Quiet).err().map(|failed| failed.to_string());
        assert_eq!(failed, None);
    }
}

#[test]
fn every_seed_that_once_failed_stands_under_what_was_wrong() {
    let mut before = "";
    for line in FAILED.lines() {
        assert!(!line.starts_with("--") || before.starts_with('#'), "{line} has no comment");
        before = line;
    }
    assert!(plans().len() >= 2);
}

//! The laws of the rules, tried on random runs in a small world. Each run plays against an
//! independent model and checks every law after every record, so one law's trouble is another
//! law's witness.
//!
//! `PROPTEST_CASES=100000 cargo test --release -p tenure-core --test laws` tries harder.
//!
//! Proves P10.

#[path = "laws/compare.rs"]
mod compare;
#[path = "laws/found.rs"]
mod found;
#[path = "laws/history.rs"]
mod history;
#[path = "laws/model.rs"]
mod model;
#[path = "laws/mutants.rs"]
mod mutants;
#[path = "laws/reports.rs"]
mod reports;
#[path = "laws/run.rs"]
mod run;
#[path = "laws/script.rs"]
mod script;
#[path = "laws/shelf.rs"]
mod shelf;
#[path = "laws/snapshots.rs"]
mod snapshots;
#[path = "laws/sweeps.rs"]
mod sweeps;
#[path = "laws/world.rs"]
mod world;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// As many cases as `PROPTEST_CASES` says, which proptest reads itself; else as many as are usual
/// for this law.
fn cases(usual: u32) -> ProptestConfig {
    /// What proptest takes when nobody tells it.
    const UNTOLD: u32 = 256;
    let told = ProptestConfig::default();
    let cases = if told.cases == UNTOLD { usual } else { told.cases };
    let kept = FileFailurePersistence::Direct("tests/laws.regressions");
    ProptestConfig { cases, failure_persistence: Some(Box::new(kept)), ..told }
}

proptest! {
    #![proptest_config(cases(10_000))]

    /// Answers, records, tasks, queues, lists, histories, replays, views, damaged records.
    #[test]
    fn the_rules_do_what_the_model_does_and_keep_every_law(plan in world::plan(1..80)) {
        run::play(&plan).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn a_snapshot_and_what_follows_it_give_what_the_whole_log_gives(plan in world::plan(1..60)) {
        let log = run::play(&plan).map_err(TestCaseError::fail)?;
        snapshots::at_every_record(&log).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn a_changed_snapshot_never_ends_the_process(
        plan in world::plan(1..40),
        changes in vec((any::<usize>(), any::<u8>()), 100),
    ) {
        let log = run::play(&plan).map_err(TestCaseError::fail)?;
        let sound = snapshots::whole(&log).map_err(TestCaseError::fail)?;
        for (at, to) in changes {
            let mut bytes = sound.clone();
            let at = at % bytes.len();
            bytes[at] = to;
            let _ = snapshots::read_damaged(&bytes);
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    /// The model knows no shelf, and neither do the replays that the run is compared with: so
    /// answers, payloads, hashes and snapshots are those of a state without one.
    #[test]
    fn a_state_with_a_shelf_is_the_state_without_one(
        plan in world::plan(1..60),
        seed in any::<u64>(),
        refuses in 0..4_u64,
    ) {
        let shelf = shelf::TestShelf::new(seed, refuses);
        let played = run::play_on(&shelf::enlarged(&plan), Arc::clone(&shelf));
        let log = played.map_err(TestCaseError::fail)?;
        let lying = shelf.tally.lying.load(Ordering::Relaxed);
        prop_assert_eq!(lying, 0, "strings still lie there though nobody holds them");
        shelf::same_snapshots(&log, &shelf).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn an_audit_finds_every_change_or_the_log_is_sound(
        plan in world::plan(1..80),
        mutations in vec(mutants::mutation(), 60),
    ) {
        let log = run::play(&plan).map_err(TestCaseError::fail)?;
        for mutation in mutations {
            mutants::try_one(&log, mutation).map_err(TestCaseError::fail)?;
        }
    }
}

proptest! {
    #![proptest_config(cases(10_000))]

    #[test]
    fn bytes_that_are_no_record_never_end_the_process(bytes in vec(any::<u8>(), 0..200)) {
        run::read_anything(&bytes).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn fields_in_any_order_and_of_any_kind_never_end_the_process(
        event in 1..20_u8,
        fields in vec((0..20_u8, 0..8_u8, vec(any::<u8>(), 0..12)), 0..8),
    ) {
        let mut inner = Vec::new();
        for (tag, wire, bytes) in &fields {
            put(*tag, *wire, bytes, &mut inner);
        }
        let mut record = vec![8, 1];
        put(event, 2, &inner, &mut record);
        run::read_anything(&record).map_err(TestCaseError::fail)?;
    }
}

/// A field as protobuf has them; for most kinds the bytes are what they are.
fn put(tag: u8, wire: u8, bytes: &[u8], out: &mut Vec<u8>) {
    let key = (u32::from(tag) << 3) | u32::from(wire);
    if key > 0x7f {
        out.push(key as u8 | 0x80);
    }
    out.push(if key > 0x7f { (key >> 7) as u8 } else { key as u8 });
    if wire == 2 {
        out.push(bytes.len().min(0x7f) as u8);
    }
    out.extend(bytes);
}

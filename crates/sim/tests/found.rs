//! Seeds that once broke a law. Each is kept under the law that it broke; a change of what a seed
//! draws makes them ordinary seeds, and new ones take their place.

use tenure_sim::{Voice, run};

fn lives(seed: u64) {
    let failed = run(seed, Voice::Quiet).err().map(|failed| failed.to_string());
    assert_eq!(failed, None);
}

/// A plain lease command was decided without a look at whether its caller was still there.
#[test]
fn a_lease_command_of_one_who_is_gone_gets_nothing() {
    lives(11);
}

/// Segments that a start has not read, because a snapshot covers them, were called trimmed.
#[test]
fn what_is_before_a_snapshot_is_still_found() {
    lives(1);
}

//! Tests of the targets: with a bug in the log, the corpus alone shows that something is wrong.
//!
//! `cargo test -p tenure-fuzz --features planted --test planted -- --nocapture`

use std::panic::catch_unwind;

use tenure_fuzz::{TARGETS, Target};
use tenure_wal::planted::{Bug, plant};

/// Those bugs that make an opening lose or believe something. The others are about writes and syncs,
/// or are seen only in the offset that a note names, which the log's own tests look at.
const BUGS: [Bug; 3] = [Bug::AppendAfterTornTail, Bug::LengthTrusted, Bug::LaterFramesIgnored];

/// How many known inputs break a target.
fn broken(target: &Target) -> usize {
    target.known().iter().filter(|input| catch_unwind(|| (target.run)(input)).is_err()).count()
}

#[test]
fn a_target_notices_a_log_that_reads_wrongly() {
    // The sound logs must be made before there is a bug.
    let sound: Vec<_> = TARGETS.iter().map(broken).collect();
    assert_eq!(sound, [0; TARGETS.len()], "without a bug all is well");
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found = BUGS.map(|bug| {
        plant(Some(bug));
        let broken: Vec<_> = TARGETS.iter().map(|t| format!("{} {}", t.name, broken(t))).collect();
        plant(None);
        (bug, broken)
    });
    std::panic::set_hook(loud);
    for (bug, broken) in &found {
        println!("{:<22} inputs that break: {}", format!("{bug:?}"), broken.join(", "));
    }
    for (bug, broken) in found {
        assert!(broken.iter().any(|count| !count.ends_with(" 0")), "nobody notices {bug:?}");
    }
}

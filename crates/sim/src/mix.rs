//! What a seed draws before anything happens: how many there are, how bad the weather is.

use tenure_coordinator::{Keep, Purge, Upkeep};
use tenure_core::command::Retention;

use crate::random::Random;

/// The options of one run. Printed when it fails.
#[derive(Clone, Debug)]
pub struct Mix {
    /// How long there is trouble, in virtual milliseconds.
    pub trouble_for_ms: u64,
    /// Submits by each client, at most.
    pub submits_max: u64,
    /// Clients that submit, cancel, retry, look and wait.
    pub clients: u64,
    /// Workers.
    pub workers: u64,
    /// Followers of the feed.
    pub followers: u64,
    /// Queues.
    pub queues: u64,
    /// Whether clients register workflows and start runs.
    pub has_runs: bool,
    /// How long an actor thinks between two deeds, at most.
    pub think_ms: u64,
    /// How long a message is under way, at most.
    pub latency_ms: u64,
    /// Messages lost, in a thousand.
    pub lost_permille: u64,
    /// Messages that come twice, in a thousand.
    pub doubled_permille: u64,
    /// How long it takes until the coordinator looks at what came, at most.
    pub wake_ms: u64,
    /// How long a sync takes, at most.
    pub sync_ms: u64,
    /// How long leases are, at most.
    pub lease_ms: u64,
    /// How long an actor waits for an answer.
    pub patience_ms: u64,
    /// How often something goes wrong with the machine, about; never if zero.
    pub trouble_every_ms: u64,
    /// Deaths that are losses of power, in a thousand; the others leave the page cache.
    pub power_permille: u64,
    /// How far the wall clock may be set, in milliseconds; never if zero.
    pub jump_ms: u64,
    /// Workers' deeds that are silence, in a thousand.
    pub silent_permille: u64,
    /// Whether the disk can be full.
    pub fills: bool,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// When snapshots are taken, and what is kept.
    pub upkeep: Upkeep,
    /// Starts before which the newest snapshot has rotted, in a thousand.
    pub rot_permille: u64,
}

/// Segments where there are runs.
const SEGMENT_BYTES_FOR_RUNS: u64 = 512 << 10;

impl Mix {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let is_calm = random.chance(100);
        let mut bad = |permille: u64| match is_calm {
            true => 0,
            false => random.pick(&[0, permille / 4, permille]),
        };
        let (lost_permille, doubled_permille) = (bad(200), bad(200));
        let latency_ms = random.pick(&[0, 2, 20, 300]);
        let trouble_every_ms = match is_calm {
            true => 0,
            false => random.pick(&[0, 700, 2_000, 5_000]),
        };
        let has_runs = random.chance(500);
        // A frame must fit a segment, and a wide group takes a long one.
        let least = if has_runs { SEGMENT_BYTES_FOR_RUNS } else { 0 };
        Self {
            trouble_for_ms: random.between(4, 20) * 1_000,
            submits_max: random.between(5, 60),
            clients: random.between(1, 5),
            workers: random.between(1, 6),
            followers: random.between(1, 3),
            queues: random.between(1, 4),
            has_runs,
            think_ms: random.pick(&[80, 200, 500, 1_500]),
            latency_ms,
            lost_permille,
            doubled_permille,
            wake_ms: random.pick(&[0, 1, 10, 60]),
            sync_ms: random.pick(&[0, 1, 8, 80]),
            lease_ms: random.pick(&[60, 300, 2_000, 8_000]),
            // Short enough that some answers come too late.
            patience_ms: random.pick(&[50, 400, 3_000]) + latency_ms,
            trouble_every_ms,
            power_permille: random.pick(&[0, 500, 1_000]),
            jump_ms: random.pick(&[0, 0, 3_000, 3_600_000]),
            silent_permille: random.pick(&[0, 50, 300]),
            fills: random.chance(500),
            segment_bytes: random.pick(&[40 << 10, 64 << 10, 256 << 10]).max(least),
            upkeep: draw_upkeep(random),
            rot_permille: if is_calm { 0 } else { random.pick(&[0, 0, 300]) },
        }
    }
}

/// Some never take a snapshot or forget anything, some do so all the time.
fn draw_upkeep(random: &mut Random) -> Upkeep {
    Upkeep {
        snapshot_log_bytes: random.pick(&[u64::MAX, 2_000, 20_000]),
        snapshot_every_ms: u64::MAX / 2,
        log_keep: random.pick(&[Keep::All, Keep::Bytes(1), Keep::Ms(2_000)]),
        retention: Retention {
            age_ms: random.pick(&[7 * 86_400_000, 500, 5_000]),
            tasks_max: random.pick(&[10_000_000, 10_000_000, 5]),
            // A backlog of all tasks must go in fewer steps than one moment may have.
            items_max: random.pick(&[10, 50, 2_000]),
        },
        purge: Purge::ByItself,
    }
}

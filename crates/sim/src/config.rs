//! The configuration that a seed draws before a run: numbers of actors, rates of faults.

use tenure_coordinator::{Keep, Purge, Upkeep};
use tenure_core::command::Retention;
use tenure_core::limits::END_ITEMS_MAX;
use tenure_record::limits::RECORD_BYTES_MAX;
use tenure_record::name::{QueueName, WorkerName};

use crate::faults::{SimFault, Without};
use crate::plan::{Length, Plan};
use crate::random::Random;

/// The options of one run. Printed when it fails.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// How long there is trouble, in virtual milliseconds.
    pub trouble_for_ms: u64,
    /// How long everybody is busy at a time,
    pub spell_ms: u64,
    /// and how long most are quiet after that.
    pub lull_ms: u64,
    /// How often the whole state is looked at, if anything changed.
    pub check_ms: u64,
    /// Whether what is kept must stay within bounds all the time.
    pub is_bounded: bool,
    /// How long everything may take to come to an end once the trouble is over.
    pub drain_ms: u64,
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
    /// Runs that each client starts, at most.
    pub starts_max: u64,
    /// Workflows that each client brings, at most.
    pub registers_max: u64,
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
    /// How much faster or slower the steady clock runs than the other, in a million.
    pub drift_ppm: i64,
    /// Workers' deeds that are silence, in a thousand.
    pub silent_permille: u64,
    /// Workers' deeds after which they are gone for good, and another takes their place, in a
    /// thousand.
    pub death_permille: u64,
    /// Tasks that take every worker that has them with them, in a thousand.
    pub poison_permille: u64,
    /// Deeds of clients that are far too many at once, in a thousand.
    pub flood_permille: u64,
    /// Whether the disk can be full.
    pub fills: bool,
    /// Whether the disk can be slow for a while.
    pub slows: bool,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// When snapshots are taken, and what is kept.
    pub upkeep: Upkeep,
    /// Starts before which the newest snapshot has rotted, in a thousand.
    pub rot_permille: u64,
    /// Deaths after which a damaged copy of the disk is looked at, in a thousand.
    pub damage_permille: u64,
    /// Tokens, tasks and child runs that end in one record because their scope does.
    pub end_items_max: usize,
    /// The longest record.
    pub record_bytes_max: usize,
    /// Bytes that every name of a queue and of a worker has beside its number.
    pub name_padding: usize,
    /// Whether the first follower does not read until the trouble is over.
    pub has_silent_follower: bool,
    /// What is left out, because somebody said so.
    pub without: Without,
}

/// How long a seed is as long as nobody says otherwise.
const MINUTES: u64 = 10;
/// How long everything may take to come to an end once the trouble is over.
const DRAIN_MS: u64 = 60_000;
/// Leases in a long life, at most.
const LONG_LEASE_MS: u64 = 300_000;
/// How much of that everybody is busy, at most.
const BUSY_MS_MAX: u64 = 20_000;
/// How long a sync of a slow disk takes, at most.
pub(crate) const SLOW_MS: u64 = 400;
/// Bytes of padding where names are long; a name has at most 256.
const LONG_NAME_BYTES: usize = 220;
/// Segments where there are runs.
const SEGMENT_BYTES_FOR_RUNS: u64 = 512 << 10;

impl SimConfig {
    /// What a run is like.
    pub(crate) fn of(plan: &Plan, random: &mut Random) -> Self {
        let mut config = Self::draw(random);
        match plan.length {
            Length::Usual => {}
            Length::Minutes(minutes) => config.trouble_for_ms = minutes * 60_000,
            Length::Hours(hours) => config = config.for_long(hours),
        }
        for fault in SimFault::ALL.into_iter().filter(|fault| plan.without.has(*fault)) {
            config.leave_out(fault);
        }
        config.clients = config.clients.min(plan.clients_max.unwrap_or(u64::MAX));
        config.workers = config.workers.min(plan.workers_max.unwrap_or(u64::MAX));
        config.without = plan.without.clone();
        config
    }

    fn draw(random: &mut Random) -> Self {
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
        let trouble_for_ms = MINUTES * 60_000;
        let spell_ms = random.pick(&[1_000, 3_000, 8_000]);
        let spells = random.between(4_000, BUSY_MS_MAX).div_ceil(spell_ms);
        let mut config = Self {
            trouble_for_ms,
            spell_ms,
            lull_ms: trouble_for_ms / spells - spell_ms,
            check_ms: 1_000,
            is_bounded: false,
            drain_ms: DRAIN_MS,
            submits_max: random.between(5, 60),
            clients: random.between(1, 5),
            workers: random.between(1, 6),
            followers: random.between(1, 3),
            queues: random.between(1, 4),
            has_runs,
            starts_max: 20,
            registers_max: u64::MAX,
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
            drift_ppm: random.pick(&[0, 0, 500, -500, 20_000, -20_000]),
            silent_permille: random.pick(&[0, 50, 300]),
            death_permille: if is_calm { 0 } else { random.pick(&[0, 0, 20]) },
            poison_permille: if is_calm { 0 } else { random.pick(&[0, 0, 50]) },
            flood_permille: if random.chance(20) { 30 } else { 0 },
            fills: random.chance(500),
            slows: random.chance(500),
            segment_bytes: random.pick(&[40 << 10, 64 << 10, 256 << 10]).max(least),
            upkeep: draw_upkeep(random),
            rot_permille: if is_calm { 0 } else { random.pick(&[0, 0, 300]) },
            damage_permille: if is_calm { 0 } else { random.pick(&[0, 100]) },
            end_items_max: END_ITEMS_MAX,
            record_bytes_max: RECORD_BYTES_MAX,
            name_padding: 0,
            has_silent_follower: false,
            without: Without::default(),
        };
        config.draw_sizes(random);
        config
    }

    /// Bounds that are low enough to be met, long names, and many workers.
    fn draw_sizes(&mut self, random: &mut Random) {
        if random.chance(800) {
            self.end_items_max = random.pick(&[2, 2, 2, 2, 3, 5, 8, 12]);
        }
        if random.chance(120) {
            self.name_padding = LONG_NAME_BYTES;
        }
        if random.chance(100) {
            self.workers += random.between(10, 30);
        }
        self.has_silent_follower = random.chance(200);
        if self.has_runs && random.chance(150) {
            self.record_bytes_max = random.between(6 << 10, 12 << 10) as usize;
            // What a run is canceled with has to fit, and so has a purge.
            self.end_items_max = self.end_items_max.min(12);
            self.upkeep.retention.items_max = self.upkeep.retention.items_max.min(50);
            self.name_padding = 0;
        }
        if self.name_padding > 0 || self.workers > 6 {
            self.segment_bytes = self.segment_bytes.max(SEGMENT_BYTES_FOR_RUNS);
        }
    }

    /// Whether records are refused that a server would write.
    pub(crate) fn has_short_records(&self) -> bool {
        self.record_bytes_max < RECORD_BYTES_MAX
    }

    /// The name of a queue.
    pub(crate) fn queue(&self, number: u64) -> QueueName {
        let name = format!("queue-{number}{}", "q".repeat(self.name_padding));
        QueueName::parse(&name).expect("a plain name within its bound")
    }

    /// The name of a worker that has died so often.
    pub(crate) fn worker(&self, number: u64, deaths: u64) -> WorkerName {
        let name = format!("worker-{number}-{deaths}{}", "w".repeat(self.name_padding));
        WorkerName::parse(&name).expect("a plain name within its bound")
    }

    /// A long life: little to do at a time, but without end, and little is kept.
    fn for_long(self, hours: u64) -> Self {
        Self {
            trouble_for_ms: hours * 3_600_000,
            spell_ms: 1,
            lull_ms: 0,
            check_ms: 600_000,
            is_bounded: true,
            // Leases of those who are gone run out first, each as often as it may.
            drain_ms: DRAIN_MS + 5 * LONG_LEASE_MS,
            submits_max: u64::MAX,
            clients: 2,
            workers: 8,
            followers: 1,
            has_runs: true,
            starts_max: u64::MAX,
            registers_max: 20,
            think_ms: 60_000,
            latency_ms: self.latency_ms.min(20),
            lost_permille: self.lost_permille.min(20),
            doubled_permille: self.doubled_permille.min(20),
            wake_ms: self.wake_ms.min(10),
            sync_ms: self.sync_ms.min(8),
            // Nobody comes back before a short lease is over.
            lease_ms: LONG_LEASE_MS,
            silent_permille: self.silent_permille.min(50),
            patience_ms: 3_000,
            trouble_every_ms: 2 * 3_600_000,
            flood_permille: 0,
            record_bytes_max: RECORD_BYTES_MAX,
            name_padding: 0,
            has_silent_follower: false,
            segment_bytes: SEGMENT_BYTES_FOR_RUNS,
            upkeep: Upkeep {
                snapshot_log_bytes: 512 << 10,
                snapshot_every_ms: 3_600_000,
                log_keep: Keep::Bytes(1 << 20),
                retention: Retention { age_ms: 1_200_000, tasks_max: 200, items_max: 2_000 },
                ..Upkeep::default()
            },
            ..self
        }
    }

    /// How long a sync may take.
    pub(crate) fn longest_sync_ms(&self) -> u64 {
        if self.slows { self.sync_ms.max(SLOW_MS) } else { self.sync_ms }
    }

    /// How long after that many milliseconds the next spell begins, if most are quiet then.
    pub(crate) fn quiet_after(&self, at: u64) -> u64 {
        let period = self.spell_ms + self.lull_ms;
        match at % period {
            within if within < self.spell_ms => 0,
            within => period - within,
        }
    }

    fn leave_out(&mut self, fault: SimFault) {
        match fault {
            SimFault::Power => self.power_permille = 0,
            SimFault::Full => self.fills = false,
            SimFault::Slow => self.slows = false,
            SimFault::Rot => self.rot_permille = 0,
            SimFault::Damage => self.damage_permille = 0,
            SimFault::Loss => self.lost_permille = 0,
            SimFault::Double => self.doubled_permille = 0,
            SimFault::Delay => self.latency_ms = 0,
            SimFault::Jump => self.jump_ms = 0,
            SimFault::Drift => self.drift_ppm = 0,
            SimFault::Silence => self.silent_permille = 0,
            SimFault::Death => self.death_permille = 0,
            SimFault::Poison => self.poison_permille = 0,
            SimFault::Flood => self.flood_permille = 0,
            SimFault::Runs => self.has_runs = false,
            SimFault::Upkeep => {
                let retention = Retention::default();
                self.upkeep = Upkeep { log_keep: Keep::All, retention, ..Upkeep::default() };
            }
            // What is drawn while it is lived through is looked up where it is drawn.
            SimFault::Crash
            | SimFault::Stop
            | SimFault::Eio
            | SimFault::Enospc
            | SimFault::Eintr
            | SimFault::Short => {}
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

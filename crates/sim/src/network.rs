//! Messages between those outside and the coordinator: late, lost, doubled, and out of order.

use crate::config::SimConfig;
use crate::coverage::Coverage;
use crate::random::Random;

/// A message that takes so long is late.
const LATE_MS: u64 = 100;

/// Which way a message goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    In,
    Out,
}

/// The weather on the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    latency_ms: u64,
    lost_permille: u64,
    doubled_permille: u64,
}

impl Line {
    pub(crate) fn of(config: &SimConfig) -> Self {
        let SimConfig { latency_ms, lost_permille, doubled_permille, .. } = *config;
        Self { latency_ms, lost_permille, doubled_permille }
    }

    /// Nothing is lost or doubled any more.
    pub(crate) fn heal(&mut self) {
        (self.lost_permille, self.doubled_permille) = (0, 0);
    }

    /// After how long each copy of a message arrives; none if it is lost.
    pub(crate) fn send(&self, way: Way, random: &mut Random, coverage: &mut Coverage) -> Vec<u64> {
        let (lost, doubled) = match way {
            Way::In => ("request lost", "request doubled"),
            Way::Out => ("reply lost", "reply doubled"),
        };
        if random.chance(self.lost_permille) {
            coverage.add("network", lost);
            return Vec::new();
        }
        let copies = match random.chance(self.doubled_permille) {
            true => 2,
            false => 1,
        };
        coverage.add_many("network", doubled, copies - 1);
        let delays: Vec<u64> = (0..copies).map(|_| random.between(0, self.latency_ms)).collect();
        let late = delays.iter().filter(|delay| **delay >= LATE_MS).count();
        coverage.add_many("network", "late", late as u64);
        delays
    }
}

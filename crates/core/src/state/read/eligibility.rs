//! Whether a queue's tasks may be leased: one rule for the grant, for the wake-up of parked lease
//! requests, for explain and for the signal that workers are saturated.

use tenure_record::time::{Now, Timestamp};

use crate::state::{QueueRef, State};

/// Whether leases are given from a queue, and if not, why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eligibility {
    /// Whatever is ready may be leased.
    #[default]
    Open,
    /// The queue is paused.
    Paused {
        /// When it opens by itself, by the wall clock; none if it has to be resumed.
        until: Option<Timestamp>,
    },
}

impl Eligibility {
    /// Whether leases are given.
    #[must_use]
    pub fn is_open(self) -> bool {
        self == Self::Open
    }

    /// When leases are given again without a request, by the wall clock.
    #[must_use]
    pub fn opens_at(self) -> Option<Timestamp> {
        match self {
            Self::Open => None,
            Self::Paused { until } => until,
        }
    }
}

impl State {
    /// Whether leases may be given from a queue at that time.
    pub(crate) fn may_grant(&self, queue: QueueRef, now: Now) -> Eligibility {
        let Some(queue) = self.facts.queues.get(queue) else { return Eligibility::Open };
        let settings = &queue.settings;
        match settings.is_paused_at(now.wall) {
            true if settings.paused => Eligibility::Paused { until: None },
            true => Eligibility::Paused { until: Some(settings.paused_until) },
            false => Eligibility::Open,
        }
    }

    /// Whether leases are given from a queue, as of the time up to which the clocks were followed.
    pub(crate) fn eligibility(&self, queue: QueueRef) -> Eligibility {
        self.may_grant(queue, self.live().followed().reached())
    }

    /// Whether a lease request for this queue has something to look at. It may still get nothing,
    /// if all that is ready is past its deadline and not yet ended for it.
    #[must_use]
    pub fn has_ready(&self, queue: &str) -> bool {
        self.queue_ref(queue)
            .is_some_and(|queue| self.live().has_ready(queue) && self.eligibility(queue).is_open())
    }
}

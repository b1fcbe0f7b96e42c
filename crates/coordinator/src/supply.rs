//! Whether workers find more work than they take. As long as they do, new work can wait: nobody
//! would do it any sooner.

use tenure_record::time::Timestamp;

use crate::limits::{SUPPLY_LEASES, SUPPLY_MEMORY_MS};

/// How much work there is for those who want some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Supply {
    /// Workers take all that there is, or there are none.
    #[default]
    Short,
    /// Workers leave work behind when they take some.
    Ample,
}

/// What a lease request left in the queues that it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    Something,
}

/// What the last leases left behind.
#[derive(Debug, Default)]
pub(crate) struct LastLeases {
    /// One bit for each, the newest lowest: whether it left something.
    left: u32,
    last_at: Option<Timestamp>,
}

const _: () = assert!(SUPPLY_LEASES == u32::BITS, "there is a bit for each lease");

impl LastLeases {
    /// A lease request got something.
    pub(crate) fn granted(&mut self, rest: Rest, now: Timestamp) {
        self.left = self.left << 1 | u32::from(rest == Rest::Something);
        self.last_at = Some(now);
    }

    /// Most of them decide: a queue with little to do must not speak for one with much.
    pub(crate) fn supply(&self, now: Timestamp) -> Supply {
        let lately = |at: Timestamp| now < at.plus_ms(SUPPLY_MEMORY_MS);
        match self.last_at.is_some_and(lately) && self.left.count_ones() > SUPPLY_LEASES / 2 {
            true => Supply::Ample,
            false => Supply::Short,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn after(leases: impl IntoIterator<Item = Rest>) -> LastLeases {
        let mut last = LastLeases::default();
        leases.into_iter().for_each(|rest| last.granted(rest, NOW));
        last
    }

    #[test]
    fn most_of_the_last_leases_decide() {
        let most = SUPPLY_LEASES as usize / 2 + 1;
        let some = |count| std::iter::repeat_n(Rest::Something, count);
        let none = |count| std::iter::repeat_n(Rest::Nothing, count);
        assert_eq!(after([]).supply(NOW), Supply::Short);
        assert_eq!(after(some(most - 1)).supply(NOW), Supply::Short);
        assert_eq!(after(some(most)).supply(NOW), Supply::Ample);
        assert_eq!(after(some(most).chain(none(most - 2))).supply(NOW), Supply::Ample);
        assert_eq!(after(some(most).chain(none(most))).supply(NOW), Supply::Short);
        let mixed = (0..SUPPLY_LEASES).map(|at| match at % 4 {
            0 => Rest::Nothing,
            _ => Rest::Something,
        });
        assert_eq!(after(mixed).supply(NOW), Supply::Ample);
    }

    #[test]
    fn when_nobody_takes_work_any_more_there_is_too_little_of_it() {
        let last = after(std::iter::repeat_n(Rest::Something, SUPPLY_LEASES as usize));
        let later = |ms| last.supply(NOW.plus_ms(ms));
        assert_eq!(later(SUPPLY_MEMORY_MS - 1), Supply::Ample);
        assert_eq!(later(SUPPLY_MEMORY_MS), Supply::Short);
    }
}

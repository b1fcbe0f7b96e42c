//! The faults that a run may inject, by name, so that a failing run can be repeated without some of
//! them.

use std::fmt;

/// A kind of trouble, or of work, that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimFault {
    /// The machine stops at a call, at once, or while it starts.
    Crash,
    /// A death takes the power along, and with it what was not durable.
    Power,
    /// A stop in order.
    Stop,
    /// A call fails.
    Eio,
    /// A call finds no room, once.
    Enospc,
    /// A call is interrupted.
    Eintr,
    /// A write takes only a part.
    Short,
    /// There is no room for a while.
    Full,
    /// Syncs take long for a while.
    Slow,
    /// Bits of a snapshot change.
    Rot,
    /// Bits of the log change, or a write goes to the wrong place.
    Damage,
    /// Messages are lost.
    Loss,
    /// Messages come twice.
    Double,
    /// Messages are late and out of order.
    Delay,
    /// The wall clock is set.
    Jump,
    /// The clocks run at different speeds.
    Drift,
    /// Workers fall silent.
    Silence,
    /// Workers die.
    Death,
    /// Tasks kill whoever takes them.
    Poison,
    /// Far too many ask at once.
    Flood,
    /// Workflows and runs.
    Runs,
    /// Snapshots, trimming and forgetting.
    Upkeep,
}

impl SimFault {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Crash,
        Self::Power,
        Self::Stop,
        Self::Eio,
        Self::Enospc,
        Self::Eintr,
        Self::Short,
        Self::Full,
        Self::Slow,
        Self::Rot,
        Self::Damage,
        Self::Loss,
        Self::Double,
        Self::Delay,
        Self::Jump,
        Self::Drift,
        Self::Silence,
        Self::Death,
        Self::Poison,
        Self::Flood,
        Self::Runs,
        Self::Upkeep,
    ];

    /// As it is written after `--without`.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The one of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }
}

/// What is left out of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Without(Vec<SimFault>);

impl Without {
    /// Whether this is left out.
    #[must_use]
    pub fn has(&self, fault: SimFault) -> bool {
        self.0.contains(&fault)
    }

    /// Leaves one more out.
    #[must_use]
    pub fn and(&self, fault: SimFault) -> Self {
        let mut all = self.0.clone();
        if !all.contains(&fault) {
            all.push(fault);
        }
        Self(all)
    }

    /// Names with commas between them.
    ///
    /// # Errors
    /// The name that nothing has.
    pub fn parse(names: &str) -> Result<Self, String> {
        let mut without = Self::default();
        for name in names.split(',').filter(|name| !name.is_empty()) {
            without = without.and(SimFault::parse(name).ok_or_else(|| name.to_owned())?);
        }
        Ok(without)
    }

    /// Whether nothing is left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Without {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|fault| fault.name()).collect();
        write!(f, "{}", names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nothing_has_is_refused() {
        assert_eq!(Without::parse("rot,hail"), Err("hail".to_owned()));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let without =
            SimFault::ALL.into_iter().fold(Without::default(), |all, fault| all.and(fault));
        assert_eq!(Without::parse(&without.to_string()), Ok(without));
    }
}

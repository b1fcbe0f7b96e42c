//! Which run to live through: a seed, for how long, and what is left out of it.

use std::fmt;

use crate::faults::Without;

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Ten minutes of weather, as long as nobody says otherwise.
    Usual,
    /// So many minutes of weather.
    Minutes(u64),
    /// So many hours of steady work, with some trouble: what is kept must stay within its bounds.
    Hours(u64),
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where all chance comes from.
    pub seed: u64,
    /// How long it is.
    pub length: Length,
    /// What is left out.
    pub without: Without,
    /// At most so many clients, if somebody says so,
    pub clients_max: Option<u64>,
    /// and so many workers.
    pub workers_max: Option<u64>,
}

impl Plan {
    /// A seed as it is.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let without = Without::default();
        Self { seed, length: Length::Usual, without, clients_max: None, workers_max: None }
    }

    /// A run as it is written after `cargo xtask sim`.
    ///
    /// # Errors
    /// A sentence about what cannot be read.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut plan = Self::of(0);
        let mut words = line.split_whitespace();
        while let Some(flag) = words.next() {
            plan.set(flag, words.next().unwrap_or_default())?;
        }
        Ok(plan)
    }

    /// Takes one flag and its value.
    ///
    /// # Errors
    /// A sentence about what cannot be read.
    pub fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        if flag == "--without" {
            self.without = Without::parse(value)
                .map_err(|name| format!("nothing is called `{name}`, so it cannot be left out"))?;
            return Ok(());
        }
        let number = value.parse().map_err(|_| format!("{flag} needs a number, not `{value}`"))?;
        match flag {
            "--seed" => self.seed = number,
            "--minutes" => self.length = Length::Minutes(number),
            "--hours" => self.length = Length::Hours(number),
            "--clients" => self.clients_max = Some(number),
            "--workers" => self.workers_max = Some(number),
            _ => return Err(format!("there is no `{flag}`")),
        }
        Ok(())
    }
}

/// The command that repeats it.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cargo xtask sim --seed {}", self.seed)?;
        match self.length {
            Length::Usual => {}
            Length::Minutes(minutes) => write!(f, " --minutes {minutes}")?,
            Length::Hours(hours) => write!(f, " --hours {hours}")?,
        }
        if !self.without.is_empty() {
            write!(f, " --without {}", self.without)?;
        }
        if let Some(clients) = self.clients_max {
            write!(f, " --clients {clients}")?;
        }
        match self.workers_max {
            Some(workers) => write!(f, " --workers {workers}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_refused_with_a_reason() {
        for (line, why) in [
            ("--seed x", "--seed needs a number, not `x`"),
            ("--without hail", "nothing is called `hail`, so it cannot be left out"),
            ("--sead 1", "there is no `--sead`"),
        ] {
            assert_eq!(Plan::parse(line), Err(why.to_owned()));
        }
    }

    #[test]
    fn the_command_that_repeats_a_run_is_read_back() {
        let line = "--seed 9 --minutes 3 --without rot,loss --clients 1 --workers 2";
        let plan = Plan::parse(line).unwrap();
        assert_eq!(plan.to_string(), format!("cargo xtask sim {line}"));
    }
}

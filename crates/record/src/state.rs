//! The states of a task, by name.

use std::fmt;

/// The state of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskState {
    /// Ready, delayed or backing off.
    #[default]
    Waiting = 1,
    /// Owned by a worker until its lease ends.
    Leased = 2,
    /// Done; never changes again.
    Completed = 3,
    /// A worker said so, for good.
    Failed = 4,
    /// Its workers kept vanishing.
    Dead = 5,
    /// A client, a deadline or a workflow said so.
    Canceled = 6,
}

impl TaskState {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Waiting, Self::Leased, Self::Completed, Self::Failed, Self::Dead, Self::Canceled];

    /// As it is written outside.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            TaskState::Waiting => "WAITING",
            TaskState::Leased => "LEASED",
            TaskState::Completed => "COMPLETED",
            TaskState::Failed => "FAILED",
            TaskState::Dead => "DEAD",
            TaskState::Canceled => "CANCELED",
        }
    }

    /// Whether nothing but an operator's retry can follow.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            TaskState::Waiting | TaskState::Leased => false,
            TaskState::Completed | TaskState::Failed | TaskState::Dead | TaskState::Canceled => {
                true
            }
        }
    }

    /// Whether one record item may take a task from this state to that one. Staying is allowed.
    #[must_use]
    pub fn may_become(self, to: Self) -> bool {
        use TaskState::{Canceled, Completed, Dead, Failed, Leased, Waiting};
        match (self, to) {
            (Waiting, Leased | Failed | Canceled)
            | (Leased, Waiting | Completed | Failed | Dead | Canceled)
            | (Failed | Dead | Canceled, Waiting) => true,
            _ => self == to,
        }
    }

    pub(crate) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u64 == number)
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn illegal_jumps_are_known() {
        use TaskState::{Canceled, Completed, Dead, Failed, Leased, Waiting};
        let legal = [
            (Waiting, Leased),
            (Waiting, Failed),
            (Waiting, Canceled),
            (Leased, Waiting),
            (Leased, Completed),
            (Leased, Failed),
            (Leased, Dead),
            (Leased, Canceled),
            (Failed, Waiting),
            (Dead, Waiting),
            (Canceled, Waiting),
        ];
        for from in TaskState::ALL {
            for to in TaskState::ALL {
                let expected = from == to || legal.contains(&(from, to));
                assert_eq!(from.may_become(to), expected, "{from} -> {to}");
            }
        }
    }
}

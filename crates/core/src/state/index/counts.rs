//! How many tasks are in each state.

use tenure_record::state::TaskState;

/// How many tasks are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCounts([u64; 6]);

impl StateCounts {
    /// How many are in that state.
    #[must_use]
    pub fn of(&self, state: TaskState) -> u64 {
        self.0[list_of(state)]
    }

    /// How many there are.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// How many have ended.
    #[must_use]
    pub fn terminal(&self) -> u64 {
        TaskState::ALL
            .into_iter()
            .filter(|state| state.is_terminal())
            .map(|state| self.of(state))
            .sum()
    }

    pub(super) fn moved(&mut self, from: Option<TaskState>, to: Option<TaskState>) {
        if let Some(state) = from {
            self.0[list_of(state)] -= 1;
        }
        if let Some(state) = to {
            self.0[list_of(state)] += 1;
        }
    }
}

pub(super) fn list_of(state: TaskState) -> usize {
    state as usize - 1
}

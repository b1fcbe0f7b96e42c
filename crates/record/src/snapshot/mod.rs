//! The format of a snapshot: the facts of a state as bytes. Derived facts are left out; a reader
//! computes them again.
//!
//! ```text
//! stream   block, block, …
//! block    section, version, size, items     items are messages, as in a record
//! ```
//!
//! A section is one kind of item. Sections come in the order of their numbers, each in as many
//! blocks as it needs, and the last one holds the totals. A reader refuses what it does not know:
//! dropping it would drop facts. To add a section, add it to [`Section`] and to [`Item`]; the
//! compiler names the other places.

mod blocks;
mod items;
mod run_items;
mod values;

pub use self::blocks::{Blocks, Item, put_block};
pub use self::items::{
    ColdItem, Counters, ErrorItem, LeaseEnd, QueueItem, TaskItem, Totals, WorkerItem,
};
pub use self::run_items::{
    BranchItem, EndingItem, GroupItem, HeadItem, KeptItem, ParkedItem, PathItem, ResultItem,
    RunPart, ScopeItem, SignalIdItem, SignalItem, SpawnItem, TokenItem, ValueItem, WaitItem,
    WorkflowItem,
};
pub use self::values::{ValueReader, ValueWriter};

/// A block is closed at this size; only one whose last item is large is larger.
pub const BLOCK_BYTES: usize = 512 << 10;
/// No block is larger: a reader never has to hold more.
pub const BLOCK_BYTES_MAX: usize = 64 << 20;

/// One kind of item in a snapshot. The numbers are never used for anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// The next ids, the last record, and log time.
    Counters = 1,
    /// Queues with their settings; tasks name them by their position here.
    Queues = 2,
    /// Workers that hold leases; tasks name them by their position here.
    Workers = 3,
    /// Tasks by id, each with all that belongs to it.
    Tasks = 4,
    /// Workflows by name, each version in order.
    Workflows = 5,
    /// Runs by id, each in as many parts as it has.
    Runs = 6,
    /// The number of items in each section. Nothing follows.
    End = 1_000,
}

impl Section {
    const ALL: [Self; 7] = [
        Self::Counters,
        Self::Queues,
        Self::Workers,
        Self::Tasks,
        Self::Workflows,
        Self::Runs,
        Self::End,
    ];

    fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|section| *section as u64 == number)
    }

    /// The version that is written. A new field of an item needs a new one, as in a record.
    fn version(self) -> u32 {
        match self {
            Section::Counters
            | Section::Queues
            | Section::Workers
            | Section::Tasks
            | Section::Workflows
            | Section::Runs => 1,
            // The first one counted no workflows and runs, and came right after the tasks.
            Section::End => 2,
        }
    }

    /// The section that follows; none after the last.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        Self::ALL.into_iter().find(|section| *section > self)
    }
}

//! How a data folder is opened: durability, retention, snapshots, memory, and callbacks.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tenure_coordinator::{Durability, EngineOptions, Keep, Memory, Progress, Upkeep, Warning};

use crate::error::Error;
use crate::handle::Tenure;
use crate::terms::ms;

/// Options with which a data folder is opened; see [`Tenure::builder`].
#[must_use]
pub struct Builder {
    folder: PathBuf,
    options: EngineOptions,
    upkeep: Upkeep,
    on_replay: Box<dyn FnMut(Progress)>,
}

impl Builder {
    pub(crate) fn new(folder: PathBuf) -> Self {
        let (options, upkeep) = (EngineOptions::default(), Upkeep::default());
        Self { folder, options, upkeep, on_replay: Box::new(|_| {}) }
    }

    fn with_upkeep(mut self, set: impl FnOnce(&mut Upkeep)) -> Self {
        set(&mut self.upkeep);
        self
    }

    /// When a call returns: after its record is durable (the default), or earlier.
    pub fn durability(self, durability: Durability) -> Self {
        Self { options: self.options.durability(durability), ..self }
    }

    /// How long finished tasks and runs are kept, unless their queue has a retention of its own.
    pub fn retention(self, age: Duration) -> Self {
        self.with_upkeep(|upkeep| upkeep.retention.age_ms = ms(age))
    }

    /// How many finished tasks are kept at most; beyond that the oldest are forgotten first.
    pub fn retention_tasks(self, tasks_max: u64) -> Self {
        self.with_upkeep(|upkeep| upkeep.retention.tasks_max = tasks_max)
    }

    /// The age at which the last snapshot is replaced, if enough was written since.
    pub fn snapshot_every(self, age: Duration) -> Self {
        self.with_upkeep(|upkeep| upkeep.snapshot_every_ms = ms(age))
    }

    /// The number of log bytes after which a snapshot is taken, unless the last one was larger.
    pub fn snapshot_after_bytes(self, bytes: u64) -> Self {
        self.with_upkeep(|upkeep| upkeep.snapshot_log_bytes = bytes)
    }

    /// How much of the log is kept beyond what the snapshots need: histories reach as far back.
    pub fn keep_log(self, keep: Keep) -> Self {
        self.with_upkeep(|upkeep| upkeep.log_keep = keep)
    }

    /// The memory budget in bytes. When it is nearly used up, new work is refused with `memory_full`;
    /// reports and reads go on. Without one, the state is not bounded.
    pub fn memory_max(self, bytes: u64) -> Self {
        Self { options: self.options.memory(Memory::new(bytes)), ..self }
    }

    /// A callback for conditions that an operator should know of: the clock jumped, a snapshot could
    /// not be written, other users can read the folder. It is called on a thread of the engine, so it
    /// must not block for long.
    pub fn on_warning(self, handler: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        Self { options: self.options.on_warning(handler), ..self }
    }

    /// A callback that hears how far the replay is while the folder is opened.
    pub fn on_replay(self, handler: impl FnMut(Progress) + 'static) -> Self {
        Self { on_replay: Box::new(handler), ..self }
    }

    /// Opens the folder; a missing folder is created. Everything that was acknowledged is there,
    /// however the last process ended.
    ///
    /// # Errors
    /// Another process has the folder, it cannot be read or written, or its content is damaged.
    pub fn open(self) -> Result<Tenure, Error> {
        let Self { folder, options, upkeep, on_replay } = self;
        Ok(Tenure::of(options.upkeep(upkeep).open(folder, on_replay)?))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, options, upkeep, .. } = self;
        let mut shown = f.debug_struct("Builder");
        shown.field("folder", folder).field("options", options).field("upkeep", upkeep);
        shown.finish_non_exhaustive()
    }
}

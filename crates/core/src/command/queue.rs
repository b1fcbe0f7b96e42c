//! Commands about the settings of queues.

use tenure_record::event::QueueSettings;
use tenure_record::name::QueueName;
use tenure_record::terms::{Count, SpanMs};
use tenure_record::time::Timestamp;

/// New settings for a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigureQueue {
    /// Which queue; a new one is made.
    pub queue: QueueName,
    /// What changes.
    pub change: SettingsChange,
}

/// A change of a queue's settings; by default nothing changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// How long its finished tasks are kept.
    pub retention_ms: Setting<SpanMs>,
    /// Until which moment of the wall clock no leases are given.
    pub paused_until: Setting<Timestamp>,
    /// Which queue gets a copy of each task that ends FAILED or DEAD; a new one is made.
    pub dead_letter_queue: Setting<QueueName>,
    /// With how many waiting tasks the queue takes no further submit.
    pub max_waiting: Setting<Count>,
}

impl SettingsChange {
    /// Changes the stored settings.
    pub(crate) fn apply(&self, settings: &mut QueueSettings) {
        let Self { retention_ms, paused_until, dead_letter_queue, max_waiting } = self;
        retention_ms.change(&mut settings.retention_ms, |span| Some(span.get()));
        paused_until.change(&mut settings.paused_until, |at| *at);
        let dead_letters = &mut settings.dead_letter_queue;
        dead_letter_queue.change(dead_letters, |name| Some(name.as_str().into()));
        max_waiting.change(&mut settings.max_waiting, |count| Some(count.get()));
    }
}

/// A queue that should give no more leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseQueue {
    /// Which queue; a new one is made.
    pub queue: QueueName,
    /// What ends the pause.
    pub end: PauseEnd,
}

impl PauseQueue {
    /// A pause that holds until the queue is resumed.
    #[must_use]
    pub fn open_ended(queue: QueueName) -> Self {
        Self { queue, end: PauseEnd::Resumed }
    }
}

/// What ends the pause of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PauseEnd {
    /// An operator resumes the queue.
    #[default]
    Resumed,
    /// That moment of the wall clock.
    At(Timestamp),
    /// This span of the wall clock.
    After(SpanMs),
}

/// One setting in a change of settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setting<T> {
    /// Leave it as it is.
    #[default]
    Keep,
    /// Set it.
    Set(T),
    /// Back to the default.
    Clear,
}

impl<T> Setting<T> {
    /// Changes the stored setting.
    fn change<S: Default>(&self, stored: &mut S, of: impl FnOnce(&T) -> S) {
        match self {
            Setting::Keep => {}
            Setting::Set(value) => *stored = of(value),
            Setting::Clear => *stored = S::default(),
        }
    }
}

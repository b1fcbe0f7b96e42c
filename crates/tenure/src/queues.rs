//! The verbs of queues, and the settings to change.

use std::time::{Duration, SystemTime};

use tenure_coordinator::request::{DeleteQueue, GetQueue, ListQueues, ResumeQueue};
use tenure_core::command::{ConfigureQueue, PauseEnd, PauseQueue, Setting, SettingsChange};
use tenure_core::state::QueueView;
use tenure_record::name::QueueName;
use tenure_record::terms::Count;

use crate::call::Call;
use crate::error::Error;
use crate::handle::Tenure;
use crate::terms;

/// The queues of an open data folder; see [`Tenure::queues`].
#[derive(Clone, Copy, Debug)]
pub struct Queues<'a>(&'a Tenure);

fn parsed(name: &str) -> Result<QueueName, Error> {
    Ok(QueueName::parse(name)?)
}

impl<'a> Queues<'a> {
    pub(crate) fn new(tenure: &'a Tenure) -> Self {
        Self(tenure)
    }

    /// A queue with its settings and counts; none if it does not exist.
    pub fn get(self, name: &str) -> Call<Option<QueueView>> {
        self.0.call(parsed(name).map(GetQueue), |queue| queue.map(|queue| *queue))
    }

    /// All queues, by name.
    pub fn list(self) -> Call<Vec<QueueView>> {
        self.0.each_page(ListQueues)
    }

    /// Changes settings of a queue, which is created if it does not exist. None is returned if the
    /// queue has no settings and no tasks any more.
    pub fn configure(self, update: QueueUpdate) -> Call<Option<QueueView>> {
        self.0.call(update.parse(), |queue| queue.map(|queue| *queue))
    }

    /// Grants no leases from a queue until it is resumed. Tasks that are leased go on.
    pub fn pause(self, name: &str) -> Call<Option<QueueView>> {
        self.pause_with(name, Ok(PauseEnd::Resumed))
    }

    /// Grants no leases from a queue for this long.
    pub fn pause_for(self, name: &str, span: Duration) -> Call<Option<QueueView>> {
        let end = terms::span("pause", span).map(PauseEnd::After).map_err(Error::from);
        self.pause_with(name, end)
    }

    /// Grants no leases from a queue until this moment of the wall clock.
    pub fn pause_until(self, name: &str, until: SystemTime) -> Call<Option<QueueView>> {
        self.pause_with(name, Ok(PauseEnd::At(terms::moment(until))))
    }

    fn pause_with(self, name: &str, end: Result<PauseEnd, Error>) -> Call<Option<QueueView>> {
        let request = parsed(name).and_then(|queue| Ok(PauseQueue { queue, end: end? }));
        self.0.call(request, |queue| queue.map(|queue| *queue))
    }

    /// Grants leases from a queue again.
    pub fn resume(self, name: &str) -> Call<Option<QueueView>> {
        self.0.call(parsed(name).map(ResumeQueue), |queue| queue.map(|queue| *queue))
    }

    /// Deletes a queue that has no tasks, with its settings.
    pub fn delete(self, name: &str) -> Call<()> {
        self.0.call(parsed(name).map(DeleteQueue), |()| ())
    }
}

/// Settings of a queue to change; what is not named stays as it is.
///
/// ```
/// use std::time::Duration;
/// use tenure::QueueUpdate;
///
/// let update = QueueUpdate::new("mail")
///     .retention(Duration::from_secs(3600))
///     .dead_letter_queue("mail-dead");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct QueueUpdate {
    queue: String,
    retention: Setting<Duration>,
    paused_until: Setting<SystemTime>,
    dead_letter_queue: Setting<String>,
    max_waiting: Setting<u32>,
}

impl QueueUpdate {
    /// No changes yet.
    pub fn new(queue: impl Into<String>) -> Self {
        Self {
            queue: queue.into(),
            retention: Setting::Keep,
            paused_until: Setting::Keep,
            dead_letter_queue: Setting::Keep,
            max_waiting: Setting::Keep,
        }
    }

    /// How long finished tasks of the queue are kept.
    pub fn retention(self, retention: Duration) -> Self {
        Self { retention: Setting::Set(retention), ..self }
    }

    /// Finished tasks of the queue are kept as long as those of other queues.
    pub fn default_retention(self) -> Self {
        Self { retention: Setting::Clear, ..self }
    }

    /// Grants no leases until this moment of the wall clock.
    pub fn paused_until(self, until: SystemTime) -> Self {
        Self { paused_until: Setting::Set(until), ..self }
    }

    /// Removes the moment until which no leases are granted.
    pub fn not_paused_until(self) -> Self {
        Self { paused_until: Setting::Clear, ..self }
    }

    /// The queue that gets a copy of each task that ends FAILED or DEAD.
    pub fn dead_letter_queue(self, queue: impl Into<String>) -> Self {
        Self { dead_letter_queue: Setting::Set(queue.into()), ..self }
    }

    /// Tasks that end FAILED or DEAD are no longer copied.
    pub fn no_dead_letter_queue(self) -> Self {
        Self { dead_letter_queue: Setting::Clear, ..self }
    }

    /// The number of waiting tasks with which the queue refuses further submits.
    pub fn max_waiting(self, tasks: u32) -> Self {
        Self { max_waiting: Setting::Set(tasks), ..self }
    }

    /// The queue takes submits however many tasks wait.
    pub fn no_max_waiting(self) -> Self {
        Self { max_waiting: Setting::Clear, ..self }
    }

    fn parse(self) -> Result<ConfigureQueue, Error> {
        let change = SettingsChange {
            retention_ms: map(self.retention, |span| Ok(terms::span("retention", span)?))?,
            paused_until: map(self.paused_until, |until| Ok(terms::moment(until)))?,
            dead_letter_queue: map(self.dead_letter_queue, |queue| parsed(&queue))?,
            max_waiting: map(self.max_waiting, |tasks| Ok(Count::parse("max_waiting", tasks)?))?,
        };
        Ok(ConfigureQueue { queue: parsed(&self.queue)?, change })
    }
}

fn map<T, U>(
    setting: Setting<T>,
    parse: impl FnOnce(T) -> Result<U, Error>,
) -> Result<Setting<U>, Error> {
    Ok(match setting {
        Setting::Keep => Setting::Keep,
        Setting::Set(value) => Setting::Set(parse(value)?),
        Setting::Clear => Setting::Clear,
    })
}

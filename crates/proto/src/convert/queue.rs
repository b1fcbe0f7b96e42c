//! Queues and their settings.

use tenure_api::{Page, PageQuery, PauseQueue, Queue, QueueSettings, Setting, Timestamp};

use super::{Malformed, all, given, ms, time};
use crate::v1;

impl From<Queue> for v1::Queue {
    fn from(queue: Queue) -> Self {
        let Queue {
            name,
            depth,
            leased,
            completed,
            failed,
            dead,
            canceled,
            paused,
            paused_until,
            retention_ms,
            dead_letter_queue,
            max_waiting,
            oldest_waiting_at,
        } = queue;
        Self {
            name,
            depth,
            leased,
            completed,
            failed,
            dead,
            canceled,
            paused,
            retention_ms,
            oldest_waiting_at: ms(oldest_waiting_at),
            paused_until: ms(paused_until),
            dead_letter_queue,
            max_waiting,
        }
    }
}

impl From<v1::Queue> for Queue {
    fn from(queue: v1::Queue) -> Self {
        let v1::Queue {
            name,
            depth,
            leased,
            completed,
            failed,
            dead,
            canceled,
            paused,
            retention_ms,
            oldest_waiting_at,
            paused_until,
            dead_letter_queue,
            max_waiting,
        } = queue;
        Self {
            name,
            depth,
            leased,
            completed,
            failed,
            dead,
            canceled,
            paused,
            paused_until: time(paused_until),
            retention_ms,
            dead_letter_queue,
            max_waiting,
            oldest_waiting_at: time(oldest_waiting_at),
        }
    }
}

impl From<PageQuery> for v1::ListQueuesRequest {
    fn from(PageQuery { limit, cursor }: PageQuery) -> Self {
        Self { limit, cursor: cursor.unwrap_or_default() }
    }
}

impl From<v1::ListQueuesRequest> for PageQuery {
    fn from(v1::ListQueuesRequest { limit, cursor }: v1::ListQueuesRequest) -> Self {
        Self { limit, cursor: given(cursor) }
    }
}

impl From<Page<Queue>> for v1::ListQueuesResponse {
    fn from(Page { items, next_cursor }: Page<Queue>) -> Self {
        Self { queues: all(items), next_cursor: next_cursor.unwrap_or_default() }
    }
}

impl From<v1::ListQueuesResponse> for Page<Queue> {
    fn from(v1::ListQueuesResponse { queues, next_cursor }: v1::ListQueuesResponse) -> Self {
        Self { items: all(queues), next_cursor: given(next_cursor) }
    }
}

const RETENTION_MS: &str = "retention_ms";
const PAUSED_UNTIL: &str = "paused_until";
const DEAD_LETTER_QUEUE: &str = "dead_letter_queue";
const MAX_WAITING: &str = "max_waiting";

/// With the queue's name.
impl From<(String, QueueSettings)> for v1::ConfigureQueueRequest {
    fn from((queue, settings): (String, QueueSettings)) -> Self {
        let QueueSettings { retention_ms, paused_until, dead_letter_queue, max_waiting } = settings;
        let mut clear = Vec::new();
        Self {
            queue,
            retention_ms: set(RETENTION_MS, retention_ms, &mut clear),
            paused_until: ms(set(PAUSED_UNTIL, paused_until, &mut clear)),
            dead_letter_queue: set(DEAD_LETTER_QUEUE, dead_letter_queue, &mut clear),
            max_waiting: set(MAX_WAITING, max_waiting, &mut clear),
            clear,
        }
    }
}

fn set<T>(name: &str, setting: Setting<T>, clear: &mut Vec<String>) -> Option<T> {
    match setting {
        Setting::Keep => None,
        Setting::Set(value) => Some(value),
        Setting::Clear => {
            clear.push(name.to_owned());
            None
        }
    }
}

impl TryFrom<v1::ConfigureQueueRequest> for (String, QueueSettings) {
    type Error = Malformed;

    fn try_from(configure: v1::ConfigureQueueRequest) -> Result<Self, Malformed> {
        let v1::ConfigureQueueRequest {
            queue,
            retention_ms,
            clear,
            paused_until,
            dead_letter_queue,
            max_waiting,
        } = configure;
        const SETTINGS: [&str; 4] = [RETENTION_MS, PAUSED_UNTIL, DEAD_LETTER_QUEUE, MAX_WAITING];
        if let Some(name) = clear.iter().find(|name| !SETTINGS.contains(&name.as_str())) {
            let (name, known) = (tenure_code::Echo(name), SETTINGS.join(", "));
            return Err(Malformed(format!("clear has {name}; the settings are {known}")));
        }
        let settings = QueueSettings {
            retention_ms: setting(RETENTION_MS, retention_ms, &clear)?,
            paused_until: setting(PAUSED_UNTIL, paused_until.map(Timestamp), &clear)?,
            dead_letter_queue: setting(DEAD_LETTER_QUEUE, dead_letter_queue, &clear)?,
            max_waiting: setting(MAX_WAITING, max_waiting, &clear)?,
        };
        Ok((queue, settings))
    }
}

/// One setting: given, in the list of those to clear, or neither.
fn setting<T>(name: &str, given: Option<T>, clear: &[String]) -> Result<Setting<T>, Malformed> {
    match (given, clear.iter().any(|there| there == name)) {
        (Some(_), true) => Err(Malformed(format!("{name} is given and is in clear too; keep one"))),
        (Some(given), false) => Ok(Setting::Set(given)),
        (None, true) => Ok(Setting::Clear),
        (None, false) => Ok(Setting::Keep),
    }
}

/// With the queue's name.
impl From<(String, PauseQueue)> for v1::PauseQueueRequest {
    fn from((queue, PauseQueue { until, for_ms }): (String, PauseQueue)) -> Self {
        Self { queue, until: ms(until), for_ms }
    }
}

impl From<v1::PauseQueueRequest> for (String, PauseQueue) {
    fn from(v1::PauseQueueRequest { queue, until, for_ms }: v1::PauseQueueRequest) -> Self {
        (queue, PauseQueue { until: time(until), for_ms })
    }
}

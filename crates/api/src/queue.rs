//! Queues and their settings.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Timestamp;

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Queue {
    /// The queue's name.
    pub name: String,
    /// The number of WAITING tasks.
    pub depth: u64,
    /// The number of LEASED tasks.
    pub leased: u64,
    /// The number of COMPLETED tasks that are still kept.
    pub completed: u64,
    /// The number of FAILED tasks that are still kept.
    pub failed: u64,
    /// The number of DEAD tasks that are still kept.
    pub dead: u64,
    /// The number of CANCELED tasks that are still kept.
    pub canceled: u64,
    /// Whether the queue is paused: it grants no leases now.
    pub paused: bool,
    /// While the queue is paused: when it resumes by itself, if it does.
    pub paused_until: Option<Timestamp>,
    /// How long ended tasks are kept, if the queue has a setting of its own.
    pub retention_ms: Option<u64>,
    /// The queue that receives a copy of each task that ends FAILED or DEAD.
    pub dead_letter_queue: Option<String>,
    /// A submit that would leave more tasks WAITING is rejected with `queue_full`.
    pub max_waiting: Option<u64>,
    /// When the oldest WAITING task was submitted.
    pub oldest_waiting_at: Option<Timestamp>,
}

/// A change of one setting. In JSON, a missing field keeps the setting, `null` clears it, and a value
/// sets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setting<T> {
    /// The setting stays as it is.
    #[default]
    Keep,
    /// The setting returns to its default.
    Clear,
    /// The setting gets this value.
    Set(T),
}

impl<T> Setting<T> {
    /// Whether the setting stays as it is.
    #[must_use]
    pub const fn is_keep(&self) -> bool {
        matches!(self, Setting::Keep)
    }
}

impl<T: Serialize> Serialize for Setting<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Setting::Keep | Setting::Clear => serializer.serialize_none(),
            Setting::Set(value) => serializer.serialize_some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Setting<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Setting::Clear, Setting::Set))
    }
}

/// Changes of a queue's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct QueueSettings {
    /// How long ended tasks are kept.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>))]
    #[serde(default, skip_serializing_if = "Setting::is_keep")]
    pub retention_ms: Setting<u64>,
    /// The queue grants no leases before this time of the wall clock.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Timestamp>))]
    #[serde(default, skip_serializing_if = "Setting::is_keep")]
    pub paused_until: Setting<Timestamp>,
    /// The queue that receives a copy of each task that ends FAILED or DEAD. The server creates it if
    /// it does not exist.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[serde(default, skip_serializing_if = "Setting::is_keep")]
    pub dead_letter_queue: Setting<String>,
    /// A submit that would leave more tasks WAITING is rejected with `queue_full`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>, minimum = 1))]
    #[serde(default, skip_serializing_if = "Setting::is_keep")]
    pub max_waiting: Setting<u64>,
}

/// A request to pause a queue: until a time, for a duration, or until it is resumed if neither is
/// given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PauseQueue {
    /// The queue resumes by itself at this time of the wall clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The queue resumes by itself after this duration; not together with `until`.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_setting_is_kept_and_null_clears_it() {
        let settings: QueueSettings =
            serde_json::from_str(r#"{"retention_ms": null, "dead_letter_queue": "dead"}"#).unwrap();
        assert_eq!(settings.retention_ms, Setting::Clear);
        assert_eq!(settings.paused_until, Setting::Keep);
        assert_eq!(settings.dead_letter_queue, Setting::Set("dead".to_owned()));
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(text, r#"{"retention_ms":null,"dead_letter_queue":"dead"}"#);
    }
}

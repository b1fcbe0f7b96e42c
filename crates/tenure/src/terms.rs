//! Plain Rust values as the parsed types of the engine.

use std::time::{Duration, SystemTime};

use tenure_code::Code;
use tenure_record::limits::PAYLOAD_BYTES_MAX;
use tenure_record::name::{Invalid, QueueName, TagKey, TagValue};
use tenure_record::progress::Checkpoint;
use tenure_record::terms::{LeaseMs, Payload, SpanMs, Tags};
use tenure_record::time::Timestamp;
use tenure_value::Value;

use crate::error::Error;

/// A span in milliseconds.
pub(crate) fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A span within the bounds of the engine.
pub(crate) fn span(field: &str, span: Duration) -> Result<SpanMs, Invalid> {
    SpanMs::parse(field, ms(span))
}

/// A span within the bounds of the engine that is not zero.
pub(crate) fn some_span(field: &str, span: Option<Duration>) -> Result<Option<SpanMs>, Invalid> {
    span.map(|span| SpanMs::parse_some(field, ms(span))).transpose()
}

/// The length of a lease.
pub(crate) fn lease_ms(lease: Duration) -> Result<LeaseMs, Invalid> {
    LeaseMs::parse(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX))
}

/// A moment of the wall clock; moments before 1970 are its beginning.
pub(crate) fn moment(at: SystemTime) -> Timestamp {
    Timestamp(ms(at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()))
}

pub(crate) fn tags(tags: Vec<(String, String)>) -> Result<Tags, Invalid> {
    let parse =
        |(key, value): (String, String)| Ok((TagKey::parse(&key)?, TagValue::parse(&value)?));
    Tags::parse(tags.into_iter().map(parse).collect::<Result<_, Invalid>>()?)
}

pub(crate) fn queues(names: &[String]) -> Result<Vec<QueueName>, Invalid> {
    names.iter().map(|name| QueueName::parse(name)).collect()
}

/// A payload or an output.
pub(crate) fn payload(field: &str, bytes: Vec<u8>) -> Result<Payload, Error> {
    Payload::parse(field, bytes).map_err(|invalid| too_large(&invalid))
}

/// A checkpoint; none if there are no bytes.
pub(crate) fn checkpoint(bytes: &[u8]) -> Result<Option<Checkpoint>, Error> {
    Checkpoint::parse(bytes).map_err(|invalid| too_large(&invalid))
}

fn too_large(invalid: &Invalid) -> Error {
    Error::new(Code::PayloadTooLarge, invalid.to_string())
}

/// A value from JSON text.
pub(crate) fn value(field: &str, json: &[u8]) -> Result<Value, Error> {
    let bytes = json.len();
    if bytes > PAYLOAD_BYTES_MAX {
        let message = format!("{field} has {bytes} bytes; at most {PAYLOAD_BYTES_MAX} are allowed");
        return Err(Error::new(Code::PayloadTooLarge, message));
    }
    Value::from_json_exact(json).map_err(|fault| Error::invalid(fault.about(field)))
}

/// A value of serde as JSON text.
#[cfg(feature = "json")]
pub(crate) fn json(field: &str, value: &impl serde::Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|error| {
        let message = format!("{field} cannot be written as JSON: {error}");
        Error::with_source(Code::InvalidRequest, message, error)
    })
}

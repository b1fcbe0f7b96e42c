//! The state of the engine as the outward model: one function per type, one file per noun. HTTP and
//! the archive serialize the result, and gRPC converts it.

pub(crate) mod event;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod status;
pub(crate) mod task;
pub(crate) mod worker;
pub(crate) mod workflow;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tenure_api as api;
use tenure_core::state::SharedBytes;
use tenure_record::time::Timestamp;
use tenure_value::Value;

use crate::fetch::{bytes_of, end_without};

/// Below this size, copying bytes is cheaper than sharing them.
const SHARED_FROM_BYTES: usize = 1_024;

/// A point in time.
pub(crate) fn time(at: Timestamp) -> api::Timestamp {
    api::Timestamp(at.0)
}

/// Bytes of a task: large ones are shared, small ones copied.
pub(crate) fn bytes(shared: SharedBytes) -> Bytes {
    match shared.len() {
        0 => Bytes::new(),
        len if len < SHARED_FROM_BYTES => Bytes::copy_from_slice(&bytes_of(&shared)),
        _ => Bytes::from_owner(shared.into_near().unwrap_or_else(|cause| end_without(&cause))),
    }
}

/// Tags of a task or a run.
pub(crate) fn tags(tags: &[(Arc<str>, Arc<str>)]) -> BTreeMap<String, String> {
    tags.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// A value as JSON text.
fn json(value: &Value) -> api::Payload {
    let mut bytes = Vec::with_capacity(value.bytes());
    value.write_json(&mut bytes);
    bytes.into()
}

/// A value as JSON text; empty for none.
fn maybe_json(value: Option<&Value>) -> api::Payload {
    value.map(json).unwrap_or_default()
}

fn text(text: Option<&Arc<str>>) -> Option<String> {
    text.map(|text| text.to_string())
}

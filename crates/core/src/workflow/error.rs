//! Errors of a run, as values: `{code, message, node, attempts, details, causes}`.

use std::sync::Arc;

use tenure_flow::Value;

/// Causes that an error carries; what is deeper is in the history.
const CAUSES_MAX: usize = 32;
/// Bytes of a message that are kept.
const MESSAGE_BYTES_MAX: usize = 1_024;

/// Why something cannot go on, before it is known where.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub code: Arc<str>,
    pub message: String,
    pub details: Value,
}

impl Fault {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), details: Value::Null }
    }

    /// The error, at that node, after so many attempts, because of another.
    pub(crate) fn at(&self, node: Option<&str>, attempts: u32, cause: Option<&Value>) -> Value {
        let mut message = self.message.as_str();
        if message.len() > MESSAGE_BYTES_MAX {
            let end = (0..=MESSAGE_BYTES_MAX).rev().find(|at| message.is_char_boundary(*at));
            message = &message[..end.unwrap_or_default()];
        }
        let mut entries: Vec<(Arc<str>, Value)> = vec![
            ("code".into(), Value::Text(Arc::clone(&self.code))),
            ("message".into(), Value::text(message)),
            ("attempts".into(), Value::Int(attempts.into())),
            ("node".into(), node.map_or(Value::Null, Value::text)),
            ("details".into(), self.details.clone()),
        ];
        if let Some(cause) = cause {
            entries.push(("causes".into(), causes(cause)));
        }
        Value::map(entries)
    }
}

/// The error and what caused it, from the nearest to the first.
fn causes(cause: &Value) -> Value {
    let Some(map) = cause.as_map() else { return Value::list(vec![cause.clone()]) };
    let deeper = map.get("causes").and_then(Value::as_list);
    let bare = map.entries().iter().filter(|(key, _)| &**key != "causes").cloned();
    let bare = Value::map(bare.collect());
    let deeper = deeper.map(|list| list.as_slice()).unwrap_or_default();
    Value::list(std::iter::once(bare).chain(deeper.iter().cloned()).take(CAUSES_MAX).collect())
}

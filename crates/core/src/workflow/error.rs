//! Errors of a run, as values: `{code, message, node, attempts, details, causes, causes_omitted}`.

use std::sync::Arc;

use tenure_value::Value;

use crate::limits::CAUSES_MAX;

/// The field with the causes of an error, and the one that counts those left out.
const CAUSES: &str = "causes";
const CAUSES_OMITTED: &str = "causes_omitted";
/// Bytes of a message that are kept.
const MESSAGE_BYTES_MAX: usize = 1_024;

/// Why something cannot go on, before it is known where.
#[derive(Clone, Debug)]
pub(crate) struct RunFault {
    pub code: Arc<str>,
    pub message: String,
    pub details: Value,
}

impl RunFault {
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
            let (causes, omitted) = causes(cause);
            entries.push((CAUSES.into(), causes));
            if omitted > 0 {
                entries.push((CAUSES_OMITTED.into(), Value::Int(omitted)));
            }
        }
        Value::map(entries)
    }
}

/// The error and what caused it, from the nearest to the first, and how many are left out between the
/// last two: a long chain keeps its outermost causes and the first one.
fn causes(cause: &Value) -> (Value, i64) {
    let Some(map) = cause.as_map() else { return (Value::list(vec![cause.clone()]), 0) };
    let deeper = map.get(CAUSES).and_then(Value::as_list);
    let is_own = |key: &str| key != CAUSES && key != CAUSES_OMITTED;
    let bare = map.entries().iter().filter(|(key, _)| is_own(key)).cloned();
    let mut causes = vec![Value::map(bare.collect())];
    causes.extend_from_slice(deeper.map(|list| list.as_slice()).unwrap_or_default());
    let mut omitted = map.get(CAUSES_OMITTED).and_then(Value::as_int).unwrap_or_default();
    while causes.len() > CAUSES_MAX {
        causes.remove(CAUSES_MAX - 1);
        omitted += 1;
    }
    (Value::list(causes), omitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_chain_of_errors_keeps_its_outermost_causes_and_the_first() {
        let mut error = RunFault::new("E0", "").at(None, 0, None);
        for depth in 1..=20 {
            error = RunFault::new(&format!("E{depth}"), "").at(None, 0, Some(&error));
            let map = error.as_map().unwrap();
            let causes = map.get(CAUSES).unwrap().as_list().unwrap().as_slice();
            let code = |cause: &Value| cause.as_map().unwrap().get("code").unwrap().clone();
            let codes: Vec<_> = causes.iter().map(code).collect();
            let all = (0..depth).rev().map(|nth| Value::text(&format!("E{nth}")));
            let mut expected: Vec<_> = all.collect();
            let omitted = expected.len().saturating_sub(CAUSES_MAX);
            expected.drain(CAUSES_MAX.min(depth) - 1..CAUSES_MAX.min(depth) - 1 + omitted);
            assert_eq!(codes, expected);
            let counted = map.get(CAUSES_OMITTED).and_then(Value::as_int).unwrap_or_default();
            assert_eq!(counted as usize, omitted);
            assert!(causes.iter().all(|cause| cause.as_map().unwrap().get(CAUSES).is_none()));
        }
    }
}

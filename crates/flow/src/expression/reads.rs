//! What an evaluation read, for "why this way?".
#![allow(clippy::wildcard_enum_match_arm, reason = "what is not named is shown by its kind")]

use std::sync::Arc;

use tenure_value::Value;

use crate::limits::{READS_MAX, READS_SHOWN_BYTES_MAX};

/// The paths that an evaluation read, and what was there.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    /// `None` when nobody wants to know.
    read: Option<Vec<(Arc<str>, Value)>>,
    /// What the evaluations cost.
    steps: u64,
}

impl Reads {
    /// Nobody wants to know.
    #[must_use]
    pub fn unnoted() -> Self {
        Self::default()
    }

    /// Everything is noted, up to [`READS_MAX`] paths, each once.
    #[must_use]
    pub fn noted() -> Self {
        Self { read: Some(Vec::new()), steps: 0 }
    }

    /// What the evaluations cost, in the steps of [`crate::limits::EXPRESSION_STEPS_MAX`].
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn spent(&mut self, steps: u64) {
        self.steps += steps;
    }

    /// The paths and values in the order of reading.
    #[must_use]
    pub fn as_slice(&self) -> &[(Arc<str>, Value)] {
        self.read.as_deref().unwrap_or_default()
    }

    /// An object of paths and values for a person: what is long is cut, and all of it is at most
    /// [`READS_SHOWN_BYTES_MAX`] bytes of JSON.
    #[must_use]
    pub fn shown(&self) -> Value {
        let mut left = READS_SHOWN_BYTES_MAX.saturating_sub(2);
        let mut entries = Vec::new();
        for (path, value) in self.as_slice() {
            let around = Value::Text(Arc::clone(path)).to_json().len() + 2;
            let Some(room) = left.checked_sub(around) else { break };
            let Some((shown, bytes)) = shorten(value, room) else { break };
            entries.push((Arc::clone(path), shown));
            left = room - bytes;
        }
        Value::map(entries)
    }

    pub(super) fn note(&mut self, path: &Arc<str>, value: &Value) {
        if let Some(read) = &mut self.read
            && read.len() < READS_MAX
            && !read.iter().any(|(known, _)| known == path)
        {
            read.push((Arc::clone(path), value.clone()));
        }
    }
}

/// The value, or a text that says what it was, in so many bytes of JSON.
fn shorten(value: &Value, room: usize) -> Option<(Value, usize)> {
    if value.bytes() <= room.saturating_mul(2) {
        let bytes = value.to_json().len();
        if bytes <= room {
            return Some((value.clone(), bytes));
        }
    }
    let what = match value {
        Value::List(list) => format!("(a list of {})", list.len()),
        Value::Map(map) => format!("(an object of {})", map.len()),
        other => format!("({} of {} bytes)", other.kind(), other.bytes()),
    };
    let shown = Value::text(&what);
    let bytes = shown.to_json().len();
    (bytes <= room).then_some((shown, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_has_a_bound() {
        let mut reads = Reads::noted();
        let long = Value::list(vec![Value::text(&"x".repeat(5_000)); 50]);
        reads.note(&"context.long".into(), &long);
        for at in 0..200 {
            reads.note(&format!("context.n{at}").into(), &Value::text("\u{1}\u{1}\u{1}\u{1}"));
        }
        assert_eq!(reads.as_slice().len(), READS_MAX);
        let shown = reads.shown();
        assert!(shown.to_json().len() <= READS_SHOWN_BYTES_MAX, "{}", shown.to_json().len());
        let map = shown.as_map().unwrap();
        assert_eq!(map.get("context.long"), Some(&Value::text("(a list of 50)")));
        assert!(map.len() > 10);
    }

    #[test]
    fn a_path_is_noted_once_and_only_if_somebody_wants_to_know() {
        let mut reads = Reads::noted();
        reads.note(&"input.a".into(), &Value::Int(1));
        reads.note(&"input.a".into(), &Value::Int(1));
        assert_eq!(reads.as_slice().len(), 1);
        let mut nobody = Reads::unnoted();
        nobody.note(&"input.a".into(), &Value::Int(1));
        assert!(nobody.as_slice().is_empty());
    }
}

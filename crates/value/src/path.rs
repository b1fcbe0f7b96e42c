//! A path into an object: `context.verdict.approved`. Parsed once, then followed or written to.
#![allow(clippy::wildcard_enum_match_arm, reason = "what is not named cannot be written through")]

use std::fmt;
use std::sync::Arc;

use super::Value;
use crate::limits::{PATH_SEGMENTS_MAX, VALUE_DEPTH_MAX};

/// Names joined by dots. Nothing in it is empty. A clone is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Arc<Parsed>);

/// Two paths stand as their names do; the text follows from these.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Parsed {
    segments: Box<[Arc<str>]>,
    text: Arc<str>,
}

/// A path that cannot be parsed, followed or written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathFault {
    /// What is wrong.
    pub message: String,
}

impl PathFault {
    fn new(message: String) -> Self {
        Self { message }
    }
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PathFault {}

impl Path {
    /// Parses `a.b.c`.
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        let segments: Vec<Arc<str>> = text.split('.').map(Arc::from).collect();
        if segments.iter().any(|segment| segment.is_empty()) {
            return Err(PathFault::new(format!(
                "`{text}` is no path; write names joined by single dots, such as `context.total`"
            )));
        }
        if segments.len() > PATH_SEGMENTS_MAX {
            let count = segments.len();
            return Err(PathFault::new(format!(
                "the path has {count} names; at most {PATH_SEGMENTS_MAX} are allowed"
            )));
        }
        Ok(Self(Arc::new(Parsed { segments: segments.into(), text: text.into() })))
    }

    /// Its names in order; at least one.
    #[must_use]
    pub fn segments(&self) -> &[Arc<str>] {
        &self.0.segments
    }

    /// The path as it is written.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.0.text
    }

    /// What stands there.
    #[must_use]
    pub fn get<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        follow(value, &self.0.segments)
    }

    /// The value with `new` at this path. Objects that are missing on the way are made; anything
    /// else on the way is in it.
    pub fn set(&self, value: &Value, new: Value) -> Result<Value, PathFault> {
        set(value, &self.0.segments, new, self)
    }

    /// [`Path::get`] below the first name: `context.a.b` asked of the context itself.
    #[must_use]
    pub fn get_below<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        follow(root, &self.0.segments[1..])
    }

    /// [`Path::set`] below the first name: `context.a.b` written to the context itself.
    pub fn set_below(&self, root: &Value, new: Value) -> Result<Value, PathFault> {
        set(root, &self.0.segments[1..], new, self)
    }
}

fn follow<'a>(value: &'a Value, segments: &[Arc<str>]) -> Option<&'a Value> {
    segments.iter().try_fold(value, |at, segment| at.as_map()?.get(segment))
}

fn set(value: &Value, segments: &[Arc<str>], new: Value, path: &Path) -> Result<Value, PathFault> {
    let set = write(value, segments, new, path)?;
    if set.is_too_deep() {
        return Err(PathFault::new(format!(
            "writing to `{path}` would nest deeper than {VALUE_DEPTH_MAX} levels"
        )));
    }
    Ok(set)
}

fn write(
    value: &Value,
    segments: &[Arc<str>],
    new: Value,
    path: &Path,
) -> Result<Value, PathFault> {
    let Some((first, rest)) = segments.split_first() else { return Ok(new) };
    let map = match value {
        Value::Map(map) => map,
        Value::Null => {
            let inner = write(&Value::Null, rest, new, path)?;
            return Ok(Value::map(vec![(Arc::clone(first), inner)]));
        }
        other => {
            let kind = other.kind();
            return Err(PathFault::new(format!(
                "`{path}` cannot be written: there is {kind} where `{first}` would go into an object"
            )));
        }
    };
    let inner = write(map.get(first).unwrap_or(&Value::Null), rest, new, path)?;
    Ok(Value::Map(map.with_shared(first, inner)))
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

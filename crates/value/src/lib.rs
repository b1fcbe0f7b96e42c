//! Immutable, shared JSON values. A clone copies a word and increments a reference count; a change
//! makes a new value that shares the rest.
//!
//! Numbers are exact: a text whose number the value cannot hold is refused, and never rounded. This
//! crate has no clock, no I/O and no randomness.

mod canonical;
pub mod exact;
mod json;
pub mod limits;
mod number;
mod path;
pub mod pointer;

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

pub use canonical::canonical;
pub use json::{JsonFault, shown_pointer};
pub use number::{compare as compare_numbers, integer};
pub use path::{Path, PathFault};

use crate::limits::VALUE_DEPTH_MAX;

/// A JSON value.
///
/// Two values are equal if JSON Schema and CEL call them so: `1` equals `1.0`, and the order of an
/// object's keys does not matter.
#[derive(Clone, Default)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that is too large for [`Value::Int`]; make it with [`Value::uint`].
    Uint(u64),
    /// Any other number. Never infinite and never not a number; make it with [`Value::float`].
    Float(f64),
    /// A text.
    Text(Arc<str>),
    /// A list.
    List(List),
    /// An object, in the order of its keys.
    Map(Map),
}

impl Value {
    /// A text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// An integer that cannot be negative.
    #[must_use]
    pub fn uint(number: u64) -> Self {
        i64::try_from(number).map_or(Self::Uint(number), Self::Int)
    }

    /// A number with a fraction; nothing for what JSON cannot write.
    #[must_use]
    pub fn float(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self::Float(number))
    }

    /// A list of these.
    #[must_use]
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(List::new(items))
    }

    /// An object of these. Of two entries with one key the later one counts.
    #[must_use]
    pub fn map(entries: Vec<(Arc<str>, Value)>) -> Self {
        Self::Map(Map::new(entries))
    }

    /// An object without entries.
    #[must_use]
    pub fn empty_map() -> Self {
        Self::Map(Map::default())
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The integer, if it is one that fits.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        if let Self::Int(number) = self { Some(*number) } else { None }
    }

    /// The integer that it equals, if there is one: `3.0` is 3.
    #[must_use]
    pub fn as_whole(&self) -> Option<i128> {
        number::whole(self)
    }

    /// The truth value, if it is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(truth) = self { Some(*truth) } else { None }
    }

    /// The list, if it is one.
    #[must_use]
    pub fn as_list(&self) -> Option<&List> {
        if let Self::List(list) = self { Some(list) } else { None }
    }

    /// The object, if it is one.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        if let Self::Map(map) = self { Some(map) } else { None }
    }

    /// Is it `null`?
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// What kind of value it is, as JSON calls it, for sentences.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Uint(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }

    /// Some order of all values in which equal ones stand side by side: for sorting.
    #[must_use]
    pub fn total_order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::List(a), Self::List(b)) => {
                let pairs = a.as_slice().iter().zip(b.as_slice());
                let first = pairs.map(|(a, b)| a.total_order(b)).find(|order| order.is_ne());
                first.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Map(a), Self::Map(b)) => {
                let pairs = a.entries().iter().zip(b.entries());
                let orders = pairs.map(|(a, b)| a.0.cmp(&b.0).then_with(|| a.1.total_order(&b.1)));
                let first = orders.into_iter().find(|order| order.is_ne());
                first.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (a, b) => number::compare(a, b).unwrap_or_else(|| a.rank().cmp(&b.rank())),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) | Self::Uint(_) | Self::Float(_) => 2,
            Self::Text(_) => 3,
            Self::List(_) => 4,
            Self::Map(_) => 5,
        }
    }

    /// About how many bytes its JSON text has: exact but for numbers and escapes. O(1).
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Null => 4,
            Self::Bool(_) => 5,
            Self::Int(_) | Self::Uint(_) | Self::Float(_) => 8,
            Self::Text(text) => text.len() + 2,
            Self::List(list) => list.0.bytes,
            Self::Map(map) => map.0.bytes,
        }
    }

    /// About how many bytes of memory it takes if it shares nothing with another value. O(1).
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let parts = match self {
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Uint(_) | Self::Float(_) => 0,
            Self::Text(text) => SHARED_BYTES + text.len(),
            Self::List(list) => list.0.held_bytes,
            Self::Map(map) => map.0.held_bytes,
        };
        size_of::<Self>() + parts
    }

    /// Levels of lists and maps in it; 0 for anything else. O(1).
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Uint(_) | Self::Float(_) => 0,
            Self::Text(_) => 0,
            Self::List(list) => list.0.depth,
            Self::Map(map) => map.0.depth,
        }
    }

    /// Where its parts lie, if it has any that are shared: two values with one address are the same
    /// in memory while both are there.
    #[must_use]
    pub fn address(&self) -> Option<usize> {
        match self {
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Uint(_) | Self::Float(_) => None,
            Self::Text(text) => Some(Arc::as_ptr(text).addr()),
            Self::List(list) => Some(Arc::as_ptr(&list.0).addr()),
            Self::Map(map) => Some(Arc::as_ptr(&map.0).addr()),
        }
    }

    /// Is it deeper than anything that is kept may be? Whoever keeps a value that was put together
    /// here asks first, so that no value can grow until dropping it overflows the stack.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        self.depth() > VALUE_DEPTH_MAX
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::list(items)
    }
}

/// What an `Arc` adds to its contents: two counters, and what the allocator rounds up.
const SHARED_BYTES: usize = 24;

/// The parts of a list or object, and what is asked of it often.
struct Parts<T> {
    bytes: usize,
    held_bytes: usize,
    depth: usize,
    parts: Box<[T]>,
}

impl<T> Parts<T> {
    /// What the parts themselves take beside those that they hold.
    const OWN_BYTES: usize = SHARED_BYTES + size_of::<Self>();
}

/// The same items in a block of just their size. An allocator may leave a block as it is that shrinks
/// by less than half, so what was grown while it was read would take up to twice its size.
fn exact<T>(mut items: Vec<T>) -> Box<[T]> {
    if items.capacity() > items.len() {
        let mut exact = Vec::with_capacity(items.len());
        exact.append(&mut items);
        items = exact;
    }
    items.into()
}

/// A list that is shared, not copied.
#[derive(Clone)]
pub struct List(Arc<Parts<Value>>);

impl List {
    /// A list of these.
    #[must_use]
    pub fn new(items: Vec<Value>) -> Self {
        let bytes = items.iter().fold(2, |sum: usize, item| sum.saturating_add(item.bytes() + 1));
        let held = items.iter().map(Value::held_bytes);
        let held_bytes = held.fold(Parts::<Value>::OWN_BYTES, usize::saturating_add);
        let depth = 1 + items.iter().map(Value::depth).max().unwrap_or(0);
        Self(Arc::new(Parts { bytes, held_bytes, depth, parts: exact(items) }))
    }

    /// The items in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Value] {
        &self.0.parts
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.parts.len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.parts.is_empty()
    }

    /// Are both the same list in memory? Then they are equal, and nobody needs to look.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// An object that is shared, not copied: pairs in the order of their keys, each key once.
#[derive(Clone)]
pub struct Map(Arc<Parts<(Arc<str>, Value)>>);

impl Map {
    /// An object of these. Of two entries with one key the later one counts.
    #[must_use]
    pub fn new(mut entries: Vec<(Arc<str>, Value)>) -> Self {
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            // The sort is stable, so the later of two equal keys stands later.
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.dedup_by(|later, earlier| {
                let is_twice = later.0 == earlier.0;
                if is_twice {
                    std::mem::swap(later, earlier);
                }
                is_twice
            });
        }
        Self::sorted(entries)
    }

    /// An object of these, or the first key in order that comes twice.
    pub(crate) fn unique(mut entries: Vec<(Arc<str>, Value)>) -> Result<Self, Arc<str>> {
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(Arc::clone(&pair[0].0));
            }
        }
        Ok(Self::sorted(entries))
    }

    fn sorted(entries: Vec<(Arc<str>, Value)>) -> Self {
        let bytes = entries.iter().fold(2, |sum: usize, (key, value)| {
            sum.saturating_add(key.len() + 4).saturating_add(value.bytes())
        });
        let held = entries.iter().map(|(key, value)| {
            size_of::<Arc<str>>() + SHARED_BYTES + key.len() + value.held_bytes()
        });
        let held_bytes = held.fold(Parts::<(Arc<str>, Value)>::OWN_BYTES, usize::saturating_add);
        let depth = 1 + entries.iter().map(|(_, value)| value.depth()).max().unwrap_or(0);
        Self(Arc::new(Parts { bytes, held_bytes, depth, parts: exact(entries) }))
    }

    /// The value under that key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.place(key).ok().map(|at| &self.0.parts[at].1)
    }

    /// The same object with that key set.
    #[must_use]
    pub fn with(&self, key: &str, value: Value) -> Self {
        self.set(key, value, || key.into())
    }

    /// The same; the key is shared, not copied.
    #[must_use]
    pub fn with_shared(&self, key: &Arc<str>, value: Value) -> Self {
        self.set(key, value, || Arc::clone(key))
    }

    fn set(&self, key: &str, value: Value, owned: impl FnOnce() -> Arc<str>) -> Self {
        let parts = &self.0.parts;
        let (at, key, after) = match self.place(key) {
            Ok(at) => (at, Arc::clone(&parts[at].0), at + 1),
            Err(at) => (at, owned(), at),
        };
        // As long as it will be, so that nothing is moved again.
        let mut entries = Vec::with_capacity(at + 1 + parts.len() - after);
        entries.extend_from_slice(&parts[..at]);
        entries.push((key, value));
        entries.extend_from_slice(&parts[after..]);
        Self::sorted(entries)
    }

    /// The pairs in the order of their keys.
    #[must_use]
    pub fn entries(&self) -> &[(Arc<str>, Value)] {
        &self.0.parts
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.parts.len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.parts.is_empty()
    }

    /// Are both the same object in memory? Then they are equal, and nobody needs to look.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn place(&self, key: &str) -> Result<usize, usize> {
        self.0.parts.binary_search_by(|(have, _)| (**have).cmp(key))
    }
}

impl Default for Map {
    fn default() -> Self {
        Self::sorted(Vec::new())
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            (a, b) => number::compare(a, b).is_some_and(Ordering::is_eq),
        }
    }
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.as_slice() == other.as_slice()
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.entries() == other.entries()
    }
}

impl Eq for Value {}
impl Eq for List {}
impl Eq for Map {}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Value::List(self.clone()).to_json())
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Value::Map(self.clone()).to_json())
    }
}

#[cfg(test)]
mod tests;

//! How many subschemas one value is checked against where it stands. References can double that
//! again and again in a few lines, so it is counted before anything is compiled.

use std::collections::BTreeMap;

use tenure_value::{Map, Value};

/// What is checked against the very value that the schema is checked against.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SINGLE: [&str; 4] = ["not", "if", "then", "else"];
const MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The largest weight of any subschema: at least one, and no more than is needed to refuse it.
pub(super) fn of(schema: &Value) -> u64 {
    let mut scale = Scale { root: schema, anchors: BTreeMap::new(), known: BTreeMap::new() };
    let mut all = Vec::new();
    scale.gather(schema, &mut all);
    all.into_iter().map(|part| scale.weigh(part)).max().unwrap_or(1)
}

struct Scale<'s> {
    root: &'s Value,
    anchors: BTreeMap<&'s str, &'s Value>,
    /// Weights by where the subschema lies in memory; none while it is being weighed.
    known: BTreeMap<usize, Option<u64>>,
}

impl<'s> Scale<'s> {
    /// All objects of the schema, and the anchors among them.
    fn gather(&mut self, value: &'s Value, all: &mut Vec<&'s Value>) {
        match value {
            Value::Map(map) => {
                all.push(value);
                for name in ["$anchor", "$dynamicAnchor"] {
                    if let Some(anchor) = map.get(name).and_then(Value::as_text) {
                        self.anchors.insert(anchor, value);
                    }
                }
                map.entries().iter().for_each(|(_, value)| self.gather(value, all));
            }
            Value::List(list) => list.as_slice().iter().for_each(|item| self.gather(item, all)),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Float(_) => {}
            Value::Text(_) => {}
        }
    }

    fn weigh(&mut self, schema: &'s Value) -> u64 {
        let Some(map) = schema.as_map() else { return 1 };
        let place = std::ptr::from_ref(schema) as usize;
        match self.known.get(&place) {
            Some(Some(weight)) => return *weight,
            // A circle: the validator goes around once.
            Some(None) => return 1,
            None => {}
        }
        self.known.insert(place, None);
        let weight =
            self.parts(map).iter().fold(1, |sum: u64, part| sum.saturating_add(self.weigh(part)));
        self.known.insert(place, Some(weight));
        weight
    }

    fn parts(&self, map: &'s Map) -> Vec<&'s Value> {
        let lists = LISTS.iter().filter_map(|name| map.get(name)?.as_list());
        let maps = MAPS.iter().filter_map(|name| map.get(name)?.as_map());
        let single = SINGLE.iter().filter_map(|name| map.get(name));
        let references = REFERENCES.iter().filter_map(|name| map.get(name)?.as_text());
        lists
            .flat_map(|list| list.as_slice())
            .chain(maps.flat_map(|map| map.entries().iter().map(|(_, value)| value)))
            .chain(single)
            .chain(references.filter_map(|reference| self.resolve(reference)))
            .collect()
    }

    /// What a reference inside of the schema names. What cannot be found is refused elsewhere.
    fn resolve(&self, reference: &str) -> Option<&'s Value> {
        let name = reference.strip_prefix('#')?;
        let Some(pointer) = name.strip_prefix('/') else {
            return if name.is_empty() { Some(self.root) } else { self.anchors.get(name).copied() };
        };
        pointer.split('/').try_fold(self.root, |at, segment| match at {
            Value::Map(map) => map.get(&segment.replace("~1", "/").replace("~0", "~")),
            Value::List(list) => list.as_slice().get(segment.parse::<usize>().ok()?),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Float(_) => None,
            Value::Text(_) => None,
        })
    }
}

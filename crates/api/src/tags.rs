//! Tags and labels of requests: objects of strings in which no key comes twice.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserializer;
use serde::de::{Error, MapAccess, Visitor};
use tenure_code::Echo;

/// Reads an object of strings and refuses a repeated key, of which a map would drop the first value
/// silently. `null` is an empty object.
pub(crate) fn unique<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    deserializer.deserialize_any(Members)
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(BTreeMap::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut tags = BTreeMap::new();
        while let Some((key, value)) = access.next_entry::<String, String>()? {
            if tags.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key {} comes twice; keep one",
                    Echo(&key)
                )));
            }
            tags.insert(key, value);
        }
        Ok(tags)
    }
}

#[cfg(test)]
mod tests {
    use crate::NewTask;

    #[test]
    fn a_repeated_key_is_refused() {
        let parse = |text: &str| serde_json::from_str::<NewTask>(text);
        let refused = parse(r#"{"tags": {"a": "1", "b": "2", "a": "3"}}"#).unwrap_err();
        assert!(refused.to_string().contains("the key \"a\" comes twice"), "{refused}");
        assert!(parse(r#"{"tags": null}"#).unwrap().tags.is_empty());
        assert!(parse(r#"{"tags": {"a": 1}}"#).is_err());
        assert!(parse(r#"{"tags": "a"}"#).unwrap_err().to_string().contains("object of strings"));
    }
}

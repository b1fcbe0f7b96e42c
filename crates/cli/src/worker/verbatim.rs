//! A field of a payload as it was written: numbers to the last digit, keys in their order.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The text of a field of a JSON object; none if there is no such field, or no such object.
pub(super) fn field(payload: &[u8], name: &str) -> Option<String> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_slice(payload).ok()?;
    fields.remove(name).map(|text| text.get().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_stays_as_it_came() {
        let payload = br#"{"a": {"z": 1.50, "b": 12345678901234567890123}, "c": 1}"#;
        let text = r#"{"z": 1.50, "b": 12345678901234567890123}"#;
        assert_eq!(field(payload, "a").as_deref(), Some(text));
        assert_eq!(field(payload, "d"), None);
        assert_eq!(field(b"[1]", "a"), None);
    }
}

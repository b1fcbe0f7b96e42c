//! Payloads: bytes that are JSON text as a rule, kept and shown byte for byte.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Bytes that are JSON text as a rule: the payload, output or checkpoint of a task, or a value of a
/// run. In JSON, the text stands there as it is, number formats and white space included; no bytes
/// are `null`. Bytes that are not JSON stand there in base64, and the field with the suffix
/// `_encoding` says so. Clones share the bytes.
///
/// ```
/// use tenure_api::Payload;
///
/// let payload = Payload::json(&["a", "b"]).unwrap();
/// assert_eq!(payload.as_bytes(), br#"["a","b"]"#);
/// assert_eq!(payload.parse::<Vec<String>>().unwrap(), ["a", "b"]);
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Payload(Bytes);

impl Payload {
    /// The bytes as they are.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// A value as JSON text.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        serde_json::to_vec(value).map(Self::new)
    }

    /// The value that the JSON text stands for. No bytes are `null`.
    pub fn parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(if self.0.is_empty() { b"null" } else { &self.0 })
    }

    /// The JSON text `null`.
    #[must_use]
    pub const fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, shared.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Whether there are no bytes, which is `null` in JSON.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the bytes are JSON text. This reads all of them.
    #[must_use]
    pub fn is_json(&self) -> bool {
        serde_json::from_slice::<&RawValue>(&self.0).is_ok()
    }

    fn encoding(&self) -> Encoding {
        match self.is_empty() || self.is_json() {
            true => Encoding::Json,
            false => Encoding::Base64,
        }
    }

    /// Replaces what was read as a JSON string by the bytes that it encodes.
    fn decode(&mut self, encoding: Encoding) -> Result<(), String> {
        if encoding == Encoding::Base64 {
            let text: String = self.parse().map_err(|error| error.to_string())?;
            let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
            *self = Self::new(bytes);
        }
        Ok(())
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<Payload> for Vec<u8> {
    fn from(payload: Payload) -> Self {
        payload.0.into()
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_slice::<&RawValue>(&self.0) {
            Ok(json) => json.serialize(serializer),
            Err(_) if self.0.is_empty() => serializer.serialize_unit(),
            Err(_) => serializer.serialize_str(&STANDARD.encode(&self.0)),
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let payload = with_null(deserializer)?;
        Ok(if payload.as_bytes() == b"null" { Self::default() } else { payload })
    }
}

/// Reads a payload that keeps the text `null`, for fields in which it is a value and not an absence.
pub(crate) fn with_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Payload, D::Error> {
    let json = Box::<RawValue>::deserialize(deserializer)?;
    Ok(Payload::from(Box::<str>::from(json).into_string()))
}

/// How a [`Payload`] is written in JSON. In memory a payload is always its bytes, and its encoding is
/// [`Encoding::Json`]: serializing fills it in, and deserializing decodes the bytes and clears it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// As JSON, byte for byte.
    #[default]
    Json,
    /// As a string: standard base64 with padding.
    Base64,
}

impl Encoding {
    pub(crate) fn is_json(&self) -> bool {
        *self == Encoding::Json
    }
}

/// Implements serde for a struct whose derives have `#[serde(remote = "Self")]`: payloads that are not
/// JSON get their encoding.
macro_rules! encoded_payloads {
    ($name:ident: $($payload:ident as $encoding:ident),*) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let encodings = ($($crate::payload::encoding(&self.$payload),)*);
                let ($($encoding,)*) = encodings;
                if $($encoding.is_json())&&* {
                    return $name::serialize(self, serializer);
                }
                $name::serialize(&Self { $($encoding,)* ..self.clone() }, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut decoded = $name::deserialize(deserializer)?;
                $(
                    let encoding = std::mem::take(&mut decoded.$encoding);
                    $crate::payload::decode(&mut decoded.$payload, encoding)?;
                )*
                Ok(decoded)
            }
        }
    };
}

pub(crate) use encoded_payloads;

pub(crate) fn encoding(payload: &Payload) -> Encoding {
    payload.encoding()
}

pub(crate) fn decode<E: serde::de::Error>(
    payload: &mut Payload,
    encoding: Encoding,
) -> Result<(), E> {
    payload.decode(encoding).map_err(|why| E::custom(format_args!("it is not base64: {why}")))
}

/// Bytes of any kind. In JSON they are a string: standard base64 with padding.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Binary(pub Bytes);

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Binary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Binary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text);
        bytes
            .map(|bytes| Self(bytes.into()))
            .map_err(|error| D::Error::custom(format_args!("it is not base64: {error}")))
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Payload {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::schema::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::SchemaType::AnyValue)
            .description(Some("Any JSON value."))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Payload {}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Binary {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::schema::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some("Bytes in base64."))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Binary {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;

    #[test]
    fn bytes_that_are_not_json_are_shown_as_base64() {
        let shown = |bytes: &[u8]| serde_json::to_string(&Payload::from(bytes.to_vec())).unwrap();
        assert_eq!(shown(b"{\"a\": 1.0}"), "{\"a\": 1.0}", "as it came");
        assert_eq!(shown(b""), "null");
        assert_eq!(shown(b"\xff"), "\"/w==\"");
        assert_eq!(shown(b"no"), "\"bm8=\"");
        assert_eq!(shown(b"yes"), "\"eWVz\"");
    }

    #[test]
    fn every_payload_of_a_task_is_read_back_byte_for_byte() {
        for bytes in [&b"{\"a\":  1.50}"[..], b"\"text\"", b"\xff\x00", b"no json", b""] {
            let payload = Payload::from(bytes.to_vec());
            let (output, checkpoint) = (payload.clone(), payload.clone());
            let task = Task { payload, output, checkpoint, ..Task::default() };
            let text = serde_json::to_string(&task).unwrap();
            assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), task, "{text}");
            let is_json = task.payload.is_empty() || task.payload.is_json();
            for field in ["payload", "output", "checkpoint"] {
                let encoding = format!("\"{field}_encoding\":\"base64\"");
                assert_eq!(text.contains(&encoding), !is_json, "{text}");
            }
        }
        let wrong = serde_json::to_string(&Task::default()).unwrap();
        let wrong =
            wrong.replace("\"payload\":null", "\"payload\":7,\"payload_encoding\":\"base64\"");
        let refused = serde_json::from_str::<Task>(&wrong).unwrap_err();
        assert!(refused.to_string().contains("not base64"), "{refused}");
    }
}

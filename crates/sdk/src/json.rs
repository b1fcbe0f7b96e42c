//! Values as payloads, by serde.

use serde::Serialize;
use tenure_api::Payload;
use tenure_code::Code;

use crate::error::Error;

/// Serializes a value; an error names the field that it is for.
pub(crate) fn payload<T: Serialize + ?Sized>(field: &str, value: &T) -> Result<Payload, Error> {
    Payload::json(value).map_err(|error| {
        let message = format!("the {field} cannot be written as JSON: {error}");
        Error::new(Code::InvalidRequest, message).with_source(error)
    })
}

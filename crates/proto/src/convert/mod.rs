//! Conversions between the outward model and the messages of gRPC, one file per noun, both directions
//! side by side. Structs are taken apart field by field, so that a new field cannot be forgotten.

mod event;
mod queue;
mod report;
pub(crate) mod run;
mod status;
mod task;
#[cfg(test)]
mod tests;
mod worker;
mod workflow;

use std::fmt;

use tenure_api::Timestamp;

/// Why a message is not a request of the outward model. Its text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

fn time(at: Option<u64>) -> Option<Timestamp> {
    at.map(Timestamp)
}

fn ms(at: Option<Timestamp>) -> Option<u64> {
    at.map(Timestamp::as_ms)
}

/// A field that has its default was not given: protobuf cannot tell the two apart.
fn given<T: Default + PartialEq>(field: T) -> Option<T> {
    (field != T::default()).then_some(field)
}

fn all<T: Into<U>, U>(items: Vec<T>) -> Vec<U> {
    items.into_iter().map(Into::into).collect()
}

//! A refusal as HTTP has it: RFC 9457.

use serde::{Deserialize, Serialize};

use crate::Fault;

/// Why a request was refused, as `application/problem+json` (RFC 9457).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// The address of the page that explains the code.
    pub r#type: String,
    /// The code in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable error code, for programs: one of [`tenure_code::Code`].
    pub code: String,
    /// What is wrong and what to do, for people.
    pub detail: String,
    /// All faults of a refused workflow definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

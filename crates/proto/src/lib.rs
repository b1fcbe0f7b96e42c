//! The gRPC contract of Tenure, `proto/tenure/v1/tenure.proto`, as Rust (`cargo xtask proto` writes
//! [`v1`]), and its conversions to and from the outward model `tenure-api`, for both sides of the wire.

mod convert;
/// Package `tenure.v1`.
#[allow(
    missing_docs,
    clippy::all,
    clippy::wildcard_enum_match_arm,
    clippy::too_many_lines,
    clippy::semicolon_if_nothing_returned,
    clippy::uninlined_format_args,
    reason = "a program wrote it"
)]
pub mod v1;

pub use convert::Malformed;
pub use convert::run::{run_ref, wire_ref};

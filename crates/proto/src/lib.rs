//! The wire contract of Tenure, `proto/tenure/v1/tenure.proto`, as Rust. Both sides of the wire use
//! it, and it knows neither of them. `cargo xtask proto` writes it; nothing here is by hand.

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

//! What a workflow is: definitions, expressions, schemas. No state, no clock, no I/O.
//!
//! ```text
//! text ── yaml, json ──▶ Value ── Definition::compile ──▶ Definition, or all its faults
//!                                                           │ nodes, transitions, groups by index
//!                                                           │ Expression, Mapping, Schema, compiled
//!                                                           ▼
//!                                     Scope ── evaluate ──▶ Value
//! ```
//!
//! It is a crate of its own because the expression parser and JSON Schema are heavy, and the rest of
//! the rules should not wait for them.

pub mod definition;
pub mod expression;
mod fault;
pub mod limits;
pub mod mapping;
pub mod schema;
pub mod yaml;

pub use definition::Definition;
pub use expression::{Expression, Scope};
pub use fault::{Fault, FaultCode, TextPosition};
pub use mapping::Mapping;
pub use schema::Schema;

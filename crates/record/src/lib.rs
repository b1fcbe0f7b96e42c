//! What a log says: events and their encoding, ids, names and terms, and what follows from records
//! alone (transitions, histories). Snapshot items are here too, because they are the other format on
//! disk.
//!
//! ```text
//! event    what happened; codec turns it into bytes and back
//! transition, history    what observers are told, from a record alone
//! snapshot    the facts of a state as bytes, item by item
//! ```
//!
//! This crate decides nothing and keeps no state. It has no clock, no I/O and no randomness. `core`
//! writes records, and `audit` checks them; neither knows the other.

pub mod artifact;
pub mod codec;
pub mod event;
pub mod history;
pub mod id;
pub mod limits;
pub mod name;
pub mod snapshot;
pub mod state;
pub mod terms;
pub mod time;
pub mod trace;
pub mod transition;

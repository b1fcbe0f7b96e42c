//! The coordinator in a house where time stands still until it is told, in one program, because each
//! program is a link of everything.
//!
//! What is killed, what golden logs give, and what bugs are planted in have programs of their own.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod archive;
mod durable;
mod following;
mod forgetting;
mod inbox;
mod memory;
mod memory_log;
mod redecide;
mod retention;
mod runs;
mod snapshots_of_runs;
mod waiting;

//! The commands of clients, with the real binary and a real server.
#![allow(clippy::unwrap_used, clippy::panic)]

mod batch;
mod dev;
mod exit_codes;
mod explain;
mod help;
mod json;
mod runs;
mod submit;
mod tables;
pub(crate) mod tenure;
mod watch;

//! Workflows and runs as a user has them: the real binary, real sockets, every endpoint, and the
//! refusals.
#![allow(clippy::unwrap_used, clippy::panic)]

mod broken;
mod by_key;
mod definitions;
mod ending;
mod events;
mod exactness;
mod lines;
mod parked;
mod reads;
mod refusals;
mod signals;
mod story;

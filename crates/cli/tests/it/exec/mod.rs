//! Workers of the real binary, against a real server: programs, process groups, races, requests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod contract;
pub(crate) mod crew;
mod http;
mod process;
mod race;
mod story;

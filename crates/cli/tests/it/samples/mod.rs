//! The samples in `examples/workflows`, with the real binary, a real server and a real worker: what
//! they come to, and that a server which is killed in the middle changes nothing about it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod killed;
mod outcomes;
mod shop;

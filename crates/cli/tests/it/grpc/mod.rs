//! The real binary over real sockets, asked in gRPC: each verb, the refusals, the stream for
//! workers, and the SDK's client and worker.
#![allow(clippy::unwrap_used, clippy::panic)]

mod large;
mod refusals;
mod runs;
mod server;
mod stopping;
mod verbs;
mod work_stream;
mod worker;

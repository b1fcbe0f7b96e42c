//! The wire contract of HTTP: what comes in and what is shown; and what it shares with gRPC.

pub(crate) mod artifact;
pub(crate) mod flow;
pub(crate) mod list;
pub(crate) mod page;
pub(crate) mod pairs;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod run_request;
pub(crate) mod run_shown;
pub(crate) mod shown;
pub(crate) mod terms;

#[cfg(test)]
mod tests;

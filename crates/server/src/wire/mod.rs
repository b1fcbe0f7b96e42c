//! The wire contract of HTTP: what comes in and what is shown; and what it shares with gRPC.

pub(crate) mod page;
pub(crate) mod request;
pub(crate) mod shown;
pub(crate) mod terms;

#[cfg(test)]
mod tests;

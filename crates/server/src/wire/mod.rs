//! Semantic validation: requests of the outward model become commands, or are refused in words. HTTP
//! and gRPC share all of it.

pub(crate) mod artifact;
pub(crate) mod flow;
pub(crate) mod list;
pub(crate) mod page;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod terms;

#[cfg(test)]
mod tests;

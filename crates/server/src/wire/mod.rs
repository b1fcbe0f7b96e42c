//! The wire contract of HTTP: what comes in and what is shown.

pub(crate) mod page;
pub(crate) mod request;
pub(crate) mod shown;

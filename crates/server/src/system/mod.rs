//! Limits and signals of the operating system.

pub(crate) mod memory;
pub(crate) mod rlimits;
pub(crate) mod signals;

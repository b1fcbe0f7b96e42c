//! Artifacts of runs: content-addressed files, and their publication when a run ends.

pub(crate) mod blobs;
pub(crate) mod publish;

//! What observers see: live updates, the event log, metrics and explanations.

pub(crate) mod event_log;
pub(crate) mod explain;
pub(crate) mod follow;
pub(crate) mod metrics;

//! Admission control and backpressure: bounds on connections, bodies, submits and responses.

pub(crate) mod body_budget;
pub(crate) mod connections;
pub(crate) mod response_budget;
pub(crate) mod submit_limiter;

//! The rules of Tenure: tasks, leases, queues and time, as a pure state machine.
//!
//! ```text
//! command ── decide ──▶ event ── encode ──▶ record in the log
//!                         │
//!                         └── apply ──▶ state
//! ```
//!
//! [`decide`] judges and changes nothing; [`apply`] changes and judges nothing. Neither looks at a
//! clock, draws a random number or touches the world: the time and a seed are handed in. So the
//! same records always give the same state, live and on replay.

mod apply;
pub mod command;
mod decide;
pub mod invariant;
pub mod limits;
#[cfg(not(feature = "planted"))]
mod planted;
#[cfg(feature = "planted")]
pub mod planted;
pub mod redecide;
mod rejection;
pub mod shelf;
pub mod state;
mod workflow;

pub use apply::precomputed::Precomputed;
pub use apply::{apply, apply_decided};
pub use decide::{Verdict, decide};
pub use rejection::{Rejection, WorkflowNeed};
pub use state::{Draft, State};
pub use workflow::bytes as decision_bytes;

//! Workflows: what becomes of a run when something happened to it. Everything here is judgement on
//! a draft, and ends in decisions, which are data.
//!
//! ```text
//! a task ended, a signal came, a moment passed
//!        │
//!        ▼
//!     Cascade ── a work list, first in, first out ──▶ decisions, in the order they were taken
//!        │            ▲                                   │
//!        │            │ more work                         └─▶ apply::run, on the draft at once
//!        ▼            │
//!  routing ─ conditions ─ spawning ─ dispatch
//!  synchronization ─ merging ─ context
//!  failing ─ canceling ─ completion
//! ```
//!
//! | room | asks |
//! |---|---|
//! | `routing` | which transitions does a token take? |
//! | `conditions` | what does an expression see? |
//! | `spawning` | which tokens and branches come of it? |
//! | `dispatch` | what moves a token on? |
//! | `synchronization` | has a group met? |
//! | `merging` | what do its branches give together? |
//! | `context` | what does a node's result change? |
//! | `artifacts` | which files does a run leave behind, and under which names? |
//! | `failing`, `canceling` | what does a failure take with it? |
//! | `ending` | what of it ends in this record, if it is too much for one? |
//! | `completion` | is the run over, and what came out? |

mod artifacts;
mod canceling;
mod cascade;
mod completion;
mod conditions;
mod context;
mod dispatch;
mod ending;
mod error;
mod failing;
pub(crate) mod merging;
mod routing;
mod spawning;
mod synchronization;

pub use self::cascade::bytes;
pub(crate) use self::cascade::{At, Cascade, TaskEnd, task_ended};
pub(crate) use self::context::sentence;
pub(crate) use self::dispatch::begin;
pub(crate) use self::error::RunFault;

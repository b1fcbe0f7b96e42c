//! Reading: runs with their tokens, groups and artifacts, and workflows.

mod artifacts;
mod filter;
mod halted;
mod view;

pub use self::artifacts::{ArtifactState, ArtifactView};
pub use self::filter::RunFilter;
pub use self::halted::{EndingView, Halted, ParkedView};
pub use self::view::{GroupView, RunPage, RunView, TokenView, WorkflowView};

//! Reading the state: views of tasks, queues and runs, filtered lists, and why a task waits.

mod due;
mod eligibility;
mod list;
mod phase;
mod position;
mod run;
mod view;

pub use self::due::Due;
pub use self::eligibility::Eligibility;
pub use self::list::{Filter, Page};
pub use self::phase::Phase;
pub use self::position::QueuePosition;
pub use self::run::{
    ArtifactState, ArtifactView, EndingView, GroupView, Halted, ParkedView, RunFilter, RunPage,
    RunView, TokenView, WorkflowView,
};
pub use self::view::{LeaseView, QueueView, TaskView};

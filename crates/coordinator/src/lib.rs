//! The single writer of Tenure: decides requests, appends their records, applies them, and responds
//! once they are durable.
//!
//! ```text
//! request ─▶ inbox ─▶ decide ─▶ append ─▶ apply ─▶ sync ─▶ respond
//! ```
//!
//! This crate is internal. Programs embed Tenure with the crate `tenure`; the server and the
//! simulation are the other users. [`Engine`] is an open data folder with the [`Coordinator`] on a
//! thread; the simulation steps a coordinator by hand.

mod artifact_info;
mod clock;
mod commit;
mod decider;
mod due;
mod engine;
mod feed;
mod filter;
mod history;
mod housekeeping;
mod inbox;
mod info;
mod intake;
pub mod limits;
mod memory;
mod names;
mod opening;
mod parking;
mod pending;
#[cfg(not(feature = "planted"))]
mod planted;
#[cfg(feature = "planted")]
pub mod planted;
mod progress;
mod receive;
mod recover;
mod redecide;
mod refusal;
mod reply;
mod report;
pub mod request;
mod respond;
mod run_history;
mod run_info;
mod runs;
mod serve;
mod shelf;
mod snapshot;
mod soft;
mod step;
mod supply;
mod thread;
mod tick;
mod upkeep;
mod wait;
mod warning;
mod window;
mod workers;

pub use artifact_info::ArtifactInfo;
pub use clock::{ClockJump, Reading};
pub use due::{DueItems, RunTasks};
pub use engine::{Engine, Error, RecoveryInfo};
pub use feed::{Feed, Followed, Follower, Position};
pub use filter::{RunFilter, TaskFilter};
pub use history::{History, Step, histories, history};
pub use inbox::{Inbox, Load, WakesFor};
pub use info::{Explained, Grant, Status, TaskInfo, TaskOfRun, TaskPage, Work};
pub use memory::{Budget, Memory, Permit, Pool};
pub use names::{NamePage, NameRange};
pub use opening::{
    Durability, EngineOptions, Restoration, copy_backup, is_data_file, private, put_back, restore,
};
pub use pending::{Pending, block_on};
pub use progress::ProgressInfo;
pub use recover::{Failure, Progress, Recovery, recover};
pub use redecide::{RedecideError, Redecided, redecide};
pub use refusal::Refusal;
pub use request::{Envelope, Request, RequestClass, Respond, Responder, Response};
pub use run_history::{RunHistory, RunStep};
pub use run_info::{
    EndingInfo, ParkedInfo, RUN_STATES, RunInfo, RunPage, TokenInfo, TokenPage, WorkflowInfo,
    WorkflowPage,
};
pub use shelf::{FileShelf, SHELF_FILE, ShelfUse};
pub use snapshot::{Kept, SnapshotInfo};
pub use step::{Coordinator, Next};
pub use supply::Supply;
pub use upkeep::{Purge, Upkeep};
pub use warning::{Warning, WarningHandler};
pub use workers::{Registration, WorkerInfo};

pub use tenure_log::{Backup, Fault, Keep, Note, ReadLog, Since};

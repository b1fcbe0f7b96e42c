//! The single writer of Tenure, and Tenure as a library.
//!
//! ```text
//! request ─▶ inbox ─▶ decide ─▶ append ─▶ apply ─▶ sync ─▶ respond
//! ```
//!
//! A program that wants durable tasks and nothing to install opens a folder with [`Tenure::open`]:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("tenure-doc-{}", std::process::id()));
//! use std::time::Duration;
//! use tenure_coordinator::{Tenure, new_task};
//!
//! let tenure = Tenure::open(&folder)?;
//! let id = tenure.submit(new_task("mail", r#"{"to":"ada@example.org"}"#)?)?;
//!
//! // Somewhere else: a worker takes it, does it, and says so.
//! for grant in tenure.lease("worker-1", &["mail"], 1, Duration::from_secs(1))? {
//!     assert_eq!(&*grant.payload.read()?, br#"{"to":"ada@example.org"}"#);
//!     tenure.complete(grant.lease(), r#""sent""#)?;
//! }
//! assert_eq!(&*tenure.task(id)?.output.read()?, br#""sent""#);
//! tenure.close()?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! Everything that a call returns is on disk. The process may be killed at any moment; whoever
//! opens the folder next goes on where it ended.

mod artifact_info;
mod clock;
mod commit;
mod due;
mod embedded;
mod feed;
mod filter;
mod history;
mod inbox;
mod info;
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
mod step;
mod supply;
mod thread;
mod tick;
mod upkeep;
mod wait;
mod window;
mod workers;
mod workflows;

pub use artifact_info::ArtifactInfo;
pub use clock::{ClockJump, LogClock, Reading};
pub use due::{DueItems, RunTasks};
pub use embedded::{Change, Error, Start, Tenure, Watch, new_task};
pub use feed::{Feed, Followed, Follower, Position};
pub use filter::{RunFilter, TaskFilter};
pub use history::{History, Step, histories, history};
pub use inbox::{Inbox, Load, WakesFor};
pub use info::{Explained, Grant, Status, TaskInfo, TaskOfRun, TaskPage, Work};
pub use memory::{Budget, Memory, Permit, Pool};
pub use names::{NamePage, NameRange};
pub use opening::{Durability, Opening, Restoration, is_data_file, private, put_back, restore};
pub use pending::Pending;
pub use progress::ProgressInfo;
pub use recover::{Failure, Progress, Proof, Recovery, recover, recover_beside};
pub use redecide::{RedecideError, Redecided, redecide};
pub use refusal::Refusal;
pub use request::{Envelope, Request, RequestClass, Respond, Responder, Response};
pub use run_history::{RunHistory, RunStep, run_history};
pub use run_info::{
    EndingInfo, ParkedInfo, RUN_STATES, RunInfo, RunPage, TokenInfo, TokenPage, WorkflowInfo,
    WorkflowPage,
};
pub use shelf::{FileShelf, SHELF_FILE, ShelfUse};
pub use snapshot::{Kept, SnapshotInfo};
pub use step::{Coordinator, Next};
pub use supply::Supply;
pub use thread::{MachineClock, Trouble, run};
pub use upkeep::{Purge, Upkeep};
pub use workers::{Registration, WorkerInfo};

pub use tenure_log::{Backup, Fault, Keep, Note, ReadLog, Since};

//! What keeps a workflow from being deleted.

use std::fmt;
use std::sync::Arc;

use tenure_code::Echo;

/// What keeps a workflow from being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkflowNeed {
    /// So many runs of it, finished ones included.
    Runs(u64),
    /// A definition with a node that calls it.
    Caller {
        /// The caller's name.
        name: Arc<str>,
        /// The caller's version.
        version: u32,
    },
}

impl fmt::Display for WorkflowNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = match self {
            WorkflowNeed::Runs(1) => "one run".to_owned(),
            WorkflowNeed::Runs(runs) => format!("{runs} runs"),
            WorkflowNeed::Caller { name, version } => {
                let caller = Echo(name);
                return write!(
                    f,
                    "is called by version {version} of workflow {caller}; delete that first"
                );
            }
        };
        write!(
            f,
            "has {runs}, finished ones that are kept included; delete it when they have ended and \
             retention has let them go"
        )
    }
}

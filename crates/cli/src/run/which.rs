//! Which run a command is about: by its number, or by its workflow and key.

use clap::Args;
use tenure_sdk::RunRef;

use crate::failure::Failure;

#[derive(Clone, Debug, Args)]
pub(super) struct Which {
    /// The run's number; with --key, the name of its workflow.
    #[arg(value_name = "ID|WORKFLOW")]
    run: String,

    /// The run of that workflow that holds this key.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Which {
    /// The run that is meant.
    pub(super) fn parse(&self) -> Result<RunRef, Failure> {
        if let Some(key) = &self.key {
            return Ok(RunRef::key(&self.run, key));
        }
        self.run.parse::<u64>().map(RunRef::Id).map_err(|_| {
            Failure::Usage(format!(
                "{:?} is no run's number; with a workflow's name give --key too",
                self.run
            ))
        })
    }
}

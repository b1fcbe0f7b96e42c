//! Programs that a worker of its own runs. Each writes down that it ran, under which lease, and gives
//! the lease as its output.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, Gone};
use super::{Book, Wish};
use crate::server::get_from;

/// From where the worker takes tasks.
pub(crate) const EXEC_QUEUE: &str = "programs";
/// What it is called.
pub(crate) const EXEC_WORKER: &str = "exec";
const PROGRAM: &str = "echo $TENURE_TASK_ID $TENURE_LEASE_ID >> \"$0\"; echo $TENURE_LEASE_ID";

impl Client<'_> {
    pub(super) fn submit_program(&mut self) -> Result<(), Gone> {
        let nonce = self.oracle.nonce();
        let mut task = self.task(nonce);
        task["queue"] = json!(EXEC_QUEUE);
        task["payload"] = json!({"nonce": nonce, "argv": ["sh", "-c", PROGRAM, self.oracle.ran]});
        self.submit(Wish::Submit { nonces: vec![nonce] }, "/v1/tasks", &task)
    }
}

impl Book {
    /// What the worker completed, as task and lease.
    pub(super) fn programs_completed(&self) -> impl Iterator<Item = (u64, u64)> {
        let is_of =
            |event: &&Value| event["event"] == "TaskCompleted" && event["worker"] == EXEC_WORKER;
        let pair = |event: &Value| Some((event["task_id"].as_u64()?, event["lease_id"].as_u64()?));
        self.truth.values().filter(is_of).filter_map(pair)
    }

    /// A program that was completed ran under that lease and gave that output; none ran twice under
    /// one lease.
    pub(super) fn check_programs(&mut self, address: &str, ran: &Path, faults: &mut Vec<String>) {
        let text = std::fs::read_to_string(ran).unwrap_or_default();
        let mut leases = HashSet::new();
        for line in text.lines() {
            if !leases.insert(line) {
                faults.push(format!("task and lease {line} ran twice"));
            }
        }
        let new = self.programs_completed().filter(|(task, _)| !self.ran.contains(task));
        for (task, lease) in new.collect::<Vec<_>>() {
            if !leases.contains(format!("{task} {lease}").as_str()) {
                faults.push(format!("task {task} is completed and did not run as lease {lease}"));
            }
            let (_, shown) = get_from(address, &format!("/v1/tasks/{task}"));
            if shown["output"] != lease {
                faults.push(format!("lost: the output {lease} of task {task}: {shown}"));
            }
            self.ran.insert(task);
        }
    }
}

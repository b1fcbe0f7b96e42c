//! Runs under the oracle's eyes: started, told news, read, and come to an end.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use super::client::{Client, Gone, alive};
use super::{Book, Outcome, ReadRun, Wish};
use crate::server::{get_from, url};

/// A task with the number of its run, then news from outside.
const STORY: &str = "
workflow: story
initial_node: work
nodes:
  - ref: work
    kind: task
    task: {queue: q0, lease_ms: 1000}
    input_mapping: {nonce: input.nonce}
    retry: {max_failures: 20, backoff: {kind: fixed, initial_ms: 10}}
  - {ref: approve, kind: signal, signal: {name: approval}, output_mapping: {context.by: result.by}}
transitions:
  - {ref: then, from: work, to: approve}
output_mapping: {nonce: input.nonce, by: context.by}
";

impl Client<'_> {
    /// Registers the workflow, which is the same each time.
    pub(super) fn put_workflow(&self) -> Result<(), Gone> {
        let request = self.agent.put(url(&self.address, "/v1/workflows/story"));
        match request.content_type("application/yaml").send(STORY) {
            Ok(answer) => {
                let status = answer.status().as_u16();
                assert!(matches!(status, 200 | 201 | 500..), "the workflow is good: {status}");
                Ok(())
            }
            Err(_) => Err(Gone),
        }
    }

    pub(super) fn act_on_runs(&mut self) -> Result<(), Gone> {
        match self.draw(4) {
            0 | 1 => self.start(),
            2 => self.signal_one(),
            _ => self.read_run(),
        }
    }

    fn start(&mut self) -> Result<(), Gone> {
        let nonce = self.oracle.nonce();
        let body = json!({"input": {"nonce": nonce}, "key": format!("run-{nonce}")});
        self.submit(Wish::Start { nonce }, "/v1/workflows/story/runs", &body)
    }

    fn some_run(&mut self) -> Option<u64> {
        let at = self.draw(self.known_runs.len().max(1) as u64) as usize;
        self.known_runs.get(at).copied()
    }

    fn signal_one(&mut self) -> Result<(), Gone> {
        let Some(run) = self.some_run() else { return Ok(()) };
        alive(&self.signal(run))
    }

    fn signal(&mut self, run: u64) -> Outcome {
        let nonce = self.oracle.nonce();
        let body = json!({"payload": {"by": nonce}, "signal_id": format!("signal-{nonce}")});
        let path = format!("/v1/runs/{run}/signals/approval");
        self.send(Wish::Signal { run, nonce }, &path, &body)
    }

    /// Sends news to every run that waits for some, and says to how many.
    pub(super) fn signal_all(&mut self) -> usize {
        let waiting = self.show("/v1/runs?state=WAITING&limit=1000");
        let runs = waiting["items"].as_array().cloned().unwrap_or_default();
        for run in runs.iter().filter_map(|run| run["id"].as_u64()) {
            self.signal(run);
        }
        runs.len()
    }

    fn read_run(&mut self) -> Result<(), Gone> {
        let Some(run) = self.some_run() else { return Ok(()) };
        let shown = self.show(&format!("/v1/runs/{run}"));
        let Some(state) = shown["state"].as_str() else { return Err(Gone) };
        self.oracle.saw_run(ReadRun { run, state: state.to_owned() });
        Ok(())
    }
}

impl Book {
    fn of_run(&self, run: u64) -> impl Iterator<Item = &Value> {
        self.of_run.get(&run).into_iter().flatten().map(|position| &self.truth[position])
    }

    /// Runs that have come to a good end.
    pub(super) fn runs_completed(&self) -> usize {
        let ends = |run: &u64| self.of_run(*run).any(|step| step["to"] == "COMPLETED");
        self.of_run.keys().filter(|run| ends(run)).count()
    }

    /// A start that was acknowledged is one run with one task, as it was wished for.
    pub(super) fn check_started(
        &self,
        address: &str,
        nonce: u64,
        run: &Value,
    ) -> Result<(), String> {
        let id = run["id"].as_u64().unwrap();
        let tasks = self.ids.get(&nonce).map_or(0, Vec::len);
        if tasks != 1 || !self.of_run(id).any(|step| step["event"] == "RunStarted") {
            return Err(format!("lost (run {id} has {tasks} tasks)"));
        }
        match get_from(address, &format!("/v1/runs/{id}")).1 {
            shown if shown["input"]["nonce"] == nonce => Ok(()),
            shown => Err(format!("lost (run {id} is {shown})")),
        }
    }

    /// News count once, ends stay, and nothing that was shown of a run is undone.
    pub(super) fn check_runs(&mut self, address: &str, faults: &mut Vec<String>) {
        let mut told: HashMap<u64, (BTreeSet<u64>, BTreeSet<u64>)> = HashMap::new();
        for act in &self.acts {
            let Wish::Signal { run, nonce } = act.wish else { continue };
            let (acknowledged, possible) = told.entry(run).or_default();
            match act.outcome {
                Outcome::Ok(_) => acknowledged.insert(nonce) && possible.insert(nonce),
                Outcome::Unknown => possible.insert(nonce),
                Outcome::Refused(_) => false,
            };
        }
        for (run, (acknowledged, possible)) in told {
            let seen = self.of_run(run).filter(|step| step["event"] == "SignalReceived").count();
            if seen < acknowledged.len() {
                faults.push(format!("lost: {acknowledged:?} were told to run {run}, {seen} are"));
            }
            if seen > possible.len() {
                faults.push(format!("run {run} heard {seen} of {possible:?}"));
            }
        }
        for read in &self.run_reads {
            let is_there = self.of_run(read.run).any(|step| match read.state.as_str() {
                "RUNNING" | "WAITING" => step["event"] == "RunStarted",
                state => step["event"] == "RunFinished" && step["to"] == state,
            });
            if !is_there {
                faults.push(format!("undone: {read:?}"));
            }
        }
        self.check_ends(address, faults);
    }

    /// A run ends once, and so it stays.
    fn check_ends(&mut self, address: &str, faults: &mut Vec<String>) {
        let new = self.of_run.keys().copied().filter(|run| !self.ended.contains(run));
        for run in new.collect::<Vec<_>>() {
            let ends = self.of_run(run).filter(|step| step["event"] == "RunFinished");
            let ends: Vec<_> = ends.map(|step| step["to"].clone()).collect();
            if ends.is_empty() {
                continue;
            }
            let (_, shown) = get_from(address, &format!("/v1/runs/{run}"));
            if ends.len() > 1 || shown["state"] != ends[0] {
                faults.push(format!("undone: run {run} ended {ends:?} and is {shown}"));
            }
            self.ended.insert(run);
        }
    }
}

//! After a restart: is everything there that was promised, and nothing that was not?

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::client::for_each_event;
use super::programs::EXEC_WORKER;
use super::{Act, Book, Oracle, Outcome, Position, Wish};
use crate::server::{get_from, post_to};

/// Every so many checks everything is read again from the beginning.
const WHOLE_EVERY: usize = 10;
/// Faults that are named; the rest is counted.
const NAMED_MAX: usize = 20;

impl Oracle {
    /// Checks everything that is new; no client may act meanwhile.
    pub(crate) fn check(&self, address: &str) -> Result<(), String> {
        let mut book = self.book();
        book.checks += 1;
        let mut faults = Vec::new();
        let whole = book.checks.is_multiple_of(WHOLE_EVERY);
        book.learn_truth(address, whole, &mut faults);
        book.check_order(&mut faults);
        book.check_acts(address, &mut faults);
        book.check_reads(&mut faults);
        book.check_told(&mut faults);
        book.check_completions(&mut faults);
        book.check_runs(address, &mut faults);
        book.check_programs(address, &self.ran, &mut faults);
        book.count(&faults);
        match faults.len() {
            0 => Ok(()),
            count => {
                faults.truncate(NAMED_MAX);
                let journal = self.path.display();
                Err(format!("{count} faults; {journal} has the story:\n{}", faults.join("\n")))
            }
        }
    }

    /// Checks everything from the beginning.
    pub(crate) fn check_all(&self, address: &str) -> Result<(), String> {
        let mut book = self.book();
        (book.acts_checked, book.reads_checked) = (0, 0);
        book.ended.clear();
        book.ran.clear();
        book.checks = WHOLE_EVERY - 1;
        drop(book);
        self.check(address)
    }
}

impl Book {
    fn count(&mut self, faults: &[String]) {
        for fault in faults {
            match fault {
                _ if fault.starts_with("lost") => self.lost += 1,
                _ if fault.starts_with("undone") => self.undone += 1,
                _ => self.other += 1,
            }
        }
    }

    /// Asks the server for all that happened, up to a task that is submitted as a mark.
    fn learn_truth(&mut self, address: &str, whole: bool, faults: &mut Vec<String>) {
        let (_, status) = get_from(address, "/v1/status");
        let last = self.truth.last_key_value().map(|(position, _)| *position);
        let told = self.told.values().filter_map(|told| told.last()).map(|(at, _)| at.0).max();
        let seen = told.max(last.map(|(lsn, _)| lsn)).unwrap_or(0);
        let lsn = status["durable_lsn"].as_u64().unwrap_or(0);
        if lsn < seen {
            faults.push(format!("undone: LSN {seen} was told, and now the last one is {lsn}"));
            return;
        }
        let (_, mark) = post_to(address, "/v1/tasks", &json!({"queue": "mark"}).to_string());
        let mark = mark["id"].as_u64().expect("a mark is taken");
        let mut new = Vec::new();
        let mut found = false;
        for_each_event(address, last.filter(|_| !whole), |position, event| {
            found = event["task_id"] == mark;
            new.push((position, event));
            !found
        });
        assert!(found, "the events do not come to the mark");
        if whole {
            let told: HashMap<_, _> = new.iter().cloned().collect();
            for (position, event) in &self.truth {
                if told.get(position) != Some(event) {
                    let now = told.get(position);
                    faults.push(format!("undone: {position:?} was {event}, and is now {now:?}"));
                }
            }
        }
        for (position, event) in new {
            if self.truth.contains_key(&position) {
                continue;
            }
            let Some(task) = event["task_id"].as_u64() else {
                let run = event["run_id"].as_u64().expect("an event is about a task or a run");
                self.of_run.entry(run).or_default().push(position);
                self.truth.insert(position, event);
                continue;
            };
            self.of_task.entry(task).or_default().push(position);
            if event["event"] == "TaskCreated" && event["queue"] != "mark" {
                let (_, shown) = get_from(address, &format!("/v1/tasks/{task}"));
                match shown["payload"]["nonce"].as_u64() {
                    Some(nonce) => self.ids.entry(nonce).or_default().push(task),
                    None => faults.push(format!("lost: task {task} has no payload: {shown}")),
                }
            }
            self.truth.insert(position, event);
        }
    }

    /// Lease ids only grow, and every id of a task too.
    fn check_order(&self, faults: &mut Vec<String>) {
        let (mut lease, mut task) = (0, 0);
        for (position, event) in &self.truth {
            if event["event"] == "LeaseGranted" {
                let next = event["lease_id"].as_u64().unwrap_or(0);
                if next <= lease {
                    faults
                        .push(format!("undone: lease {next} after lease {lease} at {position:?}"));
                }
                lease = next;
            }
            if event["event"] == "TaskCreated" {
                let next = event["task_id"].as_u64().unwrap_or(0);
                if next <= task {
                    faults.push(format!("undone: task {next} after task {task} at {position:?}"));
                }
                task = next;
            }
        }
    }

    fn has(&self, task: u64, event: &str, lease: Option<u64>) -> bool {
        self.of(task).any(|step| {
            step["event"] == event && lease.is_none_or(|lease| step["lease_id"] == lease)
        })
    }

    fn of(&self, task: u64) -> impl Iterator<Item = &Value> {
        let positions: &[Position] = self.of_task.get(&task).map_or(&[], Vec::as_slice);
        positions.iter().map(|position| &self.truth[position])
    }

    fn check_acts(&mut self, address: &str, faults: &mut Vec<String>) {
        let mut retried: HashMap<u64, usize> = HashMap::new();
        for act in &self.acts {
            if let (Wish::Retry { task }, Outcome::Ok(_)) = (&act.wish, &act.outcome) {
                *retried.entry(*task).or_default() += 1;
            }
        }
        for (task, count) in retried {
            let found = self.of(task).filter(|step| step["event"] == "TaskRetried").count();
            if found < count {
                faults.push(format!("lost: task {task} was retried {count} times, not {found}"));
            }
        }
        for number in self.acts_checked..self.acts.len() {
            let act = self.acts[number].clone();
            if let Err(fault) = self.check_act(address, &act) {
                faults.push(format!("{fault}: act {number}, {act:?}"));
            }
        }
        self.acts_checked = self.acts.len();
        let settled: Vec<_> = self.settled.iter().map(|(nonce, is)| (*nonce, *is)).collect();
        for (nonce, was_there) in settled {
            if self.ids.contains_key(&nonce) != was_there {
                faults.push(format!("undone: submit {nonce} was there: {was_there}"));
            }
        }
    }

    fn check_act(&mut self, address: &str, act: &Act) -> Result<(), String> {
        let needs = |is: bool| if is { Ok(()) } else { Err("lost".to_owned()) };
        match (&act.wish, &act.outcome) {
            (Wish::Submit { nonces }, Outcome::Ok(answer)) => {
                self.check_submitted(address, nonces, answer)
            }
            (Wish::Submit { nonces }, Outcome::Unknown) => self.check_unknown(nonces),
            (Wish::Start { nonce }, Outcome::Ok(run)) => self.check_started(address, *nonce, run),
            (Wish::Start { nonce }, Outcome::Unknown) => self.check_unknown(&[*nonce]),
            (Wish::Submit { nonces } | Wish::BadSubmit { nonces }, Outcome::Refused(_)) => {
                match nonces.iter().any(|nonce| self.ids.contains_key(nonce)) {
                    true => Err("a refusal left a trace".to_owned()),
                    false => Ok(()),
                }
            }
            (Wish::BadSubmit { .. }, Outcome::Ok(_)) => Err("it should be refused".to_owned()),
            (Wish::Lease { worker }, Outcome::Ok(answer)) => {
                let leases = answer["leases"].as_array().unwrap().iter();
                let mut missing = leases.filter(|lease| {
                    let (task, lease_id) = (lease["task_id"].as_u64().unwrap(), &lease["lease_id"]);
                    !self.of(task).any(|step| {
                        step["event"] == "LeaseGranted"
                            && step["lease_id"] == *lease_id
                            && step["worker"] == *worker
                    })
                });
                needs(missing.next().is_none())
            }
            (Wish::Heartbeat { task, lease }, Outcome::Ok(answer)) => {
                let until = answer["expires_at"].as_str().unwrap();
                let early = self.of(*task).any(|step| {
                    // Both are written in the same way, so the texts can be compared.
                    step["event"] == "LeaseExpired"
                        && step["lease_id"] == *lease
                        && step["at"].as_str().unwrap() < until
                });
                needs(!early)
            }
            (Wish::Complete { task, lease, output }, Outcome::Ok(_)) => {
                needs(self.has(*task, "TaskCompleted", Some(*lease)))?;
                let (_, shown) = get_from(address, &format!("/v1/tasks/{task}"));
                needs(shown["state"] == "COMPLETED" && shown["output"] == *output)
            }
            (Wish::Fail { task, lease }, Outcome::Ok(_)) => {
                needs(self.has(*task, "TaskFailed", Some(*lease)))
            }
            (Wish::Release { task, lease }, Outcome::Ok(_)) => {
                needs(self.has(*task, "LeaseReleased", Some(*lease)))
            }
            (Wish::Cancel { task }, Outcome::Ok(_)) => {
                needs(self.has(*task, "CancelRequested", None))
            }
            // Retries are counted for each task, signals for each run.
            (Wish::Retry { .. } | Wish::Signal { .. }, _)
            // Who was not answered or was refused is not owed anything; that nothing came of a
            // refused report is seen by where completions come from.
            | (_, Outcome::Unknown | Outcome::Refused(_)) => Ok(()),
        }
    }

    fn check_submitted(&self, address: &str, nonces: &[u64], answer: &Value) -> Result<(), String> {
        let one = [answer["id"].clone()];
        let ids = answer["ids"].as_array().map_or(&one[..], Vec::as_slice);
        for (nonce, id) in nonces.iter().zip(ids) {
            let id = id.as_u64().unwrap();
            match self.ids.get(nonce).map(Vec::as_slice) {
                Some([only]) if *only == id => {}
                Some(others) => return Err(format!("submit {nonce} is task {others:?}, not {id}")),
                None => return Err("lost".to_owned()),
            }
            let (status, shown) = get_from(address, &format!("/v1/tasks/{id}"));
            if status != 200 || shown["payload"]["nonce"] != *nonce {
                return Err(format!("lost (task {id} is {shown})"));
            }
        }
        Ok(())
    }

    /// Wholly there or not at all, and so it stays, unless its sender tries again.
    fn check_unknown(&mut self, nonces: &[u64]) -> Result<(), String> {
        let there = nonces.iter().filter(|nonce| self.ids.contains_key(nonce)).count();
        if there != 0 && there != nonces.len() {
            return Err(format!("{there} of {} are there", nonces.len()));
        }
        if there > 0 || nonces.len() > 1 {
            self.settled.extend(nonces.iter().map(|nonce| (*nonce, there > 0)));
        }
        Ok(())
    }

    fn check_reads(&mut self, faults: &mut Vec<String>) {
        for read in &self.reads[self.reads_checked..] {
            let is_there = self
                .of(read.task)
                .any(|step| step["to"] == read.state && step["attempt"] == read.attempt);
            if !is_there {
                faults.push(format!("undone: {read:?}"));
            }
        }
        self.reads_checked = self.reads.len();
    }

    /// Observers missed nothing, saw nothing twice, and nothing that is not so.
    fn check_told(&self, faults: &mut Vec<String>) {
        for (observer, told) in &self.told {
            let Some((first, _)) = told.first() else { continue };
            let mut truth = self.truth.range(first..);
            for (position, event) in told {
                if truth.next() != Some((position, event)) {
                    faults
                        .push(format!("undone: observer {observer} was told {position:?} {event}"));
                    break;
                }
            }
        }
    }

    /// At most one completion per task, each wished for by somebody who was not refused.
    fn check_completions(&self, faults: &mut Vec<String>) {
        let wished = self.acts.iter().filter_map(|act| match (&act.wish, &act.outcome) {
            (Wish::Complete { task, lease, .. }, Outcome::Ok(_) | Outcome::Unknown) => {
                Some((*task, *lease))
            }
            _ => None,
        });
        let wished: HashSet<_> = wished.collect();
        let mut completed = HashSet::new();
        for event in self.truth.values().filter(|event| event["event"] == "TaskCompleted") {
            let task = event["task_id"].as_u64().unwrap();
            let lease = event["lease_id"].as_u64().unwrap();
            let is_program = event["worker"] == EXEC_WORKER;
            if !completed.insert(task) {
                faults.push(format!("task {task} was completed twice"));
            }
            if !is_program && !wished.contains(&(task, lease)) {
                faults.push(format!("nobody completed task {task} under lease {lease}"));
            }
        }
    }
}

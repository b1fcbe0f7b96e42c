//! A story as it unfolds: a state, a log of encoded records, and two clocks.
//!
//! ```text
//! wait SPAN [wall=SPAN]    both clocks move on; the wall clock by another span if one is given
//! wall SPAN                the wall clock alone jumps, ahead or (with a minus) back
//! seed NUMBER              what jitter is drawn from
//! crash                    everything but the log is lost; the log is replayed
//! snapshot                 the state is written as a snapshot, and goes on from what is read of it
//! repeat TIMES COMMAND …   shows the last time only
//! task TASK   history TASK   queues   next   run RUN   tokens RUN
//! tasks [queue= state= tag=k:v worker= limit= before=]
//! ```

use std::fmt::Write as _;

use tenure_core::command::Rest;
use tenure_core::state::Filter;
use tenure_core::state::snapshot::{Decoder, Encoder};
use tenure_core::{Draft, State, Verdict, apply, decide, invariant};
use tenure_record::codec;
use tenure_record::event::Record;
use tenure_record::id::TaskId;
use tenure_record::state::TaskState;
use tenure_record::time::{Now, Timestamp};
use tenure_record::transition::{Transition, transitions};

use super::command::{self, pair, run_id, task_id};
use super::words::{self, Words, number, span};
use super::{print, run};

/// All stories begin at this moment; the times they show are counted from it.
pub(crate) const EPOCH_MS: u64 = 1_700_000_000_000;

pub(crate) struct Story {
    state: State,
    log: Vec<Vec<u8>>,
    log_clock: Timestamp,
    wall_clock: Timestamp,
    seed: u64,
}

impl Story {
    pub(crate) fn new() -> Self {
        let start = Timestamp(EPOCH_MS);
        let (state, log) = (State::new(0), Vec::new());
        Self { state, log, log_clock: start, wall_clock: start, seed: 0 }
    }

    /// Plays one line and writes down what happened.
    pub(crate) fn play(&mut self, line: &str, output: &mut String) -> Result<(), String> {
        if let Some(rest) = line.strip_prefix("repeat ") {
            let (times, line) = rest.split_once(' ').ok_or("repeat what?")?;
            let start = output.len();
            for _ in 0..number(times)? {
                output.truncate(start);
                self.play(line, output)?;
            }
            return Ok(());
        }
        if let Some(text) = line.strip_prefix("workflow\n") {
            return self.command(&command::workflow(text)?, output);
        }
        let mut parts = words::parts(line)?;
        let verb = parts[0].next("the verb")?;
        if let [words] = parts.as_mut_slice()
            && self.tell(&verb, words, output)?
        {
            return parts.remove(0).finish();
        }
        let command = command::parse(&verb, parts)?;
        self.command(&command.ok_or(format!("the verb `{verb}` is not known"))?, output)
    }

    /// The verbs of the story itself. Says whether it was one of them.
    fn tell(&mut self, verb: &str, words: &mut Words, out: &mut String) -> Result<bool, String> {
        match verb {
            "wait" => {
                let ms = span(&words.next("the span")?)?;
                let wall_ms = words.span("wall")?.unwrap_or(ms);
                self.log_clock = moved(self.log_clock, ms);
                self.wall_clock = moved(self.wall_clock, wall_ms);
                print::clocks(self.log_clock, self.wall_clock, out);
            }
            "wall" => {
                self.wall_clock = moved(self.wall_clock, span(&words.next("the span")?)?);
                print::clocks(self.log_clock, self.wall_clock, out);
            }
            "seed" => self.seed = number(&words.next("the number")?)? as u64,
            "crash" => {
                self.state = self.replay()?;
                let _ = writeln!(out, "ok: {} records replayed, same state", self.log.len());
            }
            "snapshot" => {
                self.state = self.reload()?;
                out.push_str("ok: written and read, same state\n");
            }
            "task" => {
                let id = task_id(&words.next("the task")?)?;
                match self.state.task(id) {
                    Some(task) => print::task(&task, out),
                    None => out.push_str("no such task\n"),
                }
            }
            "history" => self.history(task_id(&words.next("the task")?)?, out)?,
            "tasks" => self.list(words, out)?,
            "queues" => {
                self.state.advance(self.now());
                self.state.queues().iter().for_each(|queue| print::queue(queue, out));
                if self.state.queues().is_empty() {
                    out.push_str("no queues\n");
                }
            }
            "run" => run::run(&self.state, run_id(&words.next("the run")?)?, out),
            "tokens" => run::tokens(&self.state, run_id(&words.next("the run")?)?, out),
            "next" => {
                self.state.advance(self.now());
                print::next(&self.state, out);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn now(&self) -> Now {
        Now { log: self.log_clock, wall: self.wall_clock }
    }

    /// The path of every request: decide, append, apply, answer.
    fn command(
        &mut self,
        command: &tenure_core::command::Command,
        out: &mut String,
    ) -> Result<(), String> {
        let now = self.now();
        self.state.advance(now);
        let before = self.state.clone();
        let mut draft = Draft::new(&before);
        let (event, reply) = match decide(&mut draft, command, now, self.seed) {
            Ok(Verdict::Append(event, reply)) => (event, reply),
            Ok(Verdict::Answer(reply)) => {
                print::reply(&reply, out);
                return Ok(());
            }
            Err(refusal) => {
                print::refusal(&refusal, out);
                return Ok(());
            }
        };
        let record = Record { lsn: before.last_lsn().next(), at: now.log, wall: now.wall, event };
        let mut bytes = Vec::new();
        codec::encode(&record, &mut bytes);
        let decoded = decoded(&bytes)?;
        if decoded != record {
            return Err(format!("decoded, the record differs:\n{record:?}\n{decoded:?}"));
        }
        apply(&mut self.state, &decoded);
        let agrees = draft.check_against(&self.state);
        agrees.map_err(|found| format!("the draft is not what the record did: {found}"))?;
        invariant::check(&self.state).map_err(|broken| format!("a law is broken: {broken}"))?;
        print::record(&record, out);
        print::reply(&reply, out);
        self.log.push(bytes);
        Ok(())
    }

    fn replay(&self) -> Result<State, String> {
        let mut state = State::replaying(1);
        for bytes in &self.log {
            apply(&mut state, &decoded(bytes)?);
        }
        state.serve(self.now());
        invariant::check(&state).map_err(|broken| format!("replay breaks a law: {broken}"))?;
        if state.facts().hash() != self.state.facts().hash() {
            return Err("replay gives another state than living through it".to_owned());
        }
        // The hash leaves out the counters, a draft without a change does not.
        Draft::new(&self.state).check_against(&state)?;
        Ok(state)
    }

    /// The state as a snapshot of it gives it.
    fn reload(&self) -> Result<State, String> {
        let mut encoder = Encoder::new(self.state.facts().clone());
        let mut bytes = Vec::new();
        while encoder.next_block(&mut bytes).expect("all is in memory") == Rest::More {}
        let mut decoder = Decoder::new(1);
        let read = decoder.feed(&bytes).and_then(|()| decoder.finish());
        let mut state = read.map_err(|malformed| malformed.to_string())?;
        state.serve(self.now());
        invariant::check(&state).map_err(|broken| format!("a snapshot breaks a law: {broken}"))?;
        if state.facts().hash() != self.state.facts().hash() {
            return Err("a snapshot gives another state".to_owned());
        }
        Ok(state)
    }

    /// The whole log again gives the same state.
    pub(crate) fn verify(&self) -> Result<(), String> {
        self.replay().map(drop)
    }

    /// Walks a task's chain of records back from the last one, and checks that nothing is missing.
    fn history(&self, id: TaskId, out: &mut String) -> Result<(), String> {
        let records = self.log.iter().map(|bytes| decoded(bytes)).collect::<Result<Vec<_>, _>>()?;
        let of_task = |record| transitions(record).into_iter().filter(|step| step.task_id == id);
        let all: Vec<(_, Transition<'_>)> =
            records.iter().flat_map(|r| of_task(r).map(|step| (r.lsn, step))).collect();
        if let Some(task) = self.state.task(id) {
            let (mut chained, mut at) = (Vec::new(), task.last_lsn());
            while at.is_some() {
                let record = &records[at.0 as usize - 1];
                let steps: Vec<_> = of_task(record).map(|step| (at, step)).collect();
                let (_, first) = steps.first().ok_or(format!("the chain leads to record {at}"))?;
                at = first.previous;
                chained.extend(steps.into_iter().rev());
            }
            chained.reverse();
            if chained != all {
                return Err(format!("the chain gives\n{chained:?}\nand the log\n{all:?}"));
            }
        }
        for (lsn, step) in &all {
            let _ = write!(out, "{lsn}.{} {} ", step.index, step.event);
            print::transition(step, out);
        }
        Ok(())
    }

    fn list(&mut self, words: &mut Words, out: &mut String) -> Result<(), String> {
        let state = words.named("state").map(|name| {
            let found = TaskState::ALL.into_iter().find(|state| state.as_str() == name);
            found.ok_or(format!("`{name}` is no state"))
        });
        let (queue, worker) = (words.named("queue"), words.named("worker"));
        let (name, tag, code) = (words.named("name"), words.named("tag"), words.named("code"));
        let retrying = words.named("retrying").map(|text| text == "true");
        let filter = Filter {
            queue: queue.as_deref(),
            state: state.transpose()?,
            name: name.as_deref(),
            tag: tag.as_deref().map(pair).transpose()?,
            worker: worker.as_deref(),
            run: None,
            code: code.as_deref(),
            retrying,
        };
        let before = words.named("before").map(|text| task_id(&text)).transpose()?;
        let limit = words.number("limit")?.unwrap_or(100) as usize;
        let page = self.state.list(&filter, before, limit);
        for task in &page.tasks {
            let _ = writeln!(out, "task {} {}: {}", task.id, task.queue(), task.state());
        }
        match page.next {
            Some(next) => {
                let _ = writeln!(out, "more before={next}");
            }
            None => out.push_str("no more\n"),
        }
        Ok(())
    }
}

fn moved(clock: Timestamp, ms: i64) -> Timestamp {
    Timestamp(clock.0.saturating_add_signed(ms))
}

fn decoded(bytes: &[u8]) -> Result<Record<'_>, String> {
    codec::decode(bytes).map_err(|malformed| format!("a record cannot be read: {malformed:?}"))
}

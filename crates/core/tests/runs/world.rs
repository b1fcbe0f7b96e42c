//! A state that serves, a log, and a second state that reads the log as it is written: a crash at
//! every record.

use std::num::NonZeroU32;
use std::sync::Arc;

use tenure_audit::Audit;
use tenure_core::command::{
    Command, CompleteTask, FailTask, LeaseRef, LeaseTasks, RegisterWorkflow, Reply, Rest, Retry,
    SignalRun, StartRun, Swept,
};
use tenure_core::{
    Draft, Rejection, State, Verdict, apply, apply_decided, decide, invariant, redecide,
};
use tenure_flow::Definition;
use tenure_record::codec;
use tenure_record::event::{Event, Json, Record};
use tenure_record::id::{RunId, TaskId};
use tenure_record::name::{FailureCode, QueueName, Reason, SignalText, WorkerName};
use tenure_record::state::TaskState;
use tenure_record::terms::{Payload, Tags};
use tenure_record::time::{Now, Timestamp};
use tenure_value::Value;

use crate::snapshots;

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) state: State,
    replayed: State,
    audit: Audit,
    pub(crate) now: Timestamp,
    /// How far the wall clock is ahead of log time; behind if negative.
    pub(crate) wall_ahead_ms: i64,
    pub(crate) records: usize,
    /// All records as they were written.
    pub(crate) log: Vec<Vec<u8>>,
    checks: Checks,
}

/// How much is looked at after each record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    /// Everything.
    All,
    /// What a decision touched only, as in life.
    Touched,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Checks::All)
    }

    pub(crate) fn with(checks: Checks) -> Self {
        Self {
            state: State::new(0),
            replayed: State::replaying(1),
            audit: Audit::new(),
            now: Timestamp(1_700_000_000_000),
            wall_ahead_ms: 0,
            records: 0,
            log: Vec::new(),
            checks,
        }
    }

    /// No more than so many items end in one record because their scope does.
    pub(crate) fn ending_at_most(mut self, items: usize) -> Self {
        self.state = self.state.ending_at_most(items);
        self.replayed = self.replayed.ending_at_most(items);
        self
    }

    /// Ends what is ending, record by record. Says how many records it took.
    pub(crate) fn end_all(&mut self) -> usize {
        let before = self.records;
        while self.state.has_endings() {
            let items_max = self.state.end_items_max();
            self.play(&Command::ContinueEnding { items_max }).unwrap();
        }
        self.records - before
    }

    /// Decides, writes, reads, applies and compares.
    pub(crate) fn play(&mut self, command: &Command) -> Result<Reply, Rejection> {
        let now = Now { log: self.now, wall: self.wall() };
        self.state.advance(now);
        let before = self.state.clone();
        let mut draft = Draft::new(&before);
        let (event, reply) = match decide(&mut draft, command, now, 0)? {
            Verdict::Append(event, reply) => (event, reply),
            Verdict::Answer(reply) => return Ok(reply),
        };
        let record = Record { lsn: before.last_lsn().next(), at: now.log, wall: now.wall, event };
        let mut bytes = Vec::new();
        codec::encode(&record, &mut bytes);
        let read = codec::decode(&bytes).unwrap();
        assert_eq!(read, record, "what is read is what was written");
        apply_decided(&mut self.state, &record, draft.precomputed());
        apply(&mut self.replayed, &read);
        self.records += 1;
        self.audit.read(&read, &bytes).unwrap();
        draft.check_against(&self.state).unwrap();
        if self.checks == Checks::All {
            invariant::check(&self.state).unwrap();
            assert_eq!(self.replayed.facts().hash(), self.state.facts().hash(), "{record:?}");
            redecides_the_same(&before, &read);
        }
        self.log.push(bytes);
        Ok(reply)
    }

    /// What the wall clock says.
    pub(crate) fn wall(&self) -> Timestamp {
        Timestamp(self.now.0.saturating_add_signed(self.wall_ahead_ms))
    }

    /// Only the log is left, and serving goes on from there.
    pub(crate) fn crash(&mut self) {
        self.state = self.replayed.clone();
        self.state.serve(Now::both(self.now));
    }

    /// Another release reads the log, and the source that this record registered does not compile
    /// any more.
    pub(crate) fn break_source(&mut self, nth: usize, change: impl FnOnce(&str) -> String) {
        let bytes = self.log[nth].clone();
        let mut record = codec::decode(&bytes).unwrap();
        let Event::WorkflowRegistered(item) = &mut record.event else { panic!("{record:?}") };
        item.definition = Json(json(&change(&item.definition.0.to_json())));
        self.log[nth].clear();
        codec::encode(&record, &mut self.log[nth]);
        self.replayed = State::replaying(1);
        for bytes in &self.log {
            apply(&mut self.replayed, &codec::decode(bytes).unwrap());
        }
        self.crash();
    }

    /// Both states are the same, and keep all laws.
    pub(crate) fn verify(&self) {
        invariant::check(&self.state).unwrap();
        assert_eq!(self.replayed.facts().hash(), self.state.facts().hash());
        self.audit.compare(&snapshots::seeded(self.state.facts())).unwrap();
        self.audit.finish().unwrap();
    }

    /// Snapshots after every record, each lived through to the end.
    pub(crate) fn verify_snapshots(&self) {
        snapshots::at_every_record(&self.log).unwrap();
    }

    pub(crate) fn register(&mut self, yaml: &str) {
        let definition = Definition::compile(&tenure_flow::yaml::parse(yaml).unwrap());
        let definition = definition.unwrap_or_else(|faults| panic!("{faults:?}\n{yaml}"));
        let definition = Arc::new(definition);
        self.play(&Command::RegisterWorkflow(RegisterWorkflow { definition })).unwrap();
    }

    pub(crate) fn start(&mut self, workflow: &str, input: &str) -> RunId {
        let command = StartRun {
            workflow: workflow.into(),
            version: None,
            input: json(input),
            key: None,
            tags: Tags::default(),
        };
        match self.play(&Command::StartRun(command)).unwrap() {
            Reply::Started(started) => started.run_id,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn lease(&mut self, max: u32) -> Vec<LeaseRef> {
        let command = LeaseTasks {
            worker: WorkerName::parse("anna").unwrap(),
            queues: vec![QueueName::parse("q").unwrap()],
            tasks_max: NonZeroU32::new(max).unwrap(),
            lease_ms: None,
        };
        match self.play(&Command::LeaseTasks(command)).unwrap() {
            Reply::Leased(leases) => {
                let lease = |it: &tenure_core::command::Leased| LeaseRef {
                    task_id: it.task_id,
                    lease_id: it.lease_id,
                };
                leases.iter().map(lease).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn complete(&mut self, lease: LeaseRef, output: &str) -> Result<Reply, Rejection> {
        self.play(&Command::CompleteTask(complete(lease, output)))
    }

    pub(crate) fn fail(&mut self, lease: LeaseRef, code: &str) -> Result<Reply, Rejection> {
        self.play(&Command::FailTask(fail(lease, code)))
    }

    pub(crate) fn signal(
        &mut self,
        run_id: RunId,
        name: &str,
        payload: &str,
    ) -> Result<Reply, Rejection> {
        self.play(&Command::SignalRun(SignalRun {
            run_id,
            name: name.into(),
            payload: json(payload),
            correlation: SignalText::parse("").unwrap(),
            signal_id: None,
        }))
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        self.fire_all();
    }

    /// Fires all timers that are due, however many records it takes.
    pub(crate) fn fire_all(&mut self) {
        while let Reply::Swept(Swept { items: 1.., rest: Rest::More }) =
            self.play(&Command::FireTimers).unwrap()
        {}
    }

    pub(crate) fn run_state(&self, run: RunId) -> &'static str {
        self.state.run(run).unwrap().state()
    }

    pub(crate) fn output(&self, run: RunId) -> String {
        self.state.run(run).unwrap().output().map_or("none".to_owned(), Value::to_json)
    }

    pub(crate) fn context(&self, run: RunId) -> String {
        self.state.run(run).unwrap().context().to_json()
    }

    /// A run's error as JSON.
    pub(crate) fn error(&self, run: RunId) -> String {
        self.state.run(run).unwrap().error().map_or("none".to_owned(), Value::to_json)
    }

    /// The codes of a run's error: the outermost first, then the causes.
    pub(crate) fn codes(&self, run: RunId) -> Vec<String> {
        let view = self.state.run(run).unwrap();
        let Some(error) = view.error().and_then(Value::as_map) else { return Vec::new() };
        let code = |value: &Value| {
            value.as_map().and_then(|map| map.get("code")?.as_text().map(str::to_owned)).unwrap()
        };
        let causes = error.get("causes").and_then(Value::as_list);
        let causes = causes.map(|list| list.as_slice()).unwrap_or_default();
        std::iter::once(code(view.error().unwrap())).chain(causes.iter().map(code)).collect()
    }

    pub(crate) fn task_state(&self, task: TaskId) -> TaskState {
        self.state.task(task).unwrap().state()
    }
}

/// What the record says was asked, asked again before it, is decided in the same way.
fn redecides_the_same(before: &State, record: &Record<'_>) {
    let mut runs = Vec::new();
    record.event.each_cascade(|cascade| runs.extend(cascade.iter().map(|it| it.run_id)));
    runs.dedup();
    for run in runs {
        let again = redecide::redecide(before.clone(), record, run).unwrap();
        assert!(again.is_same(), "{again:#?}");
    }
}

pub(crate) fn complete(lease: LeaseRef, output: &str) -> CompleteTask {
    CompleteTask {
        lease,
        output: Payload::parse("output", output.as_bytes().to_vec()).unwrap(),
        artifacts: Vec::new(),
        worker: None,
    }
}

pub(crate) fn fail(lease: LeaseRef, code: &str) -> FailTask {
    FailTask {
        lease,
        reason: Reason::keep_end("it was told to"),
        code: Some(FailureCode::parse(code).unwrap()),
        retry: Retry::Never,
        checkpoint: None,
        worker: None,
    }
}

pub(crate) fn json(text: &str) -> Value {
    Value::from_json(text.as_bytes()).unwrap()
}

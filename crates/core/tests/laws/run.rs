//! Plays a plan against the rules and the model at once, and checks every law on the way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tenure_audit::Audit;
use tenure_core::command::{Command, LeaseTasks, Reply, Retention};
use tenure_core::shelf::Shelf;
use tenure_core::state::{Facts, StateHash};
use tenure_core::{Draft, Rejection, State, Verdict, apply, decide, invariant};
use tenure_record::codec;
use tenure_record::event::{Event, Expired, ExpiryCause, Record, Report};
use tenure_record::name::{QueueName, WorkerName};
use tenure_record::state::TaskState;
use tenure_record::time::{Now, Timestamp};
use tenure_record::transition::transitions;

use crate::history::History;
use crate::model::{Drawn, Expected, Model};
use crate::script::{self, Line};
use crate::shelf::TestShelf;
use crate::world::{Drift, Move, Pace, Plan, QUEUES, START_MS, Wish};
use crate::{compare, snapshots};

/// A world under way.
pub(crate) struct Run {
    pub state: State,
    pub model: Model,
    pub now: Now,
    /// Every record as bytes.
    log: Vec<Vec<u8>>,
    history: History,
    /// Views kept on the way, with the hash they had when they were taken.
    views: Vec<(Facts, StateHash)>,
    restarts: u64,
    script: Vec<Line>,
    audit: Audit,
    /// Where the large strings of the state lie, also after a restart. Replays that are only
    /// compared have none.
    shelf: Option<Arc<TestShelf>>,
}

/// Plays a whole plan. A broken law comes with the script that led to it. Gives the log back.
pub(crate) fn play(plan: &Plan) -> Result<Vec<Vec<u8>>, String> {
    play_run(Run::new(), plan)
}

/// The same with a state whose large strings lie on a shelf.
pub(crate) fn play_on(plan: &Plan, shelf: Arc<TestShelf>) -> Result<Vec<Vec<u8>>, String> {
    let mut run = Run::new();
    run.state = run.state.on_shelf(Some(shelf.clone()));
    run.shelf = Some(shelf);
    play_run(run, plan)
}

fn play_run(mut run: Run, plan: &Plan) -> Result<Vec<Vec<u8>>, String> {
    for a_move in &plan.moves {
        run.guarded(|run| run.make(a_move))?;
    }
    run.guarded(|run| run.finish(plan))?;
    Ok(run.log)
}

impl Run {
    pub(crate) fn new() -> Self {
        Self {
            state: State::new(0),
            model: Model::new(),
            now: Now::both(Timestamp(START_MS)),
            log: Vec::new(),
            history: History::default(),
            views: Vec::new(),
            restarts: 0,
            script: Vec::new(),
            audit: Audit::new(),
            shelf: None,
        }
    }

    /// Turns a broken law, also one that the rules themselves assert, into the script that led to
    /// it.
    fn guarded(&mut self, act: impl FnOnce(&mut Self) -> Result<(), String>) -> Result<(), String> {
        let result = catch_unwind(AssertUnwindSafe(|| act(self)));
        let broken = match result {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(broken)) => broken,
            Err(panic) => {
                let said = panic.downcast_ref::<String>().map(String::as_str);
                let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
                format!("a panic: {}", said.unwrap_or("without words"))
            }
        };
        Err(format!("{broken}\n\nafter this script:\n{}", script::tell(&self.script)))
    }

    fn make(&mut self, a_move: &Move) -> Result<(), String> {
        let last_lsn = self.state.last_lsn();
        self.pass_time(a_move);
        match &a_move.wish {
            Wish::Restart => self.restart()?,
            Wish::View => {
                self.script.push(Line::View(self.now));
                let view = self.state.facts().clone();
                let hash = view.hash();
                self.views.push((view, hash));
            }
            Wish::Act(act) => {
                let command = act.command(&self.model, self.now, self.last_report());
                self.obey(&command, a_move.seed)?;
            }
        }
        compare::list(&self.state, &self.model, &a_move.look)?;
        // Where nothing was written only the clocks moved; a look now and then is enough.
        if self.state.last_lsn() == last_lsn && !a_move.seed.is_multiple_of(4) {
            return compare::moments(&self.state, &self.model);
        }
        compare::everything(&self.state, &self.model)?;
        self.audit
            .compare(&snapshots::seeded(self.state.facts()))
            .map_err(|broken| broken.to_string())?;
        invariant::check(&self.state).map_err(|broken| broken.to_string())
    }

    fn last_report(&self) -> Option<&Command> {
        let commands = self.script.iter().rev().filter_map(|line| match line {
            Line::Command(_, command, _) => Some(&**command),
            Line::Restart(_) | Line::View(_) => None,
        });
        let mut reports = commands.filter(|command| {
            matches!(
                command,
                Command::CompleteTask(_)
                    | Command::FailTask(_)
                    | Command::ReleaseTask(_)
                    | Command::ReportTasks(_)
            )
        });
        reports.next()
    }

    fn pass_time(&mut self, a_move: &Move) {
        let (log, wall) = (self.now.log.0, self.now.wall.0);
        let near = |moments: &[u64], pick: u16, off: i8| {
            let at = moments.get(usize::from(pick) % moments.len().max(1));
            at.map(|at| at.saturating_add_signed(off.into()))
        };
        let next_log = match a_move.pace {
            Pace::By(ms) => log + ms,
            Pace::Near(pick, off) => {
                let mut moments = self.model.moments();
                moments.retain(|at| *at > log);
                near(&moments, pick, off).unwrap_or(log).max(log)
            }
        };
        let along = wall + (next_log - log);
        let next_wall = match a_move.drift {
            Drift::Along => along,
            Drift::Still => wall,
            Drift::Ahead(ms) => along + ms,
            Drift::Back(ms) => wall.saturating_sub(ms),
            Drift::Near(pick, off) => {
                let mut moments = self.model.appointments();
                moments.retain(|at| *at > wall);
                near(&moments, pick, off).unwrap_or(along)
            }
        };
        self.go_to(Now { log: Timestamp(next_log), wall: Timestamp(next_wall) });
    }

    /// Sets both clocks.
    pub(crate) fn go_to(&mut self, now: Now) {
        self.now = now;
        self.state.advance(now);
        self.model.clocks = now;
    }

    /// The path of every request, with a second opinion.
    pub(crate) fn obey(&mut self, command: &Command, seed: u64) -> Result<(), String> {
        let expected = self.model.command(command, self.now);
        self.script.push(Line::Command(
            self.now,
            Box::new(command.clone()),
            expected.answer.clone(),
        ));
        // A state that is shared with a clone takes other ways than one that is not: try both.
        if seed.is_multiple_of(2) {
            let verdict = decide(&mut Draft::new(&self.state), command, self.now, seed);
            return self.carry_out(&verdict, &expected);
        }
        let before = self.state.clone();
        // A hash reads everything, so only some moves pay for it.
        let hash = (seed % 8 == 1).then(|| before.facts().hash());
        let mut draft = Draft::new(&before);
        let verdict = decide(&mut draft, command, self.now, seed);
        if decide(&mut Draft::new(&before), command, self.now, seed) != verdict {
            return Err("the same command was decided in two ways".to_owned());
        }
        self.carry_out(&verdict, &expected)?;
        if hash.is_some_and(|hash| hash != before.facts().hash()) {
            return Err("the state before the command changed".to_owned());
        }
        // What is worth a record is a fact, and what is not leaves the facts alone. Counters are in
        // no hash.
        let changes = expected.writes && !matches!(command, Command::SkipIds(_));
        let is_judged = !goes_and_comes(command);
        if is_judged && hash.is_some_and(|hash| (hash != self.state.facts().hash()) != changes) {
            return Err(format!("the hash and the log disagree: {}", writes(expected.writes)));
        }
        if verdict.is_err() {
            // A batch may be refused at its last item; its draft is worth nothing then.
            return Ok(());
        }
        draft.check_against(&self.state).map_err(|difference| format!("the draft: {difference}"))
    }

    fn carry_out(
        &mut self,
        verdict: &Result<Verdict<'_>, Rejection>,
        expected: &Expected,
    ) -> Result<(), String> {
        let (event, answer): (_, Result<&Reply, &Rejection>) = match verdict {
            Ok(Verdict::Append(event, reply)) => (Some(event), Ok(reply)),
            Ok(Verdict::Answer(reply)) => (None, Ok(reply)),
            Err(refusal) => (None, Err(refusal)),
        };
        if answer != expected.answer.as_ref() || event.is_some() != expected.writes {
            return Err(format!(
                "the answer is {answer:?} and {}, but in the model {:?} and {}",
                writes(event.is_some()),
                expected.answer,
                writes(expected.writes),
            ));
        }
        match event {
            Some(event) => self.append(event, expected),
            None => Ok(()),
        }
    }

    fn append(&mut self, event: &Event<'_>, expected: &Expected) -> Result<(), String> {
        let lsn = self.state.last_lsn().next();
        let record = Record { lsn, at: self.now.log, wall: self.now.wall, event: event.clone() };
        let mut bytes = Vec::new();
        codec::encode(&record, &mut bytes);
        let decoded = codec::decode(&bytes).map_err(|fault| format!("{record:?}: {fault}"))?;
        if decoded != record {
            return Err(format!("{record:?}\nwas read back as\n{decoded:?}"));
        }
        self.audit.read(&record, &bytes).map_err(|broken| format!("the audit: {broken}"))?;
        apply(&mut self.state, &record);
        self.settle_draws(event)?;
        self.history.read(&record, &expected.steps)?;
        if let Event::TasksPurged(event) = event {
            let purged: Vec<u64> = event.tasks.iter().map(|id| id.0).collect();
            if purged != expected.purged {
                return Err(format!("{purged:?} are purged, but {:?}", expected.purged));
            }
        }
        self.log.push(bytes);
        Ok(())
    }

    /// Takes the jitter over into the model, if it is within its band.
    fn settle_draws(&mut self, event: &Event<'_>) -> Result<(), String> {
        for Failed { id, state, not_before } in failures(event) {
            let drawn = std::mem::take(&mut self.model.drawn);
            let (of_task, others) = drawn.into_iter().partition(|drawn| drawn.task == id);
            self.model.drawn = others;
            let of_task: Vec<Drawn> = of_task;
            match of_task[..] {
                [] if state != TaskState::Waiting => {}
                [Drawn { from, to, .. }] if (from..=to).contains(&not_before.0) => {
                    self.model.task(id).not_before = not_before.0;
                }
                _ => {
                    return Err(format!("task {id} waits until {not_before:?}, not {of_task:?}"));
                }
            }
        }
        match &self.model.drawn[..] {
            [] => Ok(()),
            left => Err(format!("no failure was written for {left:?}")),
        }
    }

    /// What a crash and a start do: everything from the log, nothing from memory.
    fn restart(&mut self) -> Result<(), String> {
        self.script.push(Line::Restart(self.now));
        self.restarts += 1;
        let shelf = self.shelf.clone().map(|shelf| shelf as Arc<dyn Shelf>);
        self.state = self.replayed(State::replaying(self.restarts).on_shelf(shelf))?;
        self.state.serve(self.now);
        Ok(())
    }

    fn replayed(&self, mut replayed: State) -> Result<State, String> {
        for bytes in &self.log {
            let record = codec::decode(bytes).map_err(|fault| fault.to_string())?;
            apply(&mut replayed, &record);
        }
        invariant::check(&replayed).map_err(|broken| format!("after a replay: {broken}"))?;
        if replayed.facts().hash() != self.state.facts().hash() {
            return Err("the replay has another hash".to_owned());
        }
        Ok(replayed)
    }

    fn finish(&self, plan: &Plan) -> Result<(), String> {
        self.history.check_chains()?;
        let summary = self.audit.finish().map_err(|broken| broken.to_string())?;
        if (summary.records, summary.left()) != (self.model.lsn, self.model.tasks.len() as u64) {
            return Err(format!("the audit counts {summary:?}"));
        }
        for (id, task) in &self.model.tasks {
            if self.history.state(*id) != Some(task.state) {
                return Err(format!("the history of task {id} ends elsewhere"));
            }
        }
        for (view, hash) in &self.views {
            if view.hash() != *hash {
                return Err("a view changed".to_owned());
            }
            invariant::check_facts(view).map_err(|broken| format!("in a view: {broken}"))?;
        }
        self.check_next_answers()?;
        self.spoil(plan)
    }

    /// A replayed state must not only look the same but go on the same.
    fn check_next_answers(&self) -> Result<(), String> {
        let mut replayed = self.replayed(State::replaying(self.restarts))?;
        replayed.serve(self.now);
        let later = Now { log: self.now.log.plus_ms(100_000), ..self.now };
        let all = LeaseTasks {
            worker: WorkerName::parse("dora").expect("it is a name"),
            queues: QUEUES.map(|name| QueueName::parse(name).expect("it is a name")).to_vec(),
            tasks_max: std::num::NonZeroU32::new(1_000).expect("it is not zero"),
            lease_ms: None,
        };
        let probes = [
            (Command::LeaseTasks(all), self.now),
            (Command::FireTimers, later),
            (
                Command::PurgeTasks(Retention { age_ms: 50, tasks_max: 2, ..Retention::default() }),
                self.now,
            ),
        ];
        for (command, now) in &probes {
            let live = decide(&mut Draft::new(&self.state), command, *now, 0);
            let again = decide(&mut Draft::new(&replayed), command, *now, 0);
            if live != again {
                return Err(format!("{command:?}: live {live:?}\nreplayed {again:?}"));
            }
        }
        Ok(())
    }

    /// Reads damaged records: they may be refused, or be other records, but never end the process.
    fn spoil(&self, plan: &Plan) -> Result<(), String> {
        for (at, (which, byte, flip)) in plan.faults.iter().enumerate() {
            let Some(bytes) = self.log.get(usize::from(*which) % self.log.len().max(1)) else {
                return Ok(());
            };
            if at == 0 {
                cut_everywhere(bytes)?;
            }
            let mut spoiled = bytes.clone();
            spoiled[usize::from(*byte) % bytes.len()] ^= flip;
            read_anything(&spoiled)?;
        }
        Ok(())
    }
}

fn writes(writes: bool) -> &'static str {
    if writes { "writes a record" } else { "writes nothing" }
}

/// Half a record never passes for the whole one.
fn cut_everywhere(bytes: &[u8]) -> Result<(), String> {
    let whole = codec::decode(bytes).map_err(|fault| fault.to_string())?;
    for end in 0..bytes.len() {
        if codec::decode(&bytes[..end]).is_ok_and(|record| record == whole) {
            return Err(format!("{end} of {} bytes already are {whole:?}", bytes.len()));
        }
    }
    Ok(())
}

/// What can be read can be told and written, and is then the same.
pub(crate) fn read_anything(bytes: &[u8]) -> Result<(), String> {
    let Ok(record) = codec::decode(bytes) else { return Ok(()) };
    let _ = transitions(&record);
    let mut again = Vec::new();
    codec::encode(&record, &mut again);
    match codec::decode(&again) {
        Ok(same) if same == record => Ok(()),
        other => Err(format!("{bytes:?}\nis {record:?}\nand then {other:?}")),
    }
}

/// A task that failed, and when it goes on.
struct Failed {
    id: u64,
    state: TaskState,
    not_before: Timestamp,
}

fn failures(event: &Event<'_>) -> Vec<Failed> {
    let mut failures = Vec::new();
    if let Event::ReportsApplied(event) = event {
        for report in &event.reports {
            if let Report::TaskFailed(item) = report {
                let (id, not_before) = (item.about.task_id.0, item.not_before);
                failures.push(Failed { id, state: item.to, not_before });
            }
        }
    }
    if let Event::LeaseExpired(event) = event {
        let timed_out = |item: &&Expired<'_>| item.cause == ExpiryCause::AttemptTimedOut;
        for item in event.leases.iter().filter(timed_out) {
            let (id, not_before) = (item.about.task_id.0, item.not_before);
            failures.push(Failed { id, state: item.to, not_before });
        }
    }
    failures
}

/// Whether two heartbeats of one report name the same lease: the second may undo what the first did.
fn goes_and_comes(command: &Command) -> bool {
    let Command::ReportTasks(report) = command else { return false };
    let leases = report.heartbeats.iter().map(|heartbeat| heartbeat.lease.lease_id);
    let leases: Vec<_> = leases.collect();
    leases.iter().enumerate().any(|(at, lease)| leases[..at].contains(lease))
}

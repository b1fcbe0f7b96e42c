//! The event loop: one thread, one virtual clock, one seed. Whatever happens is an event in a queue
//! or a step of the coordinator, and each is followed by the laws.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use tenure_coordinator::request::GetStatus;
use tenure_coordinator::{Next, TaskInfo};
use tenure_record::id::{Lsn, TaskId};

use crate::actors::{Actor, Client, FollowerActor, Scene, Wish, Worker, is_huge};
use crate::callers::{CallerId, Callers};
use crate::check::{Broken, LawResult, Laws, dropped, hold, wait_ms};
use crate::config::SimConfig;
use crate::coverage::{Coverage, count_outcome, request_name};
use crate::model::{Delivery, RequestId};
use crate::network::{Line, Way};
use crate::plan::Plan;
use crate::process::{Life, Machine};
use crate::random::Random;
use crate::request::{AnyRequest, AnyResponse, Outcome};
use crate::trace::Trace;

pub(crate) const CAUSE: &str = "a coordinator fails only for a reason";
const RESTS: &str = "a coordinator without work rests";

/// Steps at one moment that write nothing, at most.
const IDLE_STEPS_MAX: u32 = 300;
/// Steps at one moment, at most. What is wide and ends by twos takes many.
const STEPS_AT_ONCE_MAX: u32 = 5_000;
/// How often somebody leaves while a batch is under way, in a thousand.
const LINE_BREAKS_PERMILLE: u64 = 100;
/// Those who are not quiet while most are, in a thousand.
const RESTLESS_PERMILLE: u64 = 50;

/// Something that happens at a moment.
#[derive(Debug)]
pub(crate) enum Event {
    Arrive {
        actor: usize,
        request: RequestId,
        ask: Rc<AnyRequest>,
    },
    Reply {
        actor: usize,
        request: RequestId,
        outcome: Rc<Outcome>,
    },
    Wake(usize),
    GiveUp {
        actor: usize,
        request: RequestId,
    },
    Look(usize),
    Trouble,
    RoomReturns,
    DiskIsFast,
    /// So many ask at once how things stand.
    Flood {
        actor: usize,
        count: u64,
    },
    Restart,
    Heal,
    Check,
    IsItOver,
}

/// Everything.
pub(crate) struct World {
    pub(crate) config: SimConfig,
    pub(crate) random: Random,
    pub(crate) now: u64,
    queue: BTreeMap<(u64, u64), Event>,
    numbers: u64,
    pub(crate) machine: Machine,
    pub(crate) life: Option<Life>,
    pub(crate) callers: Callers,
    pub(crate) line: Line,
    pub(crate) actors: Vec<Actor>,
    pub(crate) followers: Vec<FollowerActor>,
    /// Tasks that anybody was told of.
    known: Vec<TaskId>,
    left: BTreeSet<RequestId>,
    pub(crate) laws: Laws,
    pub(crate) coverage: Coverage,
    pub(crate) trace: Trace,
    pub(crate) healed_at: Option<u64>,
    /// Everything has come to an end.
    is_over: bool,
    /// Steps at this very moment.
    steps_now: StepsNow,
    /// Records and starts when the whole state was looked at last.
    pub(crate) checked: (usize, u64),
    /// The last request of each actor that arrived.
    arrived: BTreeMap<usize, RequestId>,
    /// What came of the last damage to a copy of the disk.
    pub(crate) damage_found: LawResult,
}

impl World {
    pub(crate) fn new(plan: &Plan, is_loud: bool) -> Self {
        let mut random = Random::new(plan.seed);
        let config = SimConfig::of(plan, &mut random);
        let mut laws = Laws::new(&config);
        laws.model.purges.note(config.upkeep.retention);
        let clients = (0..config.clients).map(|_| Actor::Client(Client::default()));
        let workers = (0..config.workers).map(|n| Actor::Worker(Worker::new(n, &config)));
        let actors: Vec<Actor> = clients.chain(workers).collect();
        Self {
            actors,
            followers: (0..config.followers).map(|_| FollowerActor::new()).collect(),
            line: Line::of(&config),
            config,
            random,
            now: 0,
            queue: BTreeMap::new(),
            numbers: 0,
            machine: Machine::new(),
            life: None,
            callers: Callers::default(),
            known: Vec::new(),
            left: BTreeSet::new(),
            laws,
            coverage: Coverage::default(),
            trace: Trace::new(is_loud),
            healed_at: None,
            is_over: false,
            steps_now: StepsNow::default(),
            checked: (0, 0),
            arrived: BTreeMap::new(),
            damage_found: Ok(()),
        }
    }

    /// Lives through it all.
    pub(crate) fn run(&mut self) -> LawResult {
        self.after(0, Event::Restart);
        for (name, is_so) in [
            ("clock drift", self.config.drift_ppm != 0),
            ("short records", self.config.has_short_records()),
            ("long names", self.config.name_padding > 0),
            ("silent follower", self.config.has_silent_follower),
        ] {
            self.coverage.add_many("fault", name, u64::from(is_so));
        }
        (0..self.actors.len()).for_each(|actor| self.after(1, Event::Wake(actor)));
        (0..self.followers.len()).for_each(|follower| self.after(5, Event::Look(follower)));
        self.after(self.config.check_ms, Event::Check);
        self.after(self.config.trouble_for_ms, Event::Heal);
        if self.config.trouble_every_ms > 0 {
            self.after(self.config.trouble_every_ms, Event::Trouble);
        }
        while !self.is_over {
            self.turn()?;
        }
        self.end()
    }

    /// The next thing that happens.
    fn turn(&mut self) -> LawResult {
        let step_at = self.life.as_ref().and_then(|life| life.step_at);
        let event_at = self.queue.first_key_value().map(|((at, _), _)| *at);
        let is_step = step_at.is_some_and(|step| event_at.is_none_or(|event| step < event));
        if let Some(at) = if is_step { step_at } else { event_at } {
            self.now = self.now.max(at);
            self.machine.clock.set(self.now);
        }
        if is_step {
            return self.step();
        }
        match self.queue.pop_first() {
            Some((_, event)) => self.happen(event),
            None => Ok(()),
        }
    }

    /// After so long, or with the next spell if most are quiet by then.
    pub(crate) fn after_a_while(&mut self, ms: u64, event: Event) {
        // Nobody sleeps through the end of the trouble.
        let left_ms = self.config.trouble_for_ms.saturating_sub(self.now + ms);
        let quiet_ms = self.config.quiet_after(self.now + ms).min(left_ms);
        let waits = quiet_ms > 0 && self.healed_at.is_none();
        match waits && !self.random.chance(RESTLESS_PERMILLE) {
            true => self.after(ms + quiet_ms, event),
            false => self.after(ms, event),
        }
    }

    pub(crate) fn after(&mut self, ms: u64, event: Event) {
        self.numbers += 1;
        self.queue.insert((self.now + ms, self.numbers), event);
    }

    fn happen(&mut self, event: Event) -> LawResult {
        match event {
            Event::Arrive { actor, request, ask } => self.arrive(actor, request, ask)?,
            Event::Reply { actor, request, outcome } => {
                self.trace.note(self.now, format_args!("actor {actor} hears of {request}"));
                self.with_actor(actor, |actor, scene| actor.hear(request, &outcome, scene));
            }
            Event::Wake(actor) => self.with_actor(actor, Actor::wake),
            Event::GiveUp { actor, request } if self.actors[actor].waits_for(request) => {
                self.coverage.add("network", "given up");
                self.with_actor(actor, |actor, scene| actor.give_up(request, scene));
            }
            Event::GiveUp { .. } => {}
            Event::Look(follower) => self.look_again(follower)?,
            Event::Trouble => self.trouble()?,
            Event::RoomReturns => {
                self.trace.note(self.now, format_args!("there is room on the disk again"));
                self.machine.disk.limit(None);
            }
            Event::DiskIsFast => self.machine.slow.set(0),
            Event::Flood { actor, count } => {
                self.coverage.add("fault", "flood");
                for _ in 0..count {
                    self.numbers += 1;
                    self.arrive(actor, self.numbers, Rc::new(GetStatus.into()))?;
                }
            }
            Event::Restart => self.restart()?,
            Event::Heal => self.heal(),
            Event::Check => self.check()?,
            Event::IsItOver => self.is_over = self.has_ended()?,
        }
        self.die_if_crashed();
        std::mem::replace(&mut self.damage_found, Ok(()))
    }

    fn with_actor(&mut self, number: usize, deed: impl FnOnce(&mut Actor, &mut Scene<'_>)) {
        let mut scene = Scene {
            random: &mut self.random,
            config: &self.config,
            known: &mut self.known,
            counter: &mut self.numbers,
            wall_ms: self.now + self.machine.wall_ahead,
            is_healed: self.healed_at.is_some(),
            wishes: Vec::new(),
        };
        deed(&mut self.actors[number], &mut scene);
        for wish in scene.wishes {
            self.grant_wish(number, wish);
        }
    }

    fn grant_wish(&mut self, actor: usize, wish: Wish) {
        match wish {
            Wish::Wake(ms) => self.after_a_while(ms, Event::Wake(actor)),
            Wish::Leave(request) => self.leave(request),
            Wish::Count(what) => self.coverage.add("fault", what),
            Wish::Flood(count) => self.after(0, Event::Flood { actor, count }),
            Wish::Ask(request, ask) => {
                let name = request_name(&ask);
                let few = format_args!("actor {actor} asks {request}: {name}");
                match is_huge(&ask) {
                    true => self.trace.note(self.now, few),
                    false => {
                        let many = format_args!("actor {actor} asks {request}: {ask:?}");
                        self.trace.note_in_words(self.now, few, many);
                    }
                }
                self.coverage.add("ask", name);
                let patience = self.config.patience_ms + wait_ms(&ask);
                let ask = Rc::new(ask);
                for delay in self.line.send(Way::In, &mut self.random, &mut self.coverage) {
                    self.after(delay, Event::Arrive { actor, request, ask: Rc::clone(&ask) });
                }
                self.after(patience, Event::GiveUp { actor, request });
            }
        }
    }

    /// Whoever asked is gone, and so are the copies that are still to come.
    fn leave(&mut self, request: RequestId) {
        self.trace.note(self.now, format_args!("{request} is left"));
        self.coverage.add("network", "left");
        self.left.insert(request);
        let Some(life) = &self.life else { return };
        let decided = life.coordinator.state().last_lsn();
        for (caller, delivery) in &mut self.laws.model.waiting {
            if delivery.request == request && delivery.gone_at.is_none() {
                delivery.gone_at = Some(decided);
                self.callers.leave(*caller);
            }
        }
    }

    /// A copy of a request reaches the coordinator, if there is one.
    fn arrive(&mut self, actor: usize, request: RequestId, ask: Rc<AnyRequest>) -> LawResult {
        self.numbers += 1;
        let caller: CallerId = self.numbers;
        let Some(life) = self.life.as_mut().filter(|life| !life.is_stopping) else {
            self.coverage.add("network", "nobody there");
            return Ok(());
        };
        let last = self.arrived.entry(actor).or_default();
        self.coverage.add_many("network", "overtaken", u64::from(request < *last));
        *last = request.max(*last);
        let after = self.laws.ledger.last_lsn;
        let gone_at = self.left.contains(&request).then(|| {
            self.callers.leave(caller);
            life.coordinator.state().last_lsn()
        });
        let (start, at) = (life.start, self.now);
        life.inbox.push((*ask).clone().seal(&self.callers, caller));
        let delivery = Delivery { request, actor, ask, start, at, after, gone_at };
        self.laws.model.delivered(caller, delivery);
        let soon = self.random.between(0, self.config.wake_ms);
        life.step_by(self.now + soon);
        self.trace.note(self.now, format_args!("{request} arrives as {caller}"));
        self.laws.arrived(life)
    }

    /// One step of the coordinator.
    pub(crate) fn step(&mut self) -> LawResult {
        let now = self.now;
        let Some(life) = &mut self.life else { return Ok(()) };
        life.step_at = None;
        let stepped = life.coordinator.step(life.reading(now));
        life.note_full(now);
        self.laws.log_now = life.now(now).log;
        self.trace.note(now, format_args!("step: {:?}", stepped.as_ref().ok()));
        self.read_tape()?;
        self.hear_desk()?;
        match stepped {
            Ok(next) => self.stepped(next),
            Err(fault) => {
                let cause = self.machine.disk.happened();
                hold(CAUSE, cause.is_some(), || fault.to_string())?;
                self.fault_ends_it(&fault.to_string())
            }
        }
    }

    fn stepped(&mut self, next: Next) -> LawResult {
        let now = self.now;
        let wake = self.random.between(0, self.config.wake_ms.min(2));
        let Some(life) = &mut self.life else { return Ok(()) };
        let busy = life.coordinator.log().busy_until().max(now);
        match next {
            Next::Now => life.step_by(busy),
            Next::WithinMs(ms) | Next::WhenLogged(Some(ms)) => {
                life.step_by(busy.max(now + life.lasts(ms) + wake));
            }
            Next::WhenRung | Next::WhenLogged(None) => {}
        }
        if let Some(done_at) = life.coordinator.log().done_at() {
            life.step_by(done_at);
        }
        if let Some(at) = life.coordinator.log().snapshot_at() {
            life.step_by(at.max(now));
        }
        let is_under_way = life.coordinator.log().done_at().is_some();
        self.steps_now.count(now, life.coordinator.state().last_lsn());
        hold(RESTS, self.steps_now.are_few(), || format!("it steps and steps at {now}: {next:?}"))?;
        self.laws.stepped(life, now, next)?;
        self.laws.within_bounds(life, now, self.machine.disk.used_bytes())?;
        if life.is_stopping && next != Next::Now && self.may_close()? {
            self.close()?;
        }
        if is_under_way && self.healed_at.is_none() && self.random.chance(LINE_BREAKS_PERMILLE) {
            self.break_a_line();
        }
        self.die_if_crashed();
        Ok(())
    }

    /// Whether an orderly end has nothing to wait for.
    fn may_close(&mut self) -> Result<bool, Broken> {
        let now = self.now;
        let Some(life) = &mut self.life else { return Ok(false) };
        match life.coordinator.may_close(life.now(now)) {
            Ok(may_close) => {
                let at = life.coordinator.log().snapshot_at();
                at.into_iter().for_each(|at| life.step_by(at.max(now)));
                Ok(may_close)
            }
            Err(fault) => {
                let cause = self.machine.disk.happened();
                hold(CAUSE, cause.is_some(), || fault.to_string())?;
                self.fault_ends_it(&fault.to_string())?;
                Ok(false)
            }
        }
    }

    /// Somebody who asked for work is gone while it is being given.
    fn break_a_line(&mut self) {
        let asks = self.laws.model.waiting.values();
        let asks = asks.filter(|delivery| matches!(*delivery.ask, AnyRequest::Lease(_)));
        let requests: Vec<RequestId> = asks.map(|delivery| delivery.request).collect();
        if !requests.is_empty() {
            let request = self.random.pick(&requests);
            self.leave(request);
        }
    }

    /// The laws look at every record that may be told since they looked last.
    pub(crate) fn read_tape(&mut self) -> LawResult {
        let tape = self.machine.tape.borrow();
        while let Some(bytes) = tape.get(self.laws.read) {
            self.trace.record(bytes);
            for name in self.laws.record(bytes)? {
                self.coverage.add("event", name);
            }
        }
        Ok(())
    }

    /// Whoever was told something hears it, if the line allows.
    fn hear_desk(&mut self) -> LawResult {
        let news = self.callers.take_news();
        let Some(life) = &self.life else { return Ok(()) };
        let leaves_after = life.coordinator.log().busy_until().saturating_sub(self.now);
        for (caller, outcome) in &news.unclaimed {
            if matches!(outcome, Ok(AnyResponse::Lease(grants)) if !grants.is_empty()) {
                self.coverage.add("network", "unclaimed grant");
            }
            self.laws.unclaimed(*caller, outcome, life, self.now)?;
        }
        for caller in news.dropped {
            dropped(&mut self.laws.model, caller, self.callers.is_gone(caller))?;
        }
        for (caller, outcome) in news.told {
            self.note_told(caller, &outcome);
            let delivery = self.laws.told(caller, &outcome)?;
            count_outcome(&mut self.coverage, &outcome);
            let (actor, request, outcome) = (delivery.actor, delivery.request, Rc::new(outcome));
            for delay in self.line.send(Way::Out, &mut self.random, &mut self.coverage) {
                let outcome = Rc::clone(&outcome);
                self.after(leaves_after + delay, Event::Reply { actor, request, outcome });
            }
        }
        Ok(())
    }

    fn note_told(&mut self, caller: CallerId, outcome: &Outcome) {
        let few = format_args!("{caller} is told: {}", outcome.is_ok());
        let mut note = |many: fmt::Arguments<'_>| self.trace.note_in_words(self.now, few, many);
        let task = |task: &TaskInfo| (task.id, task.state, task.attempt, task.last_lsn);
        match outcome {
            // Some answers share more than they show.
            Ok(AnyResponse::GetFacts(facts)) => {
                note(format_args!("{caller} is told all up to {}", facts.last_lsn()));
            }
            Ok(AnyResponse::Lease(grants)) => {
                let grants = grants.iter().map(|g| (g.lease(), g.attempt, g.expires_at));
                note(format_args!("{caller} is told {:?}", Items(grants)));
            }
            Ok(AnyResponse::ListTasks(page)) => {
                note(format_args!("{caller} is told {:?}", Items(page.tasks.iter().map(task))));
            }
            Ok(response) if let Some(found) = response.task() => {
                note(format_args!("{caller} is told {:?}", task(found)));
            }
            _ => note(format_args!("{caller} is told {outcome:?}")),
        }
    }
}

/// Steps at one moment.
#[derive(Debug, Default)]
struct StepsNow {
    at: u64,
    /// The last record that was decided.
    last_lsn: Lsn,
    all: u32,
    /// Steps that decided no record.
    idle: u32,
}

impl StepsNow {
    fn count(&mut self, at: u64, last_lsn: Lsn) {
        let is_idle = self.last_lsn == last_lsn;
        let (all, idle) = match self.at == at {
            true => (self.all + 1, self.idle + u32::from(is_idle)),
            false => (0, 0),
        };
        *self = Self { at, last_lsn, all, idle };
    }

    fn are_few(&self) -> bool {
        self.all < STEPS_AT_ONCE_MAX && self.idle < IDLE_STEPS_MAX
    }
}

/// A list that is made only if somebody reads it.
struct Items<I>(I);

impl<I: Iterator<Item: fmt::Debug> + Clone> fmt::Debug for Items<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.clone()).finish()
    }
}

//! A client: submits with and without keys, sends the same again when no answer comes, cancels,
//! retries, looks, waits, and sets queues.

use std::collections::BTreeMap;

use tenure_coordinator::request::{
    DeleteQueue, ExplainTask, GetFacts, GetQueue, GetStatus, GetTask, ListQueues, ListTasks,
    ListWorkers, Maintain, ResumeQueue, RetryTask, SubmitTask, TakeSnapshot,
};
use tenure_coordinator::{NameRange, TaskFilter};
use tenure_core::command::{
    CancelTask, Command, ConfigureQueue, IdJump, NewTask, PauseEnd, PauseQueue, Retention, Setting,
    SettingsChange, Start, SubmitTasks,
};
use tenure_record::name::{QueueName, TagKey, TagValue, TaskKey};
use tenure_record::state::TaskState;
use tenure_record::terms::{
    Backoff, BackoffKind, Budget, Budgets, Count, LeaseMs, Payload, Priority, SpanMs, Tags,
};
use tenure_record::time::Timestamp;

use super::{Scene, Starter};
use crate::model::{POISON, RequestId, payload};
use crate::request::{AnyRequest, AnyResponse, Outcome};

/// How many requests a client has under way at most.
const UNDER_WAY_MAX: usize = 12;
/// More than an inbox takes.
const FLOOD: u64 = 33_000;
/// Tasks of a submit that no record holds, each as long as a payload may be.
const TOO_MUCH: u64 = 9;
const LONG_BYTES: usize = (1 << 20) - 64;
/// Submits that a client keeps to send again.
const KEPT_MAX: usize = 8;

/// A client.
#[derive(Debug, Default)]
pub(crate) struct Client {
    under_way: BTreeMap<RequestId, Option<SubmitTasks>>,
    /// Submits with keys that nobody answered; they are sent again.
    unanswered: Vec<SubmitTasks>,
    /// Submits with keys that it made lately.
    keyed: Vec<SubmitTasks>,
    /// How often it submitted something new.
    submits: u64,
    /// Workflows and runs.
    starter: Starter,
    /// It has asked far too much at once, which is enough for one life.
    has_flooded: bool,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Submit,
    SubmitOne,
    SubmitTooMuch,
    SubmitBatch,
    SubmitAgain,
    SubmitOther,
    Burst,
    Cancel,
    Retry,
    Look,
    WaitForEnd,
    List,
    Queues,
    Everything,
    Settings,
    Purge,
    Snapshot,
    Operate,
    Runs,
}

const DEEDS: [(u64, Deed); 19] = [
    (180, Deed::Submit),
    (60, Deed::SubmitOne),
    (1, Deed::SubmitTooMuch),
    (80, Deed::SubmitBatch),
    (50, Deed::SubmitAgain),
    (30, Deed::SubmitOther),
    (80, Deed::Burst),
    (100, Deed::Cancel),
    (60, Deed::Retry),
    (100, Deed::Look),
    (80, Deed::WaitForEnd),
    (60, Deed::List),
    (40, Deed::Queues),
    (30, Deed::Everything),
    (50, Deed::Settings),
    (20, Deed::Purge),
    (20, Deed::Snapshot),
    (15, Deed::Operate),
    (260, Deed::Runs),
];

impl Client {
    pub(crate) fn wake(&mut self, scene: &mut Scene<'_>) {
        if scene.is_healed {
            return self.resume(scene);
        }
        let wait = scene.random.between(1, scene.config.think_ms);
        scene.wishes.push(super::Wish::Wake(wait));
        if let Some(submit) = self.unanswered.pop() {
            self.send_submit(submit, scene);
        } else if self.under_way.len() < UNDER_WAY_MAX {
            if !self.has_flooded && scene.random.chance(scene.config.flood_permille) {
                self.has_flooded = true;
                return scene.wishes.push(super::Wish::Flood(FLOOD));
            }
            let deed = scene.random.weighted(&DEEDS);
            let is_new =
                matches!(deed, Deed::Submit | Deed::SubmitOne | Deed::SubmitBatch | Deed::Burst);
            self.submits += u64::from(is_new);
            if !is_new || self.submits <= scene.config.submits_max {
                self.act(deed, scene);
            }
        }
    }

    pub(crate) fn hear(&mut self, request: RequestId, outcome: &Outcome, scene: &mut Scene<'_>) {
        self.under_way.remove(&request);
        if let Ok(AnyResponse::SubmitTasks(tasks)) = outcome {
            scene.known.extend(tasks.iter().map(|task| task.task_id));
        }
        if let Ok(AnyResponse::SubmitTask(submitted)) = outcome {
            scene.known.push(submitted.task.id);
        }
        if let Ok(AnyResponse::StartRuns(started)) = outcome {
            started.iter().for_each(|started| self.starter.heard(started.run_id));
        }
        if let Ok(AnyResponse::SignalByKey(signaled)) = outcome {
            self.starter.heard(signaled.run_id);
        }
        if let Ok(AnyResponse::StartRun(started)) = outcome {
            self.starter.heard(started.run.id);
        }
        if let Ok(AnyResponse::ListRuns(page)) = outcome
            && scene.is_healed
        {
            for ask in Starter::let_go_on(page, scene) {
                self.send(ask, scene);
            }
        }
    }

    pub(crate) fn waits_for(&self, request: RequestId) -> bool {
        self.under_way.contains_key(&request)
    }

    pub(crate) fn give_up(&mut self, request: RequestId, scene: &mut Scene<'_>) {
        match self.under_way.remove(&request) {
            // The key makes it safe to send it again until somebody answers.
            Some(Some(submit)) => self.unanswered.push(submit),
            Some(None) if scene.random.chance(500) => {
                scene.wishes.push(super::Wish::Leave(request));
            }
            Some(None) | None => {}
        }
    }

    /// Whatever was paused goes on. Said again and again, as nobody may be there to hear it.
    fn resume(&mut self, scene: &mut Scene<'_>) {
        scene.wishes.push(super::Wish::Wake(1_000));
        for number in 0..scene.config.queues {
            let queue = scene.config.queue(number);
            self.send(ResumeQueue(queue), scene);
        }
        for ask in Starter::ask_for_live(scene) {
            self.send(ask, scene);
        }
    }

    fn act(&mut self, deed: Deed, scene: &mut Scene<'_>) {
        match deed {
            Deed::Submit => {
                let submit = self.new_submit(1, scene);
                self.send_submit(submit, scene);
            }
            Deed::SubmitOne => {
                let id = scene.submission();
                let task = new_task(id, 0, scene);
                self.send(SubmitTask(task), scene);
            }
            Deed::SubmitTooMuch => self.submit_too_much(scene),
            Deed::SubmitBatch => {
                let count = scene.random.between(2, 5);
                let submit = self.new_submit(count, scene);
                self.send_submit(submit, scene);
            }
            Deed::SubmitAgain => {
                if let Some(submit) = self.some_keyed(scene) {
                    self.send_submit(submit, scene);
                }
            }
            Deed::SubmitOther => self.submit_other(scene),
            Deed::Burst => {
                for _ in 0..6 {
                    let submit = self.new_submit(1, scene);
                    self.send_submit(submit, scene);
                }
            }
            Deed::Cancel => {
                let grace = scene.random.pick(&[None, Some(0), Some(40), Some(2_000)]);
                let grace_ms = grace.map(|ms| span("grace_ms", ms));
                let task_id = scene.task();
                self.send(CancelTask { task_id, grace_ms }, scene);
            }
            Deed::Retry => {
                let task_id = scene.task();
                self.send(RetryTask(task_id), scene);
            }
            Deed::Look => {
                let request: AnyRequest = match scene.random.chance(500) {
                    true => GetTask { task_id: scene.task(), wait_ms: 0 }.into(),
                    false => ExplainTask(scene.task()).into(),
                };
                self.send(request, scene);
            }
            Deed::WaitForEnd => {
                let wait_ms = scene.random.pick(&[0, 30, 1_000, 9_000]);
                let task_id = scene.task();
                self.send(GetTask { task_id, wait_ms }, scene);
            }
            Deed::List => self.list(scene),
            Deed::Queues => {
                let name = scene.queue();
                let request: AnyRequest = match scene.random.below(3) {
                    0 => GetQueue(name).into(),
                    1 => ListQueues(NameRange::default()).into(),
                    _ => ListWorkers(NameRange::default()).into(),
                };
                self.send(request, scene);
            }
            Deed::Everything => {
                let request: AnyRequest = match scene.random.chance(500) {
                    true => GetStatus.into(),
                    false => GetFacts.into(),
                };
                self.send(request, scene);
            }
            Deed::Settings => self.set(scene),
            Deed::Snapshot => self.send(TakeSnapshot, scene),
            Deed::Operate => {
                // What the coordinator does by itself may be asked for at any time.
                let command = match scene.random.below(5) {
                    0 => Command::SkipIds(IdJump::UncleanStart),
                    1 | 2 => Command::FireTimers,
                    3 => {
                        Command::ContinueEnding { items_max: scene.random.between(0, 20) as usize }
                    }
                    _ => Command::ContinueDispatch,
                };
                self.send(Maintain(command), scene);
            }
            Deed::Runs => {
                if let Some(ask) = self.starter.act(scene) {
                    self.send(ask, scene);
                    for ask in self.starter.signals_after_cancel(scene) {
                        self.send(ask, scene);
                    }
                }
            }
            Deed::Purge => {
                let age_ms = scene.random.pick(&[500, 5_000, u64::MAX]);
                let tasks_max = scene.random.pick(&[3, 50, u64::MAX]);
                let retention = Retention { age_ms, tasks_max, ..Retention::default() };
                self.send(Maintain(Command::PurgeTasks(retention)), scene);
            }
        }
    }

    /// More than a record holds, which is refused as a whole.
    fn submit_too_much(&mut self, scene: &mut Scene<'_>) {
        let id = scene.submission();
        let tasks = (0..TOO_MUCH as usize).map(|index| {
            let bytes = payload(id, index, &"x".repeat(LONG_BYTES));
            let payload = Payload::parse("payload", bytes).expect("as long as it may be");
            NewTask { payload, ..new_task(id, index, scene) }
        });
        let tasks = tasks.collect();
        self.send(SubmitTasks { tasks }, scene);
    }

    fn list(&mut self, scene: &mut Scene<'_>) {
        let filter = TaskFilter {
            queue: scene.random.chance(500).then(|| scene.queue()),
            state: scene.random.chance(500).then(|| scene.random.pick(&TaskState::ALL)),
            before: scene.random.chance(300).then(|| scene.task()),
            limit: scene.random.between(1, 30) as usize,
            ..TaskFilter::default()
        };
        self.send(ListTasks(filter), scene);
    }

    fn set(&mut self, scene: &mut Scene<'_>) {
        let queue = scene.queue();
        let request: AnyRequest = match scene.random.below(6) {
            0 => PauseQueue::open_ended(queue).into(),
            1 => {
                let end = PauseEnd::After(span("for_ms", 3_000));
                PauseQueue { queue, end }.into()
            }
            2 | 3 => ResumeQueue(queue).into(),
            4 => {
                // One that no task ever names, so that it can go.
                let queue = QueueName::parse("settings-only").expect("it is a name");
                match scene.random.chance(500) {
                    true => PauseQueue::open_ended(queue).into(),
                    false => DeleteQueue(queue).into(),
                }
            }
            _ => {
                let retention_ms = Setting::Set(span("retention_ms", 20_000));
                let paused_until = Setting::Keep;
                // Each but the first has the one before it, which is worked on too.
                let mut names = (0..scene.config.queues).map(|number| scene.config.queue(number));
                let at = names.position(|name| name == queue).unwrap_or_default() as u64;
                let dead_letter_queue = match at.checked_sub(1) {
                    Some(before) => Setting::Set(scene.config.queue(before)),
                    None => Setting::Keep,
                };
                let max_waiting = match at {
                    1 => Setting::Set(Count::parse("max_waiting", 20).expect("it is in range")),
                    _ => Setting::Keep,
                };
                let change =
                    SettingsChange { retention_ms, paused_until, dead_letter_queue, max_waiting };
                ConfigureQueue { queue, change }.into()
            }
        };
        self.send(request, scene);
    }

    fn new_submit(&mut self, count: u64, scene: &mut Scene<'_>) -> SubmitTasks {
        let id = scene.submission();
        let has_keys = scene.random.chance(400);
        let mut tasks: Vec<NewTask> = (0..count as usize)
            .map(|index| {
                let key = has_keys.then(|| key(&format!("key-{id}-{index}")));
                // Seldom for a while only: then the same submit may make a second task.
                let is_short = key.is_some() && id % 13 == 7;
                let key_ttl_ms = is_short.then(|| span("key_ttl_ms", 1 + id * 31 % 9_000));
                NewTask { key, key_ttl_ms, ..new_task(id, index, scene) }.sealed()
            })
            .collect();
        // Hardly ever one key for two bodies, which is refused as a whole.
        if let [first, second, ..] = tasks.as_mut_slice()
            && has_keys
            && scene.random.chance(100)
        {
            (second.key, second.queue) = (first.key.clone(), first.queue.clone());
            *second = second.clone().sealed();
        }
        let submit = SubmitTasks { tasks };
        if has_keys {
            self.keyed.truncate(KEPT_MAX);
            self.keyed.insert(0, submit.clone());
        }
        submit
    }

    /// A key that is in use, for something else.
    fn submit_other(&mut self, scene: &mut Scene<'_>) {
        let Some(known) = self.some_keyed(scene) else { return };
        let (id, Some(first)) = (scene.submission(), known.tasks.first()) else { return };
        let task = NewTask {
            key: first.key.clone(),
            queue: first.queue.clone(),
            ..new_task(id, 0, scene)
        };
        self.send_submit(SubmitTasks { tasks: vec![task] }, scene);
    }

    fn some_keyed(&self, scene: &mut Scene<'_>) -> Option<SubmitTasks> {
        let at = scene.random.below(self.keyed.len() as u64) as usize;
        self.keyed.get(at).cloned()
    }

    fn send_submit(&mut self, submit: SubmitTasks, scene: &mut Scene<'_>) {
        let again = submit.tasks.iter().all(|task| task.key.is_some()).then(|| submit.clone());
        let request = scene.ask(submit);
        self.under_way.insert(request, again);
    }

    fn send(&mut self, ask: impl Into<AnyRequest>, scene: &mut Scene<'_>) {
        let request = scene.ask(ask);
        self.under_way.insert(request, None);
    }
}

fn new_task(id: u64, index: usize, scene: &mut Scene<'_>) -> NewTask {
    let padding = match scene.random.chance(scene.config.poison_permille) {
        true => POISON.to_owned(),
        false => "x".repeat(scene.random.pick(&[0, 0, 30, 150])),
    };
    let bytes = Payload::parse("payload", payload(id, index, &padding)).expect("it is short");
    let lease_ms = scene.random.between(50, scene.config.lease_ms) as i64;
    let start = match scene.random.below(8) {
        0 => Start::After(span("delay_ms", scene.random.between(0, 4_000))),
        1 => Start::At(Timestamp(scene.wall_ms + scene.random.between(0, 4_000))),
        _ => Start::AtOnce,
    };
    let backoff = Backoff {
        kind: Some(scene.random.pick(&[
            BackoffKind::Fixed,
            BackoffKind::Linear,
            BackoffKind::Exponential,
        ])),
        initial_ms: 200,
        max_ms: 2_000,
        jitter_permille: 200,
    };
    let tags = match scene.random.chance(200) {
        true => vec![(
            TagKey::parse("kind").expect("a short plain key"),
            TagValue::parse("sim").expect("a short plain value"),
        )],
        false => Vec::new(),
    };
    NewTask {
        priority: Priority::parse(scene.random.pick(&[0, 0, 0, -5, 7])).expect("in range"),
        start,
        budgets: budgets(scene),
        backoff: Some(backoff),
        lease_ms: LeaseMs::parse(lease_ms).expect("in range"),
        total_timeout_ms: scene
            .random
            .chance(150)
            .then(|| span("total_timeout_ms", scene.random.between(0, 6_000))),
        attempt_timeout_ms: (id % 11 == 5)
            .then(|| span("attempt_timeout_ms", 1 + (id * 197 + index as u64) % 3_000)),
        tags: Tags::parse(tags).expect("one tag"),
        ..NewTask::new(scene.queue(), bytes)
    }
}

/// Two draws, of which some pairs mean a budget of attempts.
fn budgets(scene: &mut Scene<'_>) -> Budgets {
    let mut draw = || scene.random.between(1, 4) as u16;
    let drawn = (draw(), draw());
    let (failures, expiries) = (Some(Budget::of(drawn.0)), Some(Budget::of(drawn.1)));
    match drawn {
        (4, 4) => Budgets::with_defaults(None, None, expiries),
        (3, 4) => Budgets::with_defaults(failures, None, expiries),
        _ => Budgets::with_defaults(failures, expiries, None),
    }
}

/// Whether a request is too long to be read along.
pub(crate) fn is_huge(ask: &AnyRequest) -> bool {
    matches!(ask, AnyRequest::SubmitTasks(submit)
        if submit.tasks.first().is_some_and(|task| task.payload.as_bytes().len() >= LONG_BYTES))
}

fn span(field: &str, ms: u64) -> SpanMs {
    SpanMs::parse(field, ms as i64).expect("in range")
}

fn key(text: &str) -> TaskKey {
    TaskKey::parse(text).expect("a short plain key")
}

//! A worker: leases with and without waiting, reports well and badly, falls silent, comes back with
//! leases that are long over, and leaves while it waits.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use tenure_coordinator::Registration;
use tenure_coordinator::request::{DropLeases, Lease, RegisterWorker, SignOff};
use tenure_core::command::{
    CompleteTask, FailTask, Heartbeat, LeaseRef, LeaseTasks, ReleaseTask, ReportTasks, Retry,
};
use tenure_record::artifact::{Artifact, ArtifactName, MediaType, Sha256};
use tenure_record::id::LeaseId;
use tenure_record::name::{FailureCode, QueueName, Reason, WorkerName};
use tenure_record::progress::Checkpoint;
use tenure_record::terms::{LeaseMs, Payload, Priority, SpanMs};

use super::{Scene, Wish};
use crate::config::SimConfig;
use crate::model::{RequestId, is_poison};
use crate::request::{AnyRequest, AnyResponse, Outcome};

/// Old leases that a worker keeps to be a zombie with.
const OLD_MAX: usize = 20;

/// How many requests a worker has under way at most.
const UNDER_WAY_MAX: usize = 6;

/// A worker.
#[derive(Debug)]
pub(crate) struct Worker {
    number: u64,
    /// How often it died and another took its place.
    deaths: u64,
    name: WorkerName,
    held: Vec<LeaseRef>,
    /// What it once held.
    old: Vec<LeaseRef>,
    /// What each report under way is about; nothing for a lease request.
    under_way: BTreeMap<RequestId, Option<LeaseRef>>,
    leasing: Option<RequestId>,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Heartbeat,
    Complete,
    Fail,
    Release,
    Several,
    CompleteAll,
    Zombie,
    SignOff,
    Register,
    Disconnect,
    TooMuch,
}

const DEEDS: [(u64, Deed); 11] = [
    (25, Deed::Heartbeat),
    (25, Deed::Complete),
    (12, Deed::Fail),
    (8, Deed::Release),
    (12, Deed::Several),
    (6, Deed::CompleteAll),
    (10, Deed::Zombie),
    (2, Deed::SignOff),
    (2, Deed::Register),
    (2, Deed::Disconnect),
    (1, Deed::TooMuch),
];

impl Worker {
    pub(crate) fn new(number: u64, config: &SimConfig) -> Self {
        Self::after_deaths(number, 0, config)
    }

    fn after_deaths(number: u64, deaths: u64, config: &SimConfig) -> Self {
        let (held, old, under_way) = (Vec::new(), Vec::new(), BTreeMap::new());
        let name = config.worker(number, deaths);
        Self { number, deaths, name, held, old, under_way, leasing: None }
    }

    /// It is gone for good, and another takes its place. Nobody hears of it.
    fn die(&mut self, why: &'static str, scene: &mut Scene<'_>) {
        scene.wishes.push(Wish::Count(why));
        *self = Self::after_deaths(self.number, self.deaths + 1, scene.config);
    }

    pub(crate) fn wake(&mut self, scene: &mut Scene<'_>) {
        if scene.is_healed {
            return self.work_off(scene);
        }
        let think = scene.random.between(1, scene.config.think_ms);
        if scene.random.chance(scene.config.silent_permille) {
            // It hangs, and goes on as if nothing was.
            let silence = scene.random.between(0, 3 * scene.config.lease_ms);
            scene.wishes.push(Wish::Count("worker silence"));
            return scene.wishes.push(Wish::Wake(think + silence));
        }
        scene.wishes.push(Wish::Wake(think));
        if scene.random.chance(scene.config.death_permille) {
            return self.die("worker death", scene);
        }
        if let Some(request) = self.leasing {
            if scene.random.chance(60) {
                self.leave(request, scene);
            }
        } else if scene.random.chance(500) {
            self.lease(scene);
        }
        if self.under_way.len() < UNDER_WAY_MAX {
            let deed = scene.random.weighted(&DEEDS);
            self.act(deed, scene);
        }
    }

    pub(crate) fn hear(&mut self, request: RequestId, outcome: &Outcome, scene: &mut Scene<'_>) {
        let Some(about) = self.under_way.remove(&request) else {
            // An answer that nobody waits for any more: the lease is there, and is not known.
            return;
        };
        if self.leasing == Some(request) {
            self.leasing = None;
        }
        if let Ok(AnyResponse::Lease(grants)) = outcome {
            self.held.extend(grants.iter().map(|grant| grant.lease()));
            // Tasks of runs are known only so; some will want to retry them.
            scene.known.extend(grants.iter().map(|grant| grant.task_id));
            let is_bad = grants.iter().any(|grant| {
                is_poison(&grant.payload.read().expect("the simulation has no shelf"))
            });
            if is_bad && !scene.is_healed {
                return self.die("poison", scene);
            }
        }
        if let Some(lease) = about
            && !matches!(outcome, Ok(AnyResponse::Heartbeat(_)))
        {
            self.drop_lease(lease.lease_id);
        }
    }

    pub(crate) fn waits_for(&self, request: RequestId) -> bool {
        self.under_way.contains_key(&request)
    }

    pub(crate) fn give_up(&mut self, request: RequestId, scene: &mut Scene<'_>) {
        if self.under_way.remove(&request).is_some() {
            if self.leasing == Some(request) {
                self.leasing = None;
            }
            if scene.random.chance(700) {
                scene.wishes.push(Wish::Leave(request));
            }
        }
    }

    /// After the trouble: everything is done, and well.
    fn work_off(&mut self, scene: &mut Scene<'_>) {
        scene.wishes.push(Wish::Wake(50));
        for lease in std::mem::take(&mut self.held) {
            self.complete(lease, scene);
        }
        if self.leasing.is_none() {
            let queues =
                (0..scene.config.queues).map(|number| scene.config.queue(number)).collect();
            let request = self.request(queues, 10, None);
            self.send_lease(Lease { request, wait_ms: 1_000 }, scene);
        }
    }

    fn act(&mut self, deed: Deed, scene: &mut Scene<'_>) {
        let some = scene.random.below(self.held.len() as u64) as usize;
        let held = self.held.get(some).copied();
        match (deed, held) {
            (Deed::Zombie, _) => self.haunt(scene),
            (Deed::SignOff, _) => {
                self.send(SignOff(self.name.clone()), None, scene);
            }
            (Deed::Register, _) => {
                let registration = Registration {
                    worker: self.name.clone(),
                    display_name: None,
                    queues: vec![scene.queue()],
                    slots: 4,
                    labels: Default::default(),
                    draining: scene.random.chance(100),
                };
                self.send(RegisterWorker(registration), None, scene);
            }
            (Deed::Disconnect, _) => {
                let leases = std::mem::take(&mut self.held);
                leases.iter().for_each(|lease| self.remember(*lease));
                self.send(DropLeases(leases), None, scene);
            }
            (Deed::TooMuch, _) => {
                let queues = (0..101).map(|number| scene.config.queue(number)).collect();
                let request = self.request(queues, 1, None);
                self.send(Lease { request, wait_ms: 0 }, None, scene);
            }
            (Deed::Several, _) => self.report_several(scene),
            (Deed::CompleteAll, _) => self.complete_all(scene),
            (_, None) => {}
            (Deed::Heartbeat, Some(lease)) => {
                let heartbeat = heartbeat(lease, scene);
                self.send(heartbeat, Some(lease), scene);
            }
            (Deed::Complete, Some(lease)) => self.complete(lease, scene),
            (Deed::Fail, Some(lease)) => {
                let fail = fail(lease, scene);
                self.send(fail, Some(lease), scene);
            }
            (Deed::Release, Some(lease)) => {
                let release = release(lease, scene);
                self.send(release, Some(lease), scene);
            }
        }
    }

    /// Acts under a lease that it no longer has, or never had.
    fn haunt(&mut self, scene: &mut Scene<'_>) {
        let some = scene.random.below(self.old.len() as u64) as usize;
        let Some(mut lease) = self.old.get(some).copied() else { return };
        if scene.random.chance(50) {
            lease.lease_id = LeaseId(lease.lease_id.0 + scene.random.below(500));
        }
        scene.wishes.push(Wish::Count("zombie"));
        let request: AnyRequest = match scene.random.below(4) {
            0 => heartbeat(lease, scene).into(),
            1 => release(lease, scene).into(),
            2 => fail(lease, scene).into(),
            _ => CompleteTask::plain(lease, output(lease, "late")).into(),
        };
        self.send(request, None, scene);
    }

    fn report_several(&mut self, scene: &mut Scene<'_>) {
        let mut report = ReportTasks::default();
        let leases: Vec<_> = self.held.iter().chain(self.old.last()).copied().collect();
        for lease in leases {
            match scene.random.below(6) {
                0 => report.completes.push(CompleteTask {
                    lease,
                    output: output(lease, "many"),
                    artifacts: artifacts(scene),
                    worker: None,
                }),
                1 => report.fails.push(fail(lease, scene)),
                2 => report.releases.push(release(lease, scene)),
                _ => report.heartbeats.push(heartbeat(lease, scene)),
            }
        }
        let done = report.completes.iter().map(|complete| complete.lease);
        let done = done.chain(report.fails.iter().map(|fail| fail.lease));
        let done: Vec<_> =
            done.chain(report.releases.iter().map(|release| release.lease)).collect();
        // Whether it is so or not, it thinks so.
        done.iter().for_each(|lease| self.drop_lease(lease.lease_id));
        self.send(report, None, scene);
    }

    /// Reports everything that it holds as done, in one request.
    fn complete_all(&mut self, scene: &mut Scene<'_>) {
        let mut report = ReportTasks::default();
        for lease in std::mem::take(&mut self.held) {
            let (output, artifacts) = (output(lease, "all"), artifacts(scene));
            report.completes.push(CompleteTask { lease, output, artifacts, worker: None });
            self.remember(lease);
        }
        self.send(report, None, scene);
    }

    fn complete(&mut self, lease: LeaseRef, scene: &mut Scene<'_>) {
        let artifacts = artifacts(scene);
        let complete =
            CompleteTask { artifacts, ..CompleteTask::plain(lease, output(lease, "done")) };
        self.send(complete, Some(lease), scene);
    }

    fn lease(&mut self, scene: &mut Scene<'_>) {
        let queues: Vec<QueueName> =
            (0..scene.random.between(1, 3)).map(|_| scene.queue()).collect();
        let lease_ms = scene.random.chance(200).then(|| {
            let ms = scene.random.between(50, scene.config.lease_ms) as i64;
            LeaseMs::parse(ms).expect("in range")
        });
        let tasks_max = scene.random.pick(&[1, 1, 2, 5, 20]);
        let request = self.request(queues, tasks_max, lease_ms);
        let wait_ms = scene.random.pick(&[0, 0, 200, 2_000, 10_000]);
        self.send_lease(Lease { request, wait_ms }, scene);
    }

    fn request(
        &self,
        queues: Vec<QueueName>,
        tasks_max: u32,
        lease_ms: Option<LeaseMs>,
    ) -> LeaseTasks {
        let tasks_max = NonZeroU32::new(tasks_max).unwrap_or(NonZeroU32::MIN);
        LeaseTasks { worker: self.name.clone(), queues, tasks_max, lease_ms }
    }

    fn send_lease(&mut self, ask: Lease, scene: &mut Scene<'_>) {
        let request = scene.ask(ask);
        self.under_way.insert(request, None);
        self.leasing = Some(request);
    }

    fn send(&mut self, ask: impl Into<AnyRequest>, about: Option<LeaseRef>, scene: &mut Scene<'_>) {
        let request = scene.ask(ask);
        self.under_way.insert(request, about);
    }

    fn leave(&mut self, request: RequestId, scene: &mut Scene<'_>) {
        self.under_way.remove(&request);
        self.leasing = None;
        scene.wishes.push(Wish::Leave(request));
    }

    fn drop_lease(&mut self, lease_id: LeaseId) {
        if let Some(at) = self.held.iter().position(|held| held.lease_id == lease_id) {
            let lease = self.held.remove(at);
            self.remember(lease);
        }
    }

    fn remember(&mut self, lease: LeaseRef) {
        if self.old.len() >= OLD_MAX {
            self.old.remove(0);
        }
        self.old.push(lease);
    }
}

/// Files that came out, as far as anybody knows; only runs take them.
fn artifacts(scene: &mut Scene<'_>) -> Vec<Artifact> {
    if scene.is_healed || !scene.config.has_runs || !scene.random.chance(250) {
        return Vec::new();
    }
    let number = scene.random.below(5);
    vec![Artifact {
        name: ArtifactName::parse(&format!("file-{number}")).expect("a plain name"),
        media_type: MediaType::parse("text/plain").expect("a plain type"),
        bytes: 1 + number,
        sha256: Sha256([number as u8; 32]),
    }]
}

fn fail(lease: LeaseRef, scene: &mut Scene<'_>) -> FailTask {
    let retry = match scene.random.below(5) {
        0 => Retry::Never,
        1 => Retry::After(SpanMs::parse("retry_ms", 150).expect("in range")),
        _ => Retry::WithBackoff,
    };
    let code = scene.random.chance(300).then(|| FailureCode::parse("E_SIM").expect("short"));
    let reason = Reason::keep_end("it did not work");
    FailTask { lease, reason, code, retry, checkpoint: checkpoint(lease, scene), worker: None }
}

fn heartbeat(lease: LeaseRef, scene: &mut Scene<'_>) -> Heartbeat {
    let asks = scene.random.chance(100);
    let lease_ms = asks.then(|| LeaseMs::parse(500).expect("in range"));
    Heartbeat { lease, lease_ms, checkpoint: checkpoint(lease, scene), progress: None }
}

fn release(lease: LeaseRef, scene: &mut Scene<'_>) -> ReleaseTask {
    let waits = scene.random.chance(200);
    let delay_ms =
        if waits { SpanMs::parse("delay_ms", 120).expect("in range") } else { SpanMs::ZERO };
    let moves = scene.random.chance(100);
    let priority = moves.then(|| Priority::parse(5).expect("in range"));
    ReleaseTask { lease, delay_ms, priority, checkpoint: checkpoint(lease, scene) }
}

/// Now and then it leaves word for the next attempt, with the lease that it was said under.
fn checkpoint(lease: LeaseRef, scene: &mut Scene<'_>) -> Option<Checkpoint> {
    let text = scene.random.chance(200).then(|| format!("{{\"under\":{}}}", lease.lease_id));
    text.and_then(|text| Checkpoint::parse(text.as_bytes()).expect("it is short"))
}

/// A late one is no JSON; nobody takes it.
fn output(lease: LeaseRef, word: &str) -> Payload {
    let text = match word {
        "late" => format!("late under {}", lease.lease_id),
        word => format!("{{\"{word}\":{}}}", lease.lease_id),
    };
    Payload::parse("output", text.into_bytes()).expect("it is short")
}

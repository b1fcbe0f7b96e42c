//! Those outside. Each wakes, does something, and hears back or not. They know only what they were
//! told.

mod client;
mod follower;
mod starter;
mod worker;

pub(crate) use client::{Client, is_huge};
pub(crate) use follower::{FollowerActor, Look};
pub(crate) use starter::{OPERATOR, Starter};
pub(crate) use worker::Worker;

use tenure_record::id::TaskId;
use tenure_record::name::QueueName;

use crate::config::SimConfig;
use crate::model::{RequestId, SubmissionId};
use crate::random::Random;
use crate::request::{AnyRequest, Outcome};

/// Somebody outside who asks.
#[derive(Debug)]
pub(crate) enum Actor {
    Client(Client),
    Worker(Worker),
}

/// What an actor wants to happen.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly every wish is an ask")]
pub(crate) enum Wish {
    /// Send this.
    Ask(RequestId, AnyRequest),
    /// Wake me after so long.
    Wake(u64),
    /// I no longer wait for that.
    Leave(RequestId),
    /// Something happened that is counted.
    Count(&'static str),
    /// So many ask at once.
    Flood(u64),
}

/// What an actor sees of the world.
#[derive(Debug)]
pub(crate) struct Scene<'w> {
    pub(crate) random: &'w mut Random,
    pub(crate) config: &'w SimConfig,
    /// Tasks that anybody was told of.
    pub(crate) known: &'w mut Vec<TaskId>,
    pub(crate) counter: &'w mut u64,
    pub(crate) wall_ms: u64,
    /// The trouble is over: do what is needed to come to an end.
    pub(crate) is_healed: bool,
    pub(crate) wishes: Vec<Wish>,
}

impl Scene<'_> {
    /// A number that nobody else has.
    pub(crate) fn number(&mut self) -> u64 {
        *self.counter += 1;
        *self.counter
    }

    pub(crate) fn ask(&mut self, ask: impl Into<AnyRequest>) -> RequestId {
        let request = self.number();
        self.wishes.push(Wish::Ask(request, ask.into()));
        request
    }

    pub(crate) fn submission(&mut self) -> SubmissionId {
        self.number()
    }

    pub(crate) fn queue(&mut self) -> QueueName {
        let number = self.random.below(self.config.queues);
        self.config.queue(number)
    }

    /// Some task that exists, or hardly ever one that does not.
    pub(crate) fn task(&mut self) -> TaskId {
        let count = self.known.len() as u64;
        if count == 0 || self.random.chance(20) {
            return TaskId(self.random.between(1, 1_000_000));
        }
        // Most is done to what is new.
        let back = match self.random.chance(700) {
            true => self.random.below(count.min(8)),
            false => self.random.below(count),
        };
        self.known[(count - 1 - back) as usize]
    }
}

impl Actor {
    pub(crate) fn wake(&mut self, scene: &mut Scene<'_>) {
        match self {
            Actor::Client(client) => client.wake(scene),
            Actor::Worker(worker) => worker.wake(scene),
        }
    }

    pub(crate) fn hear(&mut self, request: RequestId, outcome: &Outcome, scene: &mut Scene<'_>) {
        match self {
            Actor::Client(client) => client.hear(request, outcome, scene),
            Actor::Worker(worker) => worker.hear(request, outcome, scene),
        }
    }

    /// Whether it still waits for that.
    pub(crate) fn waits_for(&self, request: RequestId) -> bool {
        match self {
            Actor::Client(client) => client.waits_for(request),
            Actor::Worker(worker) => worker.waits_for(request),
        }
    }

    /// No answer came in time.
    pub(crate) fn give_up(&mut self, request: RequestId, scene: &mut Scene<'_>) {
        match self {
            Actor::Client(client) => client.give_up(request, scene),
            Actor::Worker(worker) => worker.give_up(request, scene),
        }
    }
}

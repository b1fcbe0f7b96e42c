//! Queues of a server: read, configure, pause, resume, delete.

use tenure_api::{Page, PageQuery, PauseQueue, Queue, QueueSettings};
use tenure_proto::v1;
use v1::queues_client::QueuesClient;

use super::retry::Idempotency::{Idempotent, NotIdempotent};
use super::send;
use crate::connection::Connection;
use crate::error::Error;

/// The queues of a server; see [`Client::queues`](crate::Client::queues).
#[derive(Clone, Debug)]
pub struct Queues {
    rpc: QueuesClient<Connection>,
}

impl Queues {
    pub(super) fn new(connection: Connection) -> Self {
        Self { rpc: QueuesClient::new(connection).max_decoding_message_size(usize::MAX) }
    }

    /// A queue.
    pub async fn get(&self, queue: &str) -> Result<Queue, Error> {
        let request = v1::QueueRequest { queue: queue.to_owned() };
        send!(Idempotent, self.rpc, get(request)).map(Queue::from)
    }

    /// A page of queues, by name.
    pub async fn list(&self, page: PageQuery) -> Result<Page<Queue>, Error> {
        let request = v1::ListQueuesRequest::from(page);
        send!(Idempotent, self.rpc, list(request)).map(Page::from)
    }

    /// Changes settings of a queue, which is created if it does not exist. Settings that are
    /// [`Setting::Keep`](tenure_api::Setting::Keep) stay as they are.
    pub async fn configure(&self, queue: &str, settings: QueueSettings) -> Result<Queue, Error> {
        let request = v1::ConfigureQueueRequest::from((queue.to_owned(), settings));
        send!(Idempotent, self.rpc, configure(request)).map(Queue::from)
    }

    /// Pauses a queue: it grants no leases until it is resumed, or until the end of the pause.
    pub async fn pause(&self, queue: &str, pause: PauseQueue) -> Result<Queue, Error> {
        let request = v1::PauseQueueRequest::from((queue.to_owned(), pause));
        send!(Idempotent, self.rpc, pause(request)).map(Queue::from)
    }

    /// Resumes a paused queue.
    pub async fn resume(&self, queue: &str) -> Result<Queue, Error> {
        let request = v1::QueueRequest { queue: queue.to_owned() };
        send!(Idempotent, self.rpc, resume(request)).map(Queue::from)
    }

    /// Deletes a queue that has no tasks, ended ones included, together with its settings.
    pub async fn delete(&self, queue: &str) -> Result<(), Error> {
        let request = v1::QueueRequest { queue: queue.to_owned() };
        send!(NotIdempotent, self.rpc, delete(request)).map(drop)
    }
}

//! The client of a server: every verb, grouped by noun. Requests that are safe to repeat are retried.

#[cfg(feature = "client")]
mod operations;
#[cfg(feature = "client")]
mod queues;
#[cfg(feature = "client")]
mod retry;
#[cfg(feature = "client")]
mod runs;
#[cfg(feature = "client")]
mod tasks;
#[cfg(feature = "client")]
mod workers;
#[cfg(feature = "client")]
mod workflows;

#[cfg(feature = "client")]
use tenure_api::{EventFilter, Status};

use crate::connection::{ConnectOptions, Connection, Server};
use crate::error::Error;
#[cfg(feature = "client")]
use crate::watch::Watch;

#[cfg(feature = "client")]
pub use self::operations::{Backups, Snapshots};
#[cfg(feature = "client")]
pub use self::queues::Queues;
#[cfg(feature = "client")]
pub use self::runs::Runs;
#[cfg(feature = "client")]
pub use self::tasks::Tasks;
#[cfg(feature = "client")]
pub use self::workers::Workers;
#[cfg(feature = "client")]
pub use self::workflows::Workflows;

/// The most items that a server puts on one page.
#[cfg(feature = "client")]
const PAGE_ITEMS_MAX: u32 = 1_000;
/// The longest time that a server lets a request wait for the end of a task or a run.
#[cfg(feature = "client")]
const WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// A client of a server. Clones share one connection, which is reestablished when it is lost.
#[derive(Clone, Debug)]
pub struct Client {
    #[cfg_attr(not(feature = "client"), allow(dead_code))]
    connection: Connection,
    #[cfg_attr(not(feature = "worker"), allow(dead_code))]
    pub(crate) server: Server,
}

impl Client {
    pub(crate) fn new(connection: Connection, server: Server) -> Self {
        Self { connection, server }
    }

    /// Connects to an address such as `http://127.0.0.1:7070`; [`ConnectOptions`] has more options.
    pub async fn connect(address: impl Into<String>) -> Result<Self, Error> {
        ConnectOptions::new(address).connect().await
    }
}

#[cfg(feature = "client")]
impl Client {
    /// Tasks: submit, read, wait for, cancel, retry.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        Tasks::new(self.connection.clone())
    }

    /// Runs of workflows: start, read, wait for, signal, cancel.
    #[must_use]
    pub fn runs(&self) -> Runs {
        Runs::new(self.connection.clone())
    }

    /// Workflows: register, read and delete definitions.
    #[must_use]
    pub fn workflows(&self) -> Workflows {
        Workflows::new(self.connection.clone())
    }

    /// Queues: read, configure, pause, resume, delete.
    #[must_use]
    pub fn queues(&self) -> Queues {
        Queues::new(self.connection.clone())
    }

    /// Workers: list them, and lease tasks without the runtime of [`Worker`](crate::Worker).
    #[must_use]
    pub fn workers(&self) -> Workers {
        Workers::new(self.connection.clone())
    }

    /// Snapshots of the server's state.
    #[must_use]
    pub fn snapshots(&self) -> Snapshots {
        Snapshots::new(self.connection.clone())
    }

    /// Backups of the server's data.
    #[must_use]
    pub fn backups(&self) -> Backups {
        Backups::new(self.connection.clone())
    }

    /// The status of the server.
    pub async fn status(&self) -> Result<Status, Error> {
        operations::status(&self.connection, operations::Hash::Skip).await
    }

    /// The status of the server with the hash of its state, which takes the server a while.
    pub async fn status_with_hash(&self) -> Result<Status, Error> {
        operations::status(&self.connection, operations::Hash::Compute).await
    }

    /// Subscribes to events. The stream reconnects by itself and resumes at its position.
    pub async fn watch(&self, filter: EventFilter) -> Result<Watch, Error> {
        Watch::begin(self.clone(), filter).await
    }

    pub(crate) fn connection(&self) -> Connection {
        self.connection.clone()
    }
}

/// Sends a request, with retries as its idempotency allows, and returns the response.
#[cfg(feature = "client")]
macro_rules! send {
    ($idempotency:expr, $rpc:expr, $method:ident($request:expr)) => {{
        let (rpc, request) = (&$rpc, $request);
        let attempt = || {
            let (mut rpc, request) = (rpc.clone(), request.clone());
            async move { rpc.$method(request).await }
        };
        crate::client::retry::retry($idempotency, attempt).await.map(tonic::Response::into_inner)
    }};
}

#[cfg(feature = "client")]
use send;

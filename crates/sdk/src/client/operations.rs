//! Operations: the status of a server, its snapshots and its backups.

use tenure_api::{Snapshot, Status};
use tenure_proto::v1;
use v1::status_client::StatusClient;

use super::retry::Idempotency::Idempotent;
use super::send;
use crate::backup::{Backup, BackupScope};
use crate::connection::Connection;
use crate::error::Error;

/// Whether a status has the hash of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Skip,
    Compute,
}

pub(super) async fn status(connection: &Connection, hash: Hash) -> Result<Status, Error> {
    let rpc = StatusClient::new(connection.clone());
    let request = v1::GetStatusRequest { hash: hash == Hash::Compute };
    send!(Idempotent, rpc, get(request)).map(Status::from)
}

/// Snapshots of a server's state; see [`Client::snapshots`](crate::Client::snapshots).
#[derive(Clone, Debug)]
pub struct Snapshots {
    rpc: StatusClient<Connection>,
}

impl Snapshots {
    pub(super) fn new(connection: Connection) -> Self {
        Self { rpc: StatusClient::new(connection) }
    }

    /// Takes a snapshot of everything that was acknowledged before, and waits until it is on disk.
    pub async fn take(&self) -> Result<Snapshot, Error> {
        let request = v1::TakeSnapshotRequest {};
        send!(Idempotent, self.rpc, take_snapshot(request)).map(Snapshot::from)
    }
}

/// Backups of a server's data; see [`Client::backups`](crate::Client::backups).
#[derive(Clone, Debug)]
pub struct Backups {
    rpc: StatusClient<Connection>,
}

impl Backups {
    pub(super) fn new(connection: Connection) -> Self {
        Self { rpc: StatusClient::new(connection) }
    }

    /// Starts a backup of everything that was acknowledged before. The server continues meanwhile.
    pub async fn start(&self, scope: BackupScope) -> Result<Backup, Error> {
        let request = v1::BackupRequest { whole: scope == BackupScope::WholeLog };
        let parts = self.rpc.clone().backup(request).await.map_err(Error::from_status)?;
        Backup::begin(parts.into_inner()).await
    }
}

//! Workers of a server: list them, and lease tasks by single requests.

use tenure_api::{
    Lease, LeaseRequest, Page, PageQuery, ReportResult, ReportResults, Reports,
    Worker as WorkerInfo,
};
use tenure_proto::v1;
use v1::workers_client::WorkersClient;

use super::retry::Idempotency::{Idempotent, NotIdempotent};
use super::send;
use crate::connection::Connection;
use crate::error::Error;

/// The workers of a server; see [`Client::workers`](crate::Client::workers).
#[derive(Clone, Debug)]
pub struct Workers {
    rpc: WorkersClient<Connection>,
}

impl Workers {
    pub(super) fn new(connection: Connection) -> Self {
        Self { rpc: WorkersClient::new(connection).max_decoding_message_size(usize::MAX) }
    }

    /// A page of the workers that the server heard of lately, by id.
    pub async fn list(&self, page: PageQuery) -> Result<Page<WorkerInfo>, Error> {
        let request = v1::ListWorkersRequest::from(page);
        send!(Idempotent, self.rpc, list_workers(request)).map(Page::from)
    }

    /// Leases tasks by one request. The caller sends heartbeats and reports itself;
    /// [`Worker`](crate::Worker) does both.
    pub async fn lease(&self, request: LeaseRequest) -> Result<Vec<Lease>, Error> {
        let request = v1::LeaseRequest::from(request);
        let response = send!(NotIdempotent, self.rpc, lease(request))?;
        Ok(response.leases.into_iter().map(Lease::from).collect())
    }

    /// Sends reports. Each report succeeds or fails by itself; the results are in the order
    /// heartbeats, completions, failures, releases.
    pub async fn report(&self, reports: Reports) -> Result<ReportResults, Error> {
        let Reports { heartbeat, complete, fail, release } = reports;
        let request = v1::Reports {
            sequence: 0,
            heartbeats: heartbeat.into_iter().map(Into::into).collect(),
            completes: complete.into_iter().map(Into::into).collect(),
            fails: fail.into_iter().map(Into::into).collect(),
            releases: release.into_iter().map(Into::into).collect(),
        };
        let response = send!(Idempotent, self.rpc, report(request))?;
        let results = response.results.into_iter().map(ReportResult::from).collect();
        Ok(ReportResults { results })
    }
}

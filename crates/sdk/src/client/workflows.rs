//! Workflows of a server: register, read and delete definitions.

use tenure_api::{Page, PageQuery, Registered, Workflow};
use tenure_proto::v1;
use v1::workflows_client::WorkflowsClient;

use super::retry::Idempotency::{Idempotent, NotIdempotent};
use super::send;
use crate::connection::Connection;
use crate::error::Error;
use crate::new_run::Definition;

/// The workflows of a server; see [`Client::workflows`](crate::Client::workflows).
#[derive(Clone, Debug)]
pub struct Workflows {
    rpc: WorkflowsClient<Connection>,
}

impl Workflows {
    pub(super) fn new(connection: Connection) -> Self {
        Self { rpc: WorkflowsClient::new(connection).max_decoding_message_size(usize::MAX) }
    }

    /// Registers a definition: a new version, unless the newest version is equal. The error of a
    /// faulty definition has its [faults](Error::faults).
    pub async fn put(&self, definition: Definition) -> Result<Registered, Error> {
        let request = v1::PutWorkflowRequest::from(definition.definition);
        send!(Idempotent, self.rpc, put(request)).map(Registered::from)
    }

    /// A workflow with its definition; the newest version if none is given.
    pub async fn get(&self, name: &str, version: Option<u32>) -> Result<Workflow, Error> {
        let request = v1::GetWorkflowRequest { name: name.to_owned(), version };
        send!(Idempotent, self.rpc, get(request)).map(Workflow::from)
    }

    /// A page of workflows, by name: the newest version of each, without its definition.
    pub async fn list(&self, page: PageQuery) -> Result<Page<Workflow>, Error> {
        let request = v1::ListWorkflowsRequest::from(page);
        send!(Idempotent, self.rpc, list(request)).map(Page::from)
    }

    /// Deletes a workflow that no run and no other definition needs: one version, or all of them.
    pub async fn delete(&self, name: &str, version: Option<u32>) -> Result<(), Error> {
        let request = v1::DeleteWorkflowRequest { name: name.to_owned(), version };
        send!(NotIdempotent, self.rpc, delete(request)).map(drop)
    }
}

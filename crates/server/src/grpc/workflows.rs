//! Workflows: definitions, by name and version.

use tenure_coordinator::NameRange;
use tenure_coordinator::request::{GetWorkflow, ListWorkflows};
use tenure_core::command::{DeleteWorkflow, SubmitOutcome};
use tenure_proto::v1;
use tonic::{Request, Response};

use super::{Door, Outcome, parse, parse_run, show_run};
use crate::problem::Problem;
use crate::wire::{flow, list};

#[tonic::async_trait]
impl v1::workflows_server::Workflows for Door {
    async fn put(
        &self,
        request: Request<v1::PutWorkflowRequest>,
    ) -> Outcome<v1::PutWorkflowResponse> {
        let put = request.into_inner();
        // A large definition takes its time, so it is compiled beside the others.
        let register = tokio::task::spawn_blocking(move || parse_run::definition(&put)).await;
        let register = register.map_err(|_| Problem::stopping())??;
        let registered = self.app.ask(register).await?;
        Ok(Response::new(v1::PutWorkflowResponse {
            name: registered.name.to_string(),
            version: registered.version,
            existed: registered.outcome == SubmitOutcome::Existed,
        }))
    }

    async fn get(&self, request: Request<v1::GetWorkflowRequest>) -> Outcome<v1::Workflow> {
        let v1::GetWorkflowRequest { name, version } = request.into_inner();
        let version = flow::version(version.map(i64::from))?;
        let workflow = self.app.ask(GetWorkflow { name: name.into(), version }).await?;
        Ok(Response::new(show_run::workflow(&workflow)))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteWorkflowRequest>,
    ) -> Outcome<v1::DeleteWorkflowResponse> {
        let v1::DeleteWorkflowRequest { name, version } = request.into_inner();
        let version = flow::version(version.map(i64::from))?;
        self.app.ask(DeleteWorkflow { name: name.into(), version }).await?;
        Ok(Response::new(v1::DeleteWorkflowResponse {}))
    }

    async fn list(
        &self,
        request: Request<v1::ListWorkflowsRequest>,
    ) -> Outcome<v1::ListWorkflowsResponse> {
        let v1::ListWorkflowsRequest { limit, cursor } = request.into_inner();
        let limit = list::limit(limit.map(|limit| limit as usize))?;
        let after = parse::given(&cursor).map(Into::into);
        let page = self.app.ask(ListWorkflows(NameRange { after, limit })).await?;
        Ok(Response::new(v1::ListWorkflowsResponse {
            workflows: page.workflows.iter().map(show_run::listed).collect(),
            next_cursor: page.next.map_or_else(String::new, |name| name.to_string()),
        }))
    }
}

//! Workflows: definitions, by name and version.

use tenure_api::Page;
use tenure_coordinator::request::{GetWorkflow, ListWorkflows};
use tenure_core::command::DeleteWorkflow;
use tenure_proto::v1;
use tonic::{Request, Response};

use super::{Door, Outcome};
use crate::problem::Problem;
use crate::show;
use crate::wire::{flow, list};

#[tonic::async_trait]
impl v1::workflows_server::Workflows for Door {
    async fn put(
        &self,
        request: Request<v1::PutWorkflowRequest>,
    ) -> Outcome<v1::PutWorkflowResponse> {
        let put = request.into_inner().try_into().map_err(Problem::from)?;
        let registered = self.app.ask(flow::compiled(put).await?).await?;
        Ok(Response::new(show::workflow::registered(&registered).into()))
    }

    async fn get(&self, request: Request<v1::GetWorkflowRequest>) -> Outcome<v1::Workflow> {
        let v1::GetWorkflowRequest { name, version } = request.into_inner();
        let version = flow::version(version)?;
        let workflow = self.app.ask(GetWorkflow { name: name.into(), version }).await?;
        Ok(Response::new(show::workflow::workflow(&workflow).into()))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteWorkflowRequest>,
    ) -> Outcome<v1::DeleteWorkflowResponse> {
        let v1::DeleteWorkflowRequest { name, version } = request.into_inner();
        let version = flow::version(version)?;
        self.app.ask(DeleteWorkflow { name: name.into(), version }).await?;
        Ok(Response::new(v1::DeleteWorkflowResponse {}))
    }

    async fn list(
        &self,
        request: Request<v1::ListWorkflowsRequest>,
    ) -> Outcome<v1::ListWorkflowsResponse> {
        let range = list::names(request.into_inner().into())?;
        let page = self.app.ask(ListWorkflows(range)).await?;
        let items = page.workflows.iter().map(show::workflow::listed).collect();
        let next_cursor = page.next.map(|name| name.to_string());
        Ok(Response::new(Page { items, next_cursor }.into()))
    }
}

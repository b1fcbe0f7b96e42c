//! Workers: taking work by asking for it, reporting on it, and who is there.

use tenure_api::{Page, SignedOff};
use tenure_coordinator::request::{Lease, ListWorkers, RegisterWorker, SignOff};
use tenure_proto::v1;
use tenure_record::name::WorkerName;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::{Door, Outcome, fast_path, work};
use crate::problem::Problem;
use crate::show;
use crate::wire::page::cut_workers;
use crate::wire::report::{self, About};
use crate::wire::{artifact, list, request};

#[tonic::async_trait]
impl v1::workers_server::Workers for Door {
    type WorkStream = ReceiverStream<Result<v1::WorkResponse, Status>>;

    async fn work(
        &self,
        request: Request<Streaming<v1::WorkRequest>>,
    ) -> Outcome<Self::WorkStream> {
        Ok(Response::new(work::open(&self.app, request.into_inner())?))
    }

    async fn lease(&self, request: Request<v1::LeaseRequest>) -> Outcome<v1::LeaseResponse> {
        let (request, wait_ms) = request::lease(&request.into_inner().into())?;
        let grants = self.app.ask(Lease { request, wait_ms }).await?;
        let leases = grants.into_iter().map(fast_path::lease).collect();
        Ok(Response::new(v1::LeaseResponse { leases }))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatReport>,
    ) -> Outcome<v1::HeartbeatResponse> {
        let report = report::heartbeat(About::Report, &request.into_inner().into())?;
        let (task_id, progress) = (report.lease.task_id, report.progress.clone());
        let extended = self.app.ask(report).await?;
        self.app.scribe.progress(task_id.0, progress.as_deref());
        Ok(Response::new(show::worker::extension(extended).into()))
    }

    async fn complete(&self, request: Request<v1::CompleteReport>) -> Outcome<v1::Task> {
        let (mut report, handed) = report::complete(About::Report, request.into_inner().into())?;
        report.artifacts = artifact::keep(&self.app, handed).await?;
        self.one_task(report).await
    }

    async fn fail(&self, request: Request<v1::FailReport>) -> Outcome<v1::Task> {
        self.one_task(report::fail(About::Report, &request.into_inner().into())?).await
    }

    async fn release(&self, request: Request<v1::ReleaseReport>) -> Outcome<v1::Task> {
        self.one_task(report::release(About::Report, &request.into_inner().into())?).await
    }

    async fn report(&self, request: Request<v1::Reports>) -> Outcome<v1::Results> {
        let reports = request.into_inner();
        let sequence = reports.sequence;
        let (mut reports, handed) = fast_path::reports(reports, None)?;
        artifact::keep_each(&self.app, &mut reports, handed).await?;
        let reported = self.app.ask(reports).await?;
        let results = reported.iter().map(fast_path::result).collect();
        Ok(Response::new(v1::Results { sequence, results, problem: None }))
    }

    async fn register(
        &self,
        request: Request<v1::RegisterRequest>,
    ) -> Outcome<v1::RegisterResponse> {
        let (id, registration) = request.into_inner().into();
        let registration = request::registration(&id, registration)?;
        self.app.ask(RegisterWorker(registration)).await?;
        Ok(Response::new(v1::RegisterResponse {}))
    }

    async fn sign_off(&self, request: Request<v1::SignOffRequest>) -> Outcome<v1::SignOffResponse> {
        let worker = WorkerName::parse(&request.into_inner().worker).map_err(Problem::from)?;
        let released = self.app.ask(SignOff(worker)).await?;
        Ok(Response::new(SignedOff { released: released as u64 }.into()))
    }

    async fn list_workers(
        &self,
        request: Request<v1::ListWorkersRequest>,
    ) -> Outcome<v1::ListWorkersResponse> {
        let range = list::names(request.into_inner().into())?;
        let page = cut_workers(self.app.ask(ListWorkers(range)).await?);
        let next_cursor = page.next.map(|name| name.to_string());
        let items = page.items.iter().map(show::worker::worker).collect();
        Ok(Response::new(Page { items, next_cursor }.into()))
    }
}

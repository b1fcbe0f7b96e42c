//! Queues: how full they are, and their settings.

use tenure_api::Page;
use tenure_coordinator::request::{DeleteQueue, GetQueue, ListQueues, ResumeQueue};
use tenure_core::state::QueueView;
use tenure_proto::v1;
use tenure_record::name::QueueName;
use tonic::{Request, Response};

use super::{Door, Outcome};
use crate::problem::Problem;
use crate::show;
use crate::wire::{list, request};

#[tonic::async_trait]
impl v1::queues_server::Queues for Door {
    async fn list(
        &self,
        request: Request<v1::ListQueuesRequest>,
    ) -> Outcome<v1::ListQueuesResponse> {
        let range = list::names(request.into_inner().into())?;
        let page = self.app.ask(ListQueues(range)).await?;
        let items = page.items.iter().map(show::queue::queue).collect();
        let next_cursor = page.next.map(|name| name.to_string());
        Ok(Response::new(Page { items, next_cursor }.into()))
    }

    async fn get(&self, request: Request<v1::QueueRequest>) -> Outcome<v1::Queue> {
        let queue = name(request)?;
        self.one_queue(queue.clone(), GetQueue(queue)).await
    }

    async fn configure(&self, request: Request<v1::ConfigureQueueRequest>) -> Outcome<v1::Queue> {
        let (queue, settings) = request.into_inner().try_into().map_err(Problem::from)?;
        let configure = request::configure(&queue, settings)?;
        self.one_queue(configure.queue.clone(), configure).await
    }

    async fn pause(&self, request: Request<v1::PauseQueueRequest>) -> Outcome<v1::Queue> {
        let (queue, pause) = request.into_inner().into();
        let pause = request::pause(&queue, &pause)?;
        self.one_queue(pause.queue.clone(), pause).await
    }

    async fn delete(&self, request: Request<v1::QueueRequest>) -> Outcome<v1::DeleteQueueResponse> {
        self.app.ask(DeleteQueue(name(request)?)).await?;
        Ok(Response::new(v1::DeleteQueueResponse {}))
    }

    async fn resume(&self, request: Request<v1::QueueRequest>) -> Outcome<v1::Queue> {
        let queue = name(request)?;
        self.one_queue(queue.clone(), ResumeQueue(queue)).await
    }
}

fn name(request: Request<v1::QueueRequest>) -> Result<QueueName, Problem> {
    Ok(QueueName::parse(&request.into_inner().queue)?)
}

impl Door {
    /// Serves a request whose response is a queue.
    async fn one_queue<R>(&self, name: QueueName, request: R) -> Outcome<v1::Queue>
    where
        R: tenure_coordinator::Request<Response = Option<Box<QueueView>>>,
    {
        let found = show::queue::found(name.as_str(), self.app.ask(request).await?.as_deref())?;
        Ok(Response::new(found.into()))
    }
}

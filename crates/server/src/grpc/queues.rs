//! Queues: how full they are, and their settings.

use tenure_code::{Code, Echo};
use tenure_coordinator::request::{DeleteQueue, GetQueue, ListQueues, ResumeQueue};
use tenure_core::state::QueueView;
use tenure_proto::v1;
use tenure_record::name::QueueName;
use tonic::{Request, Response};

use super::{Door, Outcome, parse, show};
use crate::problem::Problem;

#[tonic::async_trait]
impl v1::queues_server::Queues for Door {
    async fn list(
        &self,
        request: Request<v1::ListQueuesRequest>,
    ) -> Outcome<v1::ListQueuesResponse> {
        let v1::ListQueuesRequest { limit, cursor } = request.into_inner();
        let page = self.app.ask(ListQueues(parse::names(limit, &cursor)?)).await?;
        let queues = page.items.iter().map(show::queue).collect();
        let next_cursor = page.next.map_or_else(String::new, |name| name.to_string());
        Ok(Response::new(v1::ListQueuesResponse { queues, next_cursor }))
    }

    async fn get(&self, request: Request<v1::QueueRequest>) -> Outcome<v1::Queue> {
        let queue = name(request)?;
        show_queue(&queue.clone(), self.app.ask(GetQueue(queue)).await?.as_deref())
    }

    async fn configure(&self, request: Request<v1::ConfigureQueueRequest>) -> Outcome<v1::Queue> {
        let configure = parse::configure(&request.into_inner())?;
        let queue = configure.queue.clone();
        show_queue(&queue, self.app.ask(configure).await?.as_deref())
    }

    async fn pause(&self, request: Request<v1::PauseQueueRequest>) -> Outcome<v1::Queue> {
        let pause = parse::pause(&request.into_inner())?;
        let queue = pause.queue.clone();
        show_queue(&queue, self.app.ask(pause).await?.as_deref())
    }

    async fn delete(&self, request: Request<v1::QueueRequest>) -> Outcome<v1::DeleteQueueResponse> {
        self.app.ask(DeleteQueue(name(request)?)).await?;
        Ok(Response::new(v1::DeleteQueueResponse {}))
    }

    async fn resume(&self, request: Request<v1::QueueRequest>) -> Outcome<v1::Queue> {
        let queue = name(request)?;
        show_queue(&queue.clone(), self.app.ask(ResumeQueue(queue)).await?.as_deref())
    }
}

fn name(request: Request<v1::QueueRequest>) -> Result<QueueName, Problem> {
    Ok(QueueName::parse(&request.into_inner().queue)?)
}

fn show_queue(name: &QueueName, queue: Option<&QueueView>) -> Outcome<v1::Queue> {
    let queue = queue.ok_or_else(|| {
        let name = Echo(name.as_str());
        let detail = format!("there is no queue {name}; it comes with its first task or setting");
        Problem::new(Code::NotFound, detail)
    })?;
    Ok(Response::new(show::queue(queue)))
}

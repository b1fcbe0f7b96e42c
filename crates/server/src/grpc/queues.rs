//! Queues: how full they are, and their settings.

use tenure_code::{Code, Echo};
use tenure_coordinator::{Answer, Ask, Query};
use tenure_core::command::Command;
use tenure_proto::v1;
use tenure_record::name::QueueName;
use tonic::{Request, Response};

use super::{Door, Outcome, parse, show, unexpected};
use crate::problem::Problem;

#[tonic::async_trait]
impl v1::queues_server::Queues for Door {
    async fn list(
        &self,
        request: Request<v1::ListQueuesRequest>,
    ) -> Outcome<v1::ListQueuesResponse> {
        let v1::ListQueuesRequest { limit, cursor } = request.into_inner();
        let query = Query::Queues(parse::names(limit, &cursor)?);
        let Answer::Queues(page) = self.ask(Ask::Query(query)).await? else {
            return unexpected();
        };
        let queues = page.items.iter().map(show::queue).collect();
        let next_cursor = page.next.map_or_else(String::new, |name| name.to_string());
        Ok(Response::new(v1::ListQueuesResponse { queues, next_cursor }))
    }

    async fn get(&self, request: Request<v1::QueueRequest>) -> Outcome<v1::Queue> {
        self.queue(name(request)?).await
    }

    async fn configure(&self, request: Request<v1::ConfigureQueueRequest>) -> Outcome<v1::Queue> {
        let configure = parse::configure(&request.into_inner())?;
        let queue = configure.queue.clone();
        self.change_queue(queue, Command::ConfigureQueue(configure)).await
    }

    async fn pause(&self, request: Request<v1::PauseQueueRequest>) -> Outcome<v1::Queue> {
        let pause = parse::pause(&request.into_inner())?;
        self.change_queue(pause.queue.clone(), Command::PauseQueue(pause)).await
    }

    async fn delete(&self, request: Request<v1::QueueRequest>) -> Outcome<v1::DeleteQueueResponse> {
        self.ask(Ask::Command(Command::DeleteQueue(name(request)?))).await?;
        Ok(Response::new(v1::DeleteQueueResponse {}))
    }

    async fn resume(&self, request: Request<v1::QueueRequest>) -> Outcome<v1::Queue> {
        let queue = name(request)?;
        self.change_queue(queue.clone(), Command::ResumeQueue(queue)).await
    }
}

fn name(request: Request<v1::QueueRequest>) -> Result<QueueName, Problem> {
    Ok(QueueName::parse(&request.into_inner().queue)?)
}

impl Door {
    async fn change_queue(&self, queue: QueueName, command: Command) -> Outcome<v1::Queue> {
        self.ask(Ask::Command(command)).await?;
        self.queue(queue).await
    }

    async fn queue(&self, queue: QueueName) -> Outcome<v1::Queue> {
        let name = queue.as_str().to_owned();
        let Answer::Queue(queue) = self.ask(Ask::Query(Query::Queue(queue))).await? else {
            return unexpected();
        };
        let queue = queue.ok_or_else(|| {
            let detail = format!(
                "there is no queue {}; it comes with its first task or setting",
                Echo(&name)
            );
            Problem::new(Code::NotFound, detail)
        })?;
        Ok(Response::new(show::queue(&queue)))
    }
}

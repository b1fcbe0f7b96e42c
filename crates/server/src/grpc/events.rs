//! Live updates over gRPC, from any record that is still in the log.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use prost::Message;
use tenure_proto::v1;
use tenure_record::event::Record;
use tenure_record::transition::{RunTransition, Told, Transition};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use super::{Door, Outcome, show, show_run};
use crate::admission::response_budget::InFlight;
use crate::observe::follow::{
    Portions, Shared, Shown, Subscribed, Updates, Wanted, parse_after, subscribe,
};
use crate::problem::Problem;

/// What a subscriber reads.
pub(crate) struct Watching(Subscribed<v1::Event>);

impl Stream for Watching {
    type Item = Result<v1::Event, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_event(context).map_err(|end| Problem::from(end).into())
    }
}

impl Shown for v1::Event {
    fn event(record: &Record<'_>, told: &Told<'_>) -> Self {
        let event = match told {
            Told::Task(step) => task_event(step),
            Told::Run(step) => run_event(step),
        };
        let id = format!("{}.{}", record.lsn, told.index());
        v1::Event { id, lsn: record.lsn.0, at: record.wall.0, ..event }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.encoded_len()
    }

    fn join(_: &[Shared<Self>]) -> Option<Bytes> {
        None
    }

    fn portions(updates: &Updates) -> &Portions<Self> {
        &updates.messages
    }
}

#[tonic::async_trait]
impl v1::events_server::Events for Door {
    type WatchStream = Watching;

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Outcome<Self::WatchStream> {
        let connection = request.extensions().get::<Arc<InFlight>>().cloned();
        let v1::WatchRequest { after, task_id, queue, run_id } = request.into_inner();
        let after = parse_after(&self.app, after.as_deref())?;
        let wanted = Wanted { task: task_id, queue, run: run_id };
        let subscribed = subscribe(&self.app, after, wanted, connection.as_ref()).await?;
        Ok(Response::new(Watching(subscribed)))
    }
}

fn task_event(step: &Transition<'_>) -> v1::Event {
    let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
    v1::Event {
        event: step.event.to_owned(),
        task_id: step.task_id.0,
        queue: step.queue.to_owned(),
        from: show::maybe_state(step.from),
        to: show::state(step.to).into(),
        worker: step.worker.map(str::to_owned),
        lease_id: step.lease_id.map(|lease| lease.0),
        attempt: step.attempt,
        priority: step.priority.get().into(),
        code: text(step.code),
        reason: text(step.reason),
        run_id: step.run_id.map(|run| run.0),
        dead_letter_of: step.dead_letter_of.map(|id| id.0),
        ..v1::Event::default()
    }
}

fn run_event(step: &RunTransition<'_>) -> v1::Event {
    let state = step.to.map_or(v1::RunState::Unspecified, |state| show_run::state(state.as_str()));
    v1::Event {
        event: step.event.to_owned(),
        run_id: Some(step.run_id.0),
        run_state: state.into(),
        workflow: step.workflow.map(str::to_owned),
        parent_run_id: step.parent.map(|run| run.0),
        signal: step.signal.map(str::to_owned),
        code: step.code.map(str::to_owned),
        ..v1::Event::default()
    }
}

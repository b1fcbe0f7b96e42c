//! Live updates over gRPC, from any record that is still in the log.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use prost::Message;
use tenure_api::EventFilter;
use tenure_proto::v1;
use tenure_record::event::Record;
use tenure_record::transition::Told;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use super::{Door, Outcome};
use crate::admission::response_budget::InFlight;
use crate::observe::follow::{
    Portions, Shared, Shown, Subscribed, Updates, Wanted, parse_after, subscribe,
};
use crate::problem::Problem;
use crate::show;

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
        show::event::event(record, told).into()
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
        let EventFilter { after, task, run, queue } = request.into_inner().into();
        let after = parse_after(&self.app, after.as_deref())?;
        let wanted = Wanted { task, queue, run };
        let subscribed = subscribe(&self.app, after, wanted, connection.as_ref()).await?;
        Ok(Response::new(Watching(subscribed)))
    }
}

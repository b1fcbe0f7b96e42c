//! A subscription to events that survives disconnects and restarts: every event arrives exactly once.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use tenure_api::{Event, EventFilter};
use tenure_proto::v1;
use tokio::time::Sleep;
use tonic::Streaming;
use v1::events_client::EventsClient;

use crate::client::Client;
use crate::delays::RetryDelays;
use crate::error::Error;

const DELAY_MIN: Duration = Duration::from_millis(50);
const DELAY_MAX: Duration = Duration::from_secs(2);

/// A stream of events. It reconnects to a server that is away and resumes at its position.
///
/// An error is one that a retry does not mend, such as `log_trimmed`; the stream ends after it.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    request: v1::WatchRequest,
    state: State,
    delays: RetryDelays,
}

type Subscribing =
    Pin<Box<dyn Future<Output = Result<Streaming<v1::Event>, tonic::Status>> + Send>>;

enum State {
    Subscribed(Box<Streaming<v1::Event>>),
    Delayed(Pin<Box<Sleep>>),
    Subscribing(Subscribing),
    Ended,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Subscribed(_) => "Subscribed",
            Self::Delayed(_) => "Delayed",
            Self::Subscribing(_) => "Subscribing",
            Self::Ended => "Ended",
        })
    }
}

impl Watch {
    pub(crate) async fn begin(client: Client, filter: EventFilter) -> Result<Self, Error> {
        let mut request = v1::WatchRequest::from(filter);
        if request.after.is_none() {
            // A fixed position, so that a disconnect before the first event loses nothing.
            request.after = Some(client.status().await?.durable_lsn.to_string());
        }
        let stream = subscribe(client.clone(), request.clone()).await;
        let stream = stream.map_err(Error::from_status)?;
        let delays = RetryDelays::new(DELAY_MIN, DELAY_MAX);
        Ok(Self { client, request, state: State::Subscribed(Box::new(stream)), delays })
    }

    /// The next event; none after an error.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// The id of the latest event, after which another watch can resume.
    #[must_use]
    pub fn position(&self) -> &str {
        self.request.after.as_deref().unwrap_or_default()
    }

    /// Resubscribes after a delay.
    fn delay(&mut self) {
        self.state = State::Delayed(Box::pin(tokio::time::sleep(self.delays.next())));
    }

    /// Resubscribes after a retryable error; another one ends the stream.
    fn recover(&mut self, status: tonic::Status) -> Result<(), Error> {
        let error = Error::from_status(status);
        if error.is_retryable() {
            self.delay();
            return Ok(());
        }
        self.state = State::Ended;
        Err(error)
    }
}

impl Stream for Watch {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let watch = &mut *self;
        loop {
            match &mut watch.state {
                State::Subscribed(stream) => {
                    match ready!(Pin::new(&mut **stream).poll_next(context)) {
                        Some(Ok(event)) => {
                            watch.delays.reset();
                            watch.request.after = Some(event.id.clone());
                            return Poll::Ready(Some(Ok(event.into())));
                        }
                        Some(Err(status)) => {
                            if let Err(error) = watch.recover(status) {
                                return Poll::Ready(Some(Err(error)));
                            }
                        }
                        None => watch.delay(),
                    }
                }
                State::Delayed(sleep) => {
                    ready!(sleep.as_mut().poll(context));
                    let subscribing = subscribe(watch.client.clone(), watch.request.clone());
                    watch.state = State::Subscribing(Box::pin(subscribing));
                }
                State::Subscribing(subscribing) => match ready!(subscribing.as_mut().poll(context))
                {
                    Ok(stream) => watch.state = State::Subscribed(Box::new(stream)),
                    Err(status) => {
                        if let Err(error) = watch.recover(status) {
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                },
                State::Ended => return Poll::Ready(None),
            }
        }
    }
}

async fn subscribe(
    client: Client,
    request: v1::WatchRequest,
) -> Result<Streaming<v1::Event>, tonic::Status> {
    let mut rpc = EventsClient::new(client.connection()).max_decoding_message_size(usize::MAX);
    Ok(rpc.watch(request).await?.into_inner())
}

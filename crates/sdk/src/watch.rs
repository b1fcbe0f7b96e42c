//! Following what happens, over cuts and restarts: nothing is missed and nothing comes twice.

use std::time::Duration;

use tenure_proto::v1;
use tonic::Streaming;

use crate::client::Client;
use crate::error::Error;
use crate::retry::Waits;

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What to follow, and from where.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct WatchFrom {
    request: v1::WatchRequest,
}

impl WatchFrom {
    /// Everything from now on.
    pub fn now() -> Self {
        Self::default()
    }

    /// Everything after an event or an LSN; "0" for all that the log has.
    pub fn after(id: impl Into<String>) -> Self {
        Self { request: v1::WatchRequest { after: Some(id.into()), ..Default::default() } }
    }

    /// Only of one task.
    pub fn task(mut self, task_id: u64) -> Self {
        self.request.task_id = Some(task_id);
        self
    }

    /// Only of one run: its own steps, and those of its tasks.
    pub fn run(mut self, run_id: u64) -> Self {
        self.request.run_id = Some(run_id);
        self
    }

    /// Only of one queue.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.request.queue = Some(queue.into());
        self
    }
}

/// Follows what happens.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    request: v1::WatchRequest,
    stream: Option<Streaming<v1::Event>>,
    waits: Waits,
}

impl Watch {
    pub(crate) async fn begin(client: Client, from: WatchFrom) -> Result<Self, Error> {
        let mut request = from.request;
        if request.after.is_none() {
            // Pinned down, so that a cut before the first event loses nothing.
            request.after = Some(client.status().await?.durable_lsn.to_string());
        }
        let waits = Waits::new(FIRST_WAIT, LONGEST_WAIT);
        let stream = Some(client.events().watch(request.clone()).await?.into_inner());
        Ok(Self { client, request, stream, waits })
    }

    /// The next event. Waits for as long as it takes, also for a server that is away; an error is
    /// one that waiting does not mend, such as `log_trimmed`.
    pub async fn next(&mut self) -> Result<v1::Event, Error> {
        loop {
            match self.try_next().await {
                Ok(Some(event)) => {
                    self.waits.reset();
                    self.request.after = Some(event.id.clone());
                    return Ok(event);
                }
                Ok(None) => self.stream = None,
                Err(status) => {
                    self.stream = None;
                    let error = Error::from(status);
                    if !error.is_retryable() {
                        return Err(error);
                    }
                }
            }
            tokio::time::sleep(self.waits.next()).await;
        }
    }

    /// The id of the last event that was seen: where another watch may go on.
    #[must_use]
    pub fn position(&self) -> &str {
        self.request.after.as_deref().unwrap_or_default()
    }

    async fn try_next(&mut self) -> Result<Option<v1::Event>, tonic::Status> {
        if self.stream.is_none() {
            let stream = self.client.events().watch(self.request.clone()).await?;
            self.stream = Some(stream.into_inner());
        }
        match &mut self.stream {
            Some(stream) => stream.message().await,
            None => Ok(None),
        }
    }
}

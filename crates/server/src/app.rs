//! What all handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tenure_code::Code;
use tenure_coordinator::{Engine, Pool, Request, Response};
use tenure_core::command::{ReleaseTask, ReportTasks};
use tokio::sync::{Semaphore, watch};

use crate::admission::body_budget::Bodies;
use crate::admission::response_budget::{self, Answers};
use crate::admission::submit_limiter::SubmitLimiter;
use crate::archive::ArchiveNews;
use crate::artifacts::blobs::Blobs;
use crate::artifacts::publish::Store;
use crate::fetch::{Shows, fetched};
use crate::grpc::Streams;
use crate::limits::{BACKUPS_MAX, REDECIDES_MAX, SUBSCRIBERS_MAX};
use crate::observe::event_log::Scribe;
use crate::observe::follow::Updates;
use crate::observe::metrics::Metrics;
use crate::problem::Problem;

/// The engine, and what is counted around it.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) tenure: Engine,
    pub(crate) started: Instant,
    pub(crate) metrics: Metrics,
    pub(crate) streams: Streams,
    pub(crate) scribe: Scribe,
    pub(crate) bodies: Bodies,
    pub(crate) answers: Answers,
    pub(crate) updates: Updates,
    pub(crate) submit_limiter: SubmitLimiter,
    /// Places for copies in the making.
    pub(crate) backups: Arc<Semaphore>,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) store: Arc<Store>,
    pub(crate) archive: Option<Arc<ArchiveNews>>,
    /// Who decides an old record again.
    pub(crate) redeciding: Arc<Semaphore>,
    subscribers: AtomicUsize,
    stop: watch::Sender<bool>,
}

/// Word that the server stops, for those who would not notice.
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Stopping {
    /// Waits for it.
    pub(crate) async fn told(&mut self) {
        // Whoever would tell it is gone: that is a stop too.
        let _ = self.0.wait_for(|told| *told).await;
    }

    pub(crate) fn is_told(&self) -> bool {
        *self.0.borrow()
    }
}

/// A place among those who follow live updates, until it is dropped.
pub(crate) struct Subscription(std::sync::Arc<App>);

impl App {
    pub(crate) fn new(
        tenure: Engine,
        scribe: Scribe,
        blobs: Arc<Blobs>,
        store: Arc<Store>,
        archive: Option<Arc<ArchiveNews>>,
    ) -> Self {
        let supplied = tenure.clone();
        let bodies = Bodies::new(tenure.memory().pool(Pool::Bodies).clone());
        let answers = Answers::new(tenure.memory().pool(Pool::Answers).clone());
        Self {
            tenure,
            started: Instant::now(),
            metrics: Metrics::default(),
            streams: Streams::default(),
            scribe,
            bodies,
            answers,
            updates: Updates::default(),
            submit_limiter: SubmitLimiter::new(move || supplied.supply()),
            backups: Arc::new(Semaphore::new(BACKUPS_MAX)),
            blobs,
            store,
            archive,
            redeciding: Arc::new(Semaphore::new(REDECIDES_MAX)),
            subscribers: AtomicUsize::new(0),
            stop: watch::Sender::new(false),
        }
    }

    /// Serves a request: waits for the response, for room to show it, and for the payloads that it
    /// shows.
    pub(crate) async fn ask<R>(&self, request: R) -> Result<R::Response, Problem>
    where
        R: Request<Response: Shows>,
    {
        let outcome = self.tenure.ask(request).await;
        self.scribe.heard(R::NAME, &outcome);
        let response = outcome?;
        let leases = response.leases();
        // Values are there twice while the text of the response is made.
        let shown = match response_budget::reserve(2 * response.text_bytes()).await {
            Ok(()) => fetched(response).await,
            Err(problem) => Err(problem),
        };
        if shown.is_err() && !leases.is_empty() {
            // Its worker does not read, so it gets no work. No caller waits for the release.
            let releases = leases.into_iter().map(ReleaseTask::from).collect();
            let report = ReportTasks { releases, ..ReportTasks::default() };
            drop(self.tenure.ask(report));
        }
        shown
    }

    /// Tells streams to end.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Whether the server is about to end.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Hears when streams should end.
    pub(crate) fn stopping(&self) -> Stopping {
        Stopping(self.stop.subscribe())
    }

    /// Takes a place among the subscribers.
    pub(crate) fn subscribe(self: &std::sync::Arc<Self>) -> Result<Subscription, Problem> {
        if self.subscribers.fetch_add(1, Ordering::Relaxed) >= SUBSCRIBERS_MAX {
            self.subscribers.fetch_sub(1, Ordering::Relaxed);
            let detail = format!("{SUBSCRIBERS_MAX} follow live updates already; try again later");
            return Err(Problem::new(Code::Overloaded, detail));
        }
        Ok(Subscription(std::sync::Arc::clone(self)))
    }

    pub(crate) fn subscribers(&self) -> usize {
        self.subscribers.load(Ordering::Relaxed)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.subscribers.fetch_sub(1, Ordering::Relaxed);
    }
}

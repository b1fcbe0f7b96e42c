//! Word for workers that a task of theirs should stop, or that its lease was taken back. Read from
//! what happened, so that it does not matter who wished it or through which door.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tenure_coordinator::{Followed, Position};
use tenure_core::command::LeaseRef;
use tenure_record::codec;
use tenure_record::state::TaskState;
use tenure_record::transition::Transition;
use tokio::sync::broadcast;

use crate::app::App;

/// Words that wait for one stream. One that is slower misses some, and hears of them with its next
/// heartbeat.
const WAITING_MAX: usize = 1_024;
/// So often somebody looks whether anybody still listens.
const LISTENERS_CHECK: Duration = Duration::from_secs(1);

/// A task should stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// Under which lease it runs.
    pub(super) lease: LeaseRef,
    /// The lease is over already.
    pub(super) lost: bool,
}

/// Tells streams which tasks should stop. It costs nothing while there are none.
#[derive(Debug)]
pub(super) struct Stops {
    send: broadcast::Sender<Stop>,
    is_running: Mutex<bool>,
}

impl Default for Stops {
    fn default() -> Self {
        Self { send: broadcast::Sender::new(WAITING_MAX), is_running: Mutex::new(false) }
    }
}

impl Stops {
    /// Listens from now on.
    pub(super) fn listen(app: &Arc<App>) -> broadcast::Receiver<Stop> {
        let stops = &app.streams.stops;
        let mut is_running = stops.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = stops.send.subscribe();
        if !*is_running {
            *is_running = true;
            tokio::spawn(follow(Arc::clone(app)));
        }
        receiver
    }

    /// Whether nobody listens any more, so that the one who reads may go.
    fn may_go(&self) -> bool {
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        *is_running = self.send.receiver_count() > 0;
        !*is_running
    }
}

async fn follow(app: Arc<App>) {
    let stops = &app.streams.stops;
    let mut stop = app.stopping();
    let mut follower = app.tenure.follow(Position::after(app.tenure.last_lsn()));
    loop {
        let ready = poll_fn(|context| match follower.is_ready(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        tokio::select! {
            () = ready => {}
            () = tokio::time::sleep(LISTENERS_CHECK) => {}
            () = stop.told() => return,
        }
        if stops.send.receiver_count() == 0 && stops.may_go() {
            return;
        }
        // Recent frames are in memory, and it follows closely.
        let found = follower.next_where(codec::may_stop_a_task, |_, step| {
            if let Some(stop) = stop_in(step) {
                // Nobody has to listen.
                let _ = stops.send.send(stop);
            }
        });
        match found {
            Ok(Followed::Frame | Followed::UpToDate) => {}
            Ok(Followed::Closed) => return,
            // What was missed comes with the heartbeats.
            Ok(Followed::Trimmed(_)) | Err(_) => {
                follower = app.tenure.follow(Position::after(app.tenure.last_lsn()));
            }
        }
    }
}

fn stop_in(step: &Transition<'_>) -> Option<Stop> {
    let lease_id = step.lease_id.filter(|_| step.from == Some(TaskState::Leased))?;
    let lease = LeaseRef { task_id: step.task_id, lease_id };
    Some(Stop { lease, lost: step.to != TaskState::Leased })
}

//! The writer's way to the log: frames are sent, their outcomes collected, and what they release is
//! answered. Upkeep of the log is done in between.

use tenure_core::command::LeaseRef;
use tenure_log::{Anchor, AppendAt, Batch, Committed, Fault, Log, Maintenance, Outcome};
use tenure_record::id::Lsn;
use tenure_record::time::{Now, Timestamp};

use crate::feed::Feed;
use crate::limits::{
    FRAME_BYTES, FULL_RETRY_MS, INLINE_RECORDS_MAX, MARK_AFTER_MS, UNKNOWN_RETRY_MS,
};
use crate::memory::{Memory, Pool};
use crate::planted::{self, Bug};
use crate::request::Ready;
use crate::respond::Outbox;
use crate::step::Coordinator;
use crate::window::{Held, Sent, Window};

/// The way to the log, and back to callers.
#[derive(Debug)]
pub(crate) struct Commit<L: Log> {
    pub(crate) log: L,
    /// Records that are decided and applied, for the next frame.
    pub(crate) batch: Batch,
    /// Frames that were sent and are not committed yet.
    window: Window,
    /// The last frame that was committed.
    pub(crate) end: Anchor,
    /// Empty batches with room.
    free_batches: Vec<Batch>,
    /// Outcomes that wait until they are durable.
    pub(crate) outbox: Outbox,
    /// Leases that were granted to callers that are gone.
    pub(crate) lost_leases: Vec<LeaseRef>,
    /// Recent frames, for followers.
    pub(crate) feed: Feed,
    pub(crate) epoch: u64,
    /// Log time of the last frame, as long as no mark has followed it.
    unmarked_since: Option<Timestamp>,
    /// No request is served before what is written is durable, whatever the log's durability.
    pub(crate) must_sync: bool,
}

impl<L: Log> Commit<L> {
    /// Goes on after the last record of a log, which is durable.
    pub(crate) fn new(log: L, released: Lsn, must_sync: bool, memory: &Memory) -> Self {
        Self {
            batch: Batch::default(),
            window: Window::new(log.depth()),
            end: log.end(),
            free_batches: Vec::new(),
            outbox: Outbox::new(released, memory.pool(Pool::Outbox).clone()),
            lost_leases: Vec::new(),
            feed: Feed::new(released, memory.pool(Pool::Feed).clone()),
            epoch: log.epoch(),
            unmarked_since: None,
            must_sync,
            log,
        }
    }

    /// Whether another record surely fits the frame, and another outcome may wait.
    pub(crate) fn has_room(&self) -> bool {
        self.batch.payload_bytes() < FRAME_BYTES && self.outbox.has_room()
    }

    /// Whether nothing is with the log that it has not committed.
    pub(crate) fn is_logged(&self) -> bool {
        self.window.is_empty()
    }

    /// Whether everything that was decided is committed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.batch.is_empty() && self.window.is_empty()
    }

    /// Whether there is a frame that the log takes now.
    pub(crate) fn may_send(&self) -> bool {
        !self.batch.is_empty() && self.window.takes(self.batch.payload_bytes())
    }

    /// Delivers an outcome once everything up to the record that it saw is durable.
    pub(crate) fn put(&mut self, seen: Lsn, ready: Ready) {
        self.outbox.put(seen, ready, &mut self.lost_leases);
    }

    /// The frame to send: its records end with the last one that was applied.
    fn next_frame(&mut self, last: Lsn, now: Now) -> (Batch, AppendAt) {
        let empty = self.free_batches.pop().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, empty);
        let first = last.0 + 1 - u64::from(batch.records());
        let append = AppendAt { lsn: tenure_log::Lsn(first), epoch: self.epoch };
        self.window.push(Sent { append, at: now.log });
        self.unmarked_since = Some(now.log);
        (batch, append)
    }

    /// When the log wants something done though no request comes.
    pub(crate) fn next_chore(&mut self) -> Option<Timestamp> {
        if let Some((_, at)) = self.window.retry() {
            return Some(at);
        }
        if !self.window.is_empty() {
            return None;
        }
        let mark = self.unmarked_since.map(|since| since.plus_ms(MARK_AFTER_MS));
        let sync = self.log.maintenance().and_then(|log| log.sync_due_ms()).map(Timestamp);
        [mark, sync].into_iter().flatten().min()
    }
}

impl<L: Log> Coordinator<L> {
    /// Answers what the log has committed.
    pub(crate) fn collect(&mut self, now: Now) -> Result<(), Fault> {
        while self.commit.window.awaits_log()
            && let Some(committed) = self.commit.log.poll()
        {
            self.committed(committed, now)?;
        }
        self.collect_snapshot(now)
    }

    /// Hands the frame to the log. When no other request waits there is nothing to do meanwhile, so
    /// a local log commits it right here, without a hand-over.
    pub(crate) fn send(&mut self, now: Now) -> Result<(), Fault> {
        if !self.commit.may_send() {
            return Ok(());
        }
        let (batch, append) = self.commit.next_frame(self.state.last_lsn(), now);
        let is_small = batch.records() <= INLINE_RECORDS_MAX && self.commit.window.depth() == 1;
        if is_small && self.intake.in_progress.is_empty() && self.inbox.is_empty() {
            let committed = self.commit.log.commit(batch, append, now.log.0);
            return self.committed(committed, now);
        }
        self.commit.log.begin(batch, append, now.log.0);
        Ok(())
    }

    /// The outcome of the oldest frame that the log had.
    fn committed(&mut self, committed: Committed, now: Now) -> Result<(), Fault> {
        let Committed { batch, outcome } = committed;
        let (released, end) = match outcome {
            Outcome::Done { released, end } => (released, end),
            // Nothing was written and nothing was told, so the same frame can be sent again.
            Outcome::Full => {
                self.commit.window.hold(batch, Held::Full, now.log.plus_ms(FULL_RETRY_MS));
                return Ok(());
            }
            // Nothing may be told, and nothing new is sent, before the log has found out.
            Outcome::Unknown => {
                self.commit.window.hold(batch, Held::Unknown, now.log.plus_ms(UNKNOWN_RETRY_MS));
                return Ok(());
            }
            Outcome::Failed(fault) => return Err(fault),
        };
        let sent = self.commit.window.pop();
        self.commit.end = end;
        self.decider.work.frames += 1;
        self.decider.work.records += u64::from(batch.records());
        self.decider.work.bytes += batch.payload_bytes() as u64;
        self.snapshots.logged(batch.frame_bytes());
        self.commit.outbox.release(released, &mut self.commit.lost_leases);
        self.commit.free_batches.extend(self.commit.feed.publish(Lsn(sent.append.lsn.0), batch));
        // A view that waited for this frame may be written now.
        self.begin_snapshot()
    }

    /// Does what the log wants done, if it is time.
    pub(crate) fn do_chores(&mut self, now: Now) -> Result<(), Fault> {
        self.retry(now)?;
        if self.commit.window.is_in_doubt() {
            return Ok(());
        }
        let is_quiet = self.commit.is_quiet();
        let Some(log) = self.commit.log.maintenance() else { return Ok(()) };
        let must_sync =
            self.commit.must_sync && is_quiet && self.intake.internal_commands.is_empty();
        if must_sync || log.sync_due_ms().is_some_and(|due| due <= now.log.0) {
            log.sync()?;
            self.commit.must_sync &= !must_sync;
        }
        self.housekeeping.look_at_room(log, &mut self.snapshots.kept, now);
        self.snapshots.trim(log, now)?;
        if is_quiet
            && self
                .commit
                .unmarked_since
                .is_some_and(|since| since.plus_ms(MARK_AFTER_MS) <= now.log)
        {
            self.commit.unmarked_since = None;
            match log.mark(now.log.0) {
                Err(Fault::Full) => {}
                // Where little is done at a time, most of the log is marks.
                Ok(bytes) if !planted::has(Bug::MarksUncounted) => self.snapshots.logged(bytes),
                marked => drop(marked?),
            }
        }
        Ok(())
    }

    /// Tries again what the log gave back, if it is time.
    fn retry(&mut self, now: Now) -> Result<(), Fault> {
        let Some((why, _)) = self.commit.window.retry().filter(|(_, at)| *at <= now.log) else {
            return Ok(());
        };
        match why {
            // The frames behind it are with the log, which waits for this one.
            Held::Unknown => {
                if let Some((sent, batch)) = self.commit.window.take_held() {
                    self.commit.log.resolve(batch, sent.append, sent.at.0);
                }
            }
            Held::Full if self.commit.window.depth() == 1 => {
                if let Some((sent, batch)) = self.commit.window.take_held() {
                    let committed = self.commit.log.commit(batch, sent.append, sent.at.0);
                    self.committed(committed, now)?;
                }
            }
            Held::Full => {
                while let Some((sent, batch)) = self.commit.window.take_held() {
                    self.commit.log.begin(batch, sent.append, sent.at.0);
                }
            }
        }
        Ok(())
    }
}

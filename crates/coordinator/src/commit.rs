//! The writer's way to the log: frames are sent, their outcomes collected, and what they release is
//! answered. Upkeep of the log is done in between.

use tenure_log::{AppendAt, Committed, Fault, Log, Maintenance, Outcome};
use tenure_record::id::Lsn;
use tenure_record::time::{Now, Timestamp};

use crate::limits::{
    FULL_RETRY_MS, INLINE_RECORDS_MAX, MARK_AFTER_MS, ROOM_CHECK_MS, UNKNOWN_RETRY_MS,
};
use crate::planted::{self, Bug};
use crate::step::Coordinator;
use crate::window::{Held, Sent};

impl<L: Log> Coordinator<L> {
    /// Answers what the log has committed.
    pub(crate) fn collect(&mut self, now: Now) -> Result<(), Fault> {
        while self.window.awaits_log()
            && let Some(committed) = self.log.poll()
        {
            self.committed(committed, now)?;
        }
        self.collect_snapshot(now)
    }

    /// Hands the frame to the log. When no other request waits there is nothing to do meanwhile, so
    /// a local log commits it right here, without a hand-over.
    pub(crate) fn send(&mut self, now: Now) -> Result<(), Fault> {
        if self.batch.is_empty() || !self.window.takes(self.batch.payload_bytes()) {
            return Ok(());
        }
        let batch = std::mem::replace(&mut self.batch, self.emptied.pop().unwrap_or_default());
        let first = self.state.last_lsn().0 + 1 - u64::from(batch.records());
        let append = AppendAt { lsn: tenure_log::Lsn(first), epoch: self.epoch };
        self.window.push(Sent { append, at: now.log });
        self.unmarked_since = Some(now.log);
        let is_small = batch.records() <= INLINE_RECORDS_MAX;
        if self.window.depth() == 1 && is_small && self.taken.is_empty() && self.inbox.is_empty() {
            let committed = self.log.commit(batch, append, now.log.0);
            return self.committed(committed, now);
        }
        self.log.begin(batch, append, now.log.0);
        Ok(())
    }

    /// The outcome of the oldest frame that the log had.
    fn committed(&mut self, committed: Committed, now: Now) -> Result<(), Fault> {
        let Committed { batch, outcome } = committed;
        let (released, end) = match outcome {
            Outcome::Done { released, end } => (released, end),
            // Nothing was written and nothing was told, so the same frame can be sent again.
            Outcome::Full => {
                self.window.hold(batch, Held::Full, now.log.plus_ms(FULL_RETRY_MS));
                return Ok(());
            }
            // Nothing may be told, and nothing new is sent, before the log has found out.
            Outcome::Unknown => {
                self.window.hold(batch, Held::Unknown, now.log.plus_ms(UNKNOWN_RETRY_MS));
                return Ok(());
            }
            Outcome::Failed(fault) => return Err(fault),
        };
        let sent = self.window.pop();
        self.end = end;
        self.work.frames += 1;
        self.work.records += u64::from(batch.records());
        self.work.bytes += batch.payload_bytes() as u64;
        self.snapshots.logged(batch.frame_bytes());
        self.outbox.release(released, &mut self.lost);
        self.emptied.extend(self.feed.publish(Lsn(sent.append.lsn.0), batch));
        // A view that waited for this frame may be written now.
        self.begin_snapshot()
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

    /// Does what the log wants done, if it is time.
    pub(crate) fn do_chores(&mut self, now: Now) -> Result<(), Fault> {
        self.retry(now)?;
        if self.window.is_in_doubt() {
            return Ok(());
        }
        let Some(log) = self.log.maintenance() else { return Ok(()) };
        let is_quiet = self.batch.is_empty() && self.window.is_empty();
        let must_sync = self.must_sync && is_quiet && self.errands.is_empty();
        if must_sync || log.sync_due_ms().is_some_and(|due| due <= now.log.0) {
            log.sync()?;
            self.must_sync &= !must_sync;
        }
        if self.room_seen_at.is_none_or(|at| at.plus_ms(ROOM_CHECK_MS) <= now.log) {
            self.room_seen_at = Some(now.log);
            self.room = log.room();
            self.snapshots.kept.extent = log.extent();
        }
        self.snapshots.trim(log, now)?;
        if is_quiet
            && self.unmarked_since.is_some_and(|since| since.plus_ms(MARK_AFTER_MS) <= now.log)
        {
            self.unmarked_since = None;
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
        let Some((why, _)) = self.window.retry().filter(|(_, at)| *at <= now.log) else {
            return Ok(());
        };
        match why {
            // The frames behind it are with the log, which waits for this one.
            Held::Unknown => {
                if let Some((sent, batch)) = self.window.take_held() {
                    self.log.resolve(batch, sent.append, sent.at.0);
                }
            }
            Held::Full if self.window.depth() == 1 => {
                if let Some((sent, batch)) = self.window.take_held() {
                    let committed = self.log.commit(batch, sent.append, sent.at.0);
                    self.committed(committed, now)?;
                }
            }
            Held::Full => {
                while let Some((sent, batch)) = self.window.take_held() {
                    self.log.begin(batch, sent.append, sent.at.0);
                }
            }
        }
        Ok(())
    }
}

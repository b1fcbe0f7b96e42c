//! Appending to a log in memory, with replies that take time and get lost.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use super::MemoryOptions;
use super::reader::MemoryReader;
use super::storage::{Appended, MemoryStorage};
use crate::batch::Batch;
use crate::fault::Fault;
use crate::frame::{DurabilityMark, FrameKind, FrameStamp};
use crate::interface::{
    AppendAt, Committed, Extent, Keep, Log, Maintenance, Outcome, Room, Trimmed,
};
use crate::lsn::Lsn;
use crate::recovered::Anchor;
use crate::released::Released;
use crate::snapshot::{SnapshotEnd, SnapshotFooter, SnapshotSource, SnapshotSum, SnapshotWork};

/// A log in memory that is open for writing.
#[derive(Debug)]
pub struct MemoryLog {
    storage: MemoryStorage,
    options: MemoryOptions,
    epoch: u64,
    /// The end of the last frame that was begun.
    begun: Anchor,
    /// The end of the last frame that was committed.
    end: Anchor,
    window: VecDeque<InFlight>,
    snapshot: Option<Writing>,
    random: u64,
    unknown: u64,
    most_under_way: usize,
}

/// A frame under way.
#[derive(Debug)]
struct InFlight {
    /// Absent while the sender has it, to resolve its outcome.
    batch: Option<Batch>,
    at: AppendAt,
    /// The end of the log before and after the frame.
    before: Anchor,
    after: Anchor,
    reply: Reply,
    /// Polls until the reply arrives, or is given up.
    polls: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    Arrived(Appended),
    /// Nothing is known about the append.
    Lost,
    /// The sender was told so, and has not asked to resolve it yet.
    Unresolved,
}

/// A snapshot being written.
#[derive(Debug)]
struct Writing {
    anchor: Anchor,
    source: Box<dyn SnapshotSource>,
    bytes: Vec<u8>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Bytes,
    Sum,
}

impl MemoryLog {
    pub(super) fn new(
        storage: MemoryStorage,
        options: MemoryOptions,
        epoch: u64,
        end: Anchor,
    ) -> Self {
        Self {
            storage,
            options,
            epoch,
            begun: end,
            end,
            window: VecDeque::with_capacity(options.depth),
            snapshot: None,
            random: options.seed ^ epoch.wrapping_mul(0x2545_f491_4f6c_dd1d),
            unknown: 0,
            most_under_way: 0,
        }
    }

    /// The number of unknown outcomes that were reported so far.
    #[must_use]
    pub fn unknown_outcomes(&self) -> u64 {
        self.unknown
    }

    /// The largest number of frames that were under way at once.
    #[must_use]
    pub fn most_under_way(&self) -> usize {
        self.most_under_way
    }

    /// Sends a sealed frame to the storage; the reply may get lost, and so may the request.
    fn send(&mut self, at: AppendAt, before: Anchor, frame: &[u8]) -> Reply {
        let is_lost = self.draw(1_000) < self.options.lost_permille;
        if is_lost && self.draw(2) == 0 {
            return Reply::Lost;
        }
        let appended = self.storage.lock().append(at, before.chain, frame);
        if is_lost { Reply::Lost } else { Reply::Arrived(appended) }
    }

    /// A number below `bound`: splitmix64.
    fn draw(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn draw_polls(&mut self) -> u64 {
        self.draw(self.options.delay_polls_max + 1)
    }

    /// The frame at the front has its outcome.
    fn finish(&mut self, outcome: Outcome) -> Option<Committed> {
        let batch = self.window.pop_front()?.batch?;
        Some(Committed { batch, outcome })
    }
}

impl Log for MemoryLog {
    type Reader = MemoryReader;
    type Maintenance = Self;

    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn depth(&self) -> usize {
        self.options.depth
    }

    fn end(&self) -> Anchor {
        self.end
    }

    fn commit(&mut self, batch: Batch, at: AppendAt, at_ms: u64) -> Committed {
        assert!(self.window.is_empty(), "nothing is under way beside a commit");
        self.begin(batch, at, at_ms);
        loop {
            if let Some(committed) = self.poll() {
                return committed;
            }
        }
    }

    fn begin(&mut self, mut batch: Batch, at: AppendAt, at_ms: u64) {
        assert!(self.window.len() < self.options.depth, "no more frames than the depth are begun");
        let before = self.begun;
        let stored = self.storage.lock();
        let stamp = FrameStamp {
            kind: FrameKind::Records,
            first_lsn: at.lsn,
            epoch: at.epoch,
            durable: stored.released(),
            at_ms,
            before: before.chain,
            durability: DurabilityMark::Durable,
        };
        let seed = stored.seed(at.lsn);
        drop(stored);
        let (_, chain) = batch.seal(&stamp, seed);
        let after = Anchor { lsn: Lsn(at.lsn.0 + u64::from(batch.records())).before(), chain };
        let is_next = at == (AppendAt { lsn: before.lsn.next(), epoch: self.epoch });
        let reply = match is_next {
            true => self.send(at, before, batch.frame()),
            false => Reply::Arrived(Appended::Deposed),
        };
        if is_next {
            self.begun = after;
        }
        let polls = self.draw_polls();
        self.window.push_back(InFlight { batch: Some(batch), at, before, after, reply, polls });
        self.most_under_way = self.most_under_way.max(self.window.len());
    }

    fn poll(&mut self) -> Option<Committed> {
        let front = self.window.front_mut()?;
        if front.polls > 0 {
            front.polls -= 1;
            return None;
        }
        let (before, after, at) = (front.before, front.after, front.at);
        match front.reply {
            Reply::Unresolved => None,
            // A gap comes from a frame before it whose request got lost and was sent again since.
            Reply::Lost | Reply::Arrived(Appended::Gap) => {
                front.reply = Reply::Unresolved;
                let batch = front.batch.take()?;
                self.unknown += 1;
                Some(Committed { batch, outcome: Outcome::Unknown })
            }
            Reply::Arrived(Appended::Done) => {
                self.end = after;
                self.storage.lock().release(after.lsn);
                let released = Released::after_commit(after.lsn);
                self.finish(Outcome::Done { released, end: after })
            }
            Reply::Arrived(Appended::Full) => {
                // Whatever their replies say, the frames behind it were not stored either.
                for later in self.window.iter_mut().skip(1) {
                    later.reply = Reply::Arrived(Appended::Full);
                }
                if before.lsn < self.begun.lsn {
                    self.begun = before;
                }
                self.finish(Outcome::Full)
            }
            Reply::Arrived(Appended::Deposed) => {
                let fault = Fault::Deposed { lsn: at.lsn, epoch: at.epoch };
                self.finish(Outcome::Failed(fault))
            }
        }
    }

    fn resolve(&mut self, batch: Batch, at: AppendAt, _: u64) {
        let front = self.window.front().filter(|front| front.reply == Reply::Unresolved);
        let before = front.filter(|front| front.at == at).map(|front| front.before);
        let before = before.expect("the frame whose outcome is unknown is resolved");
        // The storage takes the same bytes at the same place once.
        let reply = self.send(at, before, batch.frame());
        let polls = self.draw_polls();
        if let Some(front) = self.window.front_mut() {
            (front.batch, front.reply, front.polls) = (Some(batch), reply, polls);
        }
    }

    fn maintenance(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    fn reader(&self) -> MemoryReader {
        MemoryReader::new(self.storage.clone())
    }

    fn begin_snapshot(&mut self, work: SnapshotWork) {
        assert!(self.snapshot.is_none(), "one snapshot is under way at a time");
        let SnapshotWork { anchor, source } = work;
        assert!(anchor.lsn <= self.end.lsn, "a snapshot contains committed records only");
        self.snapshot = Some(Writing { anchor, source, bytes: Vec::new(), stage: Stage::Bytes });
    }

    fn poll_snapshot(&mut self) -> Option<SnapshotEnd> {
        let writing = self.snapshot.as_mut()?;
        let sum = match writing.stage {
            Stage::Bytes => match writing.source.next(&mut writing.bytes) {
                Ok(flow) => {
                    if flow.is_break() {
                        writing.stage = Stage::Sum;
                    }
                    return None;
                }
                Err(cause) => Err(cause),
            },
            Stage::Sum => match writing.source.sum() {
                Ok(ControlFlow::Continue(())) => return None,
                Ok(ControlFlow::Break(sum)) => Ok(sum),
                Err(cause) => Err(cause),
            },
        };
        let Writing { anchor: Anchor { lsn, chain }, bytes, .. } = self.snapshot.take()?;
        let sum = match sum {
            Ok(sum) => sum,
            Err(cause) => {
                let fault = Fault::snapshot_source(cause);
                return Some(SnapshotEnd::GivenUp { lsn, fault });
            }
        };
        let mut stored = self.storage.lock();
        if stored.epoch() != self.epoch {
            let fault = Fault::Deposed { lsn, epoch: self.epoch };
            return Some(SnapshotEnd::GivenUp { lsn, fault });
        }
        let SnapshotSum { state_hash, items } = sum;
        let footer = SnapshotFooter { lsn, chain, state_hash, items };
        let size = bytes.len() as u64;
        stored.put_snapshot(footer, bytes);
        Some(SnapshotEnd::Kept { footer, bytes: size })
    }
}

/// Everything that is committed is durable, so nothing here has to wait for a frame.
impl Maintenance for MemoryLog {
    fn sync_due_ms(&self) -> Option<u64> {
        None
    }

    fn sync(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn mark(&mut self, at_ms: u64) -> Result<u64, Fault> {
        self.storage.lock().mark(at_ms);
        Ok(0)
    }

    fn close(&mut self, at_ms: u64) -> Result<(), Fault> {
        assert!(self.window.is_empty(), "a log is closed after its last frame");
        self.storage.lock().mark(at_ms);
        Ok(())
    }

    fn room(&mut self) -> Room {
        self.storage.lock().room()
    }

    fn durable(&self) -> Lsn {
        self.storage.lock().released()
    }

    fn trim(&mut self, before: Lsn, keep: Keep, at_ms: u64) -> Result<Trimmed, Fault> {
        let mut stored = self.storage.lock();
        match stored.epoch() == self.epoch {
            true => Ok(stored.trim(before, keep, at_ms)),
            false => Err(Fault::Deposed { lsn: before, epoch: self.epoch }),
        }
    }

    fn extent(&self) -> Extent {
        self.storage.lock().extent()
    }
}

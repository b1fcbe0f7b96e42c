//! The log on a thread of its own: while one batch is written and synced there, the next one is
//! made here. One batch is under way at a time.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tenure_log::{
    Anchor, AppendAt, Batch, Committed, Extent, Fault, Keep, Log, Lsn, Maintenance, Room,
    SnapshotEnd, SnapshotWork, Trimmed,
};

use crate::disk::Disk;
use crate::job::SnapshotJob;
use crate::reader::Reader;
use crate::snapshot::TEMPORARY;
use crate::writer::Wal;

/// How far a snapshot steps back behind everything else where processors are scarce: it then gets
/// about a tenth of one.
const SNAPSHOT_NICE: i32 = 10;
/// While others write, a snapshot rests so many times as long as it has worked: the disk is theirs.
const SNAPSHOT_RESTS: u32 = 5;
/// And no longer than this at a time.
const SNAPSHOT_REST_MAX: Duration = Duration::from_millis(100);

/// A log that can be synced here, without a hand-over, or over there, beside other work.
#[derive(Debug)]
pub struct LogThread<D: Disk> {
    wal: Arc<Mutex<Wal<D>>>,
    work: Option<SyncSender<Work>>,
    done: Receiver<Committed>,
    thread: Option<JoinHandle<()>>,
    under_way: UnderWay,
    snapshot: Option<SnapshotThread>,
    bell: Bell,
    /// Batches so far; a snapshot looks whether there are more.
    batches: Arc<AtomicU64>,
}

/// Is rung after each batch and each snapshot.
#[derive(Clone)]
struct Bell(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bell")
    }
}

/// A snapshot under way. Dropping it ends it, and waits for that.
#[derive(Debug)]
struct SnapshotThread {
    lsn: Lsn,
    done: Receiver<SnapshotEnd>,
    give_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnderWay {
    Nothing,
    OneBatch,
}

struct Work {
    batch: Batch,
    at: AppendAt,
    at_ms: u64,
}

impl<D: Disk> LogThread<D> {
    /// Gives the log a thread, which calls `on_done` after each batch that was sent to it, and after
    /// each snapshot.
    pub fn start(wal: Wal<D>, on_done: impl Fn() + Send + Sync + 'static) -> io::Result<Self> {
        let bell = Bell(Arc::new(on_done));
        let wal = Arc::new(Mutex::new(wal));
        let (work, to_do) = mpsc::sync_channel::<Work>(1);
        let (tell, done) = mpsc::sync_channel(1);
        let (shared, on_done) = (Arc::clone(&wal), bell.clone());
        let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            while let Ok(Work { batch, at, at_ms }) = to_do.recv() {
                let committed = lock(&shared).commit_at(batch, at, at_ms);
                if tell.send(committed).is_err() {
                    break;
                }
                (on_done.0)();
            }
        })?;
        let under_way = UnderWay::Nothing;
        let (work, thread, snapshot) = (Some(work), Some(thread), None);
        let batches = Arc::default();
        Ok(Self { wal, work, done, thread, under_way, snapshot, bell, batches })
    }

    /// The log itself, for everything else. Waits for what is under way.
    pub fn wal(&self) -> MutexGuard<'_, Wal<D>> {
        lock(&self.wal)
    }

    /// The log while nothing is under way.
    fn idle(&self) -> MutexGuard<'_, Wal<D>> {
        assert_eq!(self.under_way, UnderWay::Nothing, "one batch is under way at a time");
        lock(&self.wal)
    }
}

impl<D: Disk> Log for LogThread<D> {
    type Reader = Reader<D>;
    type Maintenance = Self;

    fn epoch(&self) -> u64 {
        self.wal().epoch()
    }

    fn end(&self) -> Anchor {
        self.wal().end()
    }

    fn commit(&mut self, batch: Batch, at: AppendAt, at_ms: u64) -> Committed {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.idle().commit_at(batch, at, at_ms)
    }

    fn begin(&mut self, batch: Batch, at: AppendAt, at_ms: u64) {
        assert_eq!(self.under_way, UnderWay::Nothing, "one batch is under way at a time");
        self.under_way = UnderWay::OneBatch;
        self.batches.fetch_add(1, Ordering::Relaxed);
        let work = self.work.as_ref().expect("the thread runs as long as this does");
        work.send(Work { batch, at, at_ms }).expect("the thread runs as long as this does");
    }

    fn poll(&mut self) -> Option<Committed> {
        let done = self.done.try_recv().ok()?;
        self.under_way = UnderWay::Nothing;
        Some(done)
    }

    fn maintenance(&mut self) -> Option<&mut Self> {
        match self.under_way {
            UnderWay::Nothing => Some(self),
            UnderWay::OneBatch => None,
        }
    }

    fn reader(&self) -> Reader<D> {
        self.wal().reader()
    }

    fn begin_snapshot(&mut self, work: SnapshotWork) {
        assert!(self.snapshot.is_none(), "one snapshot is under way at a time");
        let wal = self.wal();
        let job = SnapshotJob::new(wal.disk().clone(), wal.log_id(), work);
        drop(wal);
        let batches = Arc::clone(&self.batches);
        self.snapshot = Some(SnapshotThread::start(job, self.bell.clone(), batches));
    }

    fn poll_snapshot(&mut self) -> Option<SnapshotEnd> {
        let running = self.snapshot.as_ref()?;
        let end = match running.done.try_recv() {
            Ok(end) => end,
            Err(TryRecvError::Empty) => return None,
            // The system gave it no thread.
            Err(TryRecvError::Disconnected) => {
                let fault = Fault::io("start a thread for", TEMPORARY, io::ErrorKind::Other.into());
                SnapshotEnd::GivenUp { lsn: running.lsn, fault }
            }
        };
        self.snapshot = None;
        Some(end)
    }
}

impl<D: Disk> Maintenance for LogThread<D> {
    fn sync_due_ms(&self) -> Option<u64> {
        self.idle().sync_due_ms()
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.idle().sync().map(drop)
    }

    fn mark(&mut self, at_ms: u64) -> Result<u64, Fault> {
        Maintenance::mark(&mut *self.idle(), at_ms)
    }

    fn close(&mut self, at_ms: u64) -> Result<(), Fault> {
        self.idle().close(at_ms)
    }

    fn room(&mut self) -> Room {
        self.idle().room()
    }

    fn durable(&self) -> Lsn {
        self.idle().durable()
    }

    fn trim(&mut self, before: Lsn, keep: Keep, at_ms: u64) -> Result<Trimmed, Fault> {
        self.idle().trim_one(before, keep, at_ms)
    }

    fn extent(&self) -> Extent {
        self.idle().extent()
    }
}

impl SnapshotThread {
    fn start<D: Disk>(mut job: SnapshotJob<D>, bell: Bell, batches: Arc<AtomicU64>) -> Self {
        let (tell, done) = mpsc::sync_channel(1);
        let give_up = Arc::new(AtomicBool::new(false));
        let (lsn, stop) = (job.lsn(), Arc::clone(&give_up));
        let run = move || {
            // For this thread alone. Where it is not allowed, the snapshot is only less polite.
            let _ = rustix::process::nice(SNAPSHOT_NICE);
            let end = loop {
                if stop.load(Ordering::Relaxed) {
                    let stopped = io::ErrorKind::Interrupted.into();
                    break job.give_up(Fault::io("go on with", TEMPORARY, stopped));
                }
                let (begin, before) = (Instant::now(), batches.load(Ordering::Relaxed));
                if let Some(end) = job.step() {
                    break end;
                }
                if batches.load(Ordering::Relaxed) != before {
                    std::thread::sleep((begin.elapsed() * SNAPSHOT_RESTS).min(SNAPSHOT_REST_MAX));
                }
            };
            // What only the snapshot still held is given back here, and not by the writer.
            drop(job);
            if tell.send(end).is_ok() {
                (bell.0)();
            }
        };
        let thread = std::thread::Builder::new().name("snapshot".to_owned()).spawn(run);
        Self { lsn, done, give_up, thread: thread.ok() }
    }
}

impl Drop for SnapshotThread {
    fn drop(&mut self) {
        self.give_up.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The folder is not free for others while it is being written to.
            let _ = thread.join();
        }
    }
}

impl<D: Disk> Drop for LogThread<D> {
    fn drop(&mut self) {
        drop(self.snapshot.take());
        drop(self.work.take());
        if let Some(thread) = self.thread.take() {
            // It ends with its channel; a panic over there was told there.
            let _ = thread.join();
        }
    }
}

fn lock<D: Disk>(wal: &Mutex<Wal<D>>) -> MutexGuard<'_, Wal<D>> {
    wal.lock().unwrap_or_else(PoisonError::into_inner)
}

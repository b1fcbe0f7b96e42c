//! The log on a thread of its own: while one batch is written and synced there, the next one is
//! made here. One batch is under way at a time.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::Lsn;
use crate::disk::Disk;
use crate::fault::Fault;
use crate::frame::Batch;
use crate::log::{Committed, Log, Place, ReadLog, WriteSnapshot};
use crate::reader::{Read, Reader};
use crate::recover::Anchor;
use crate::snapshot::{Footer, SnapshotWriter};
use crate::spare::Room;
use crate::writer::Wal;

/// A log that can be synced here, without a hand-over, or over there, beside other work.
#[derive(Debug)]
pub struct LogThread<D: Disk> {
    wal: Arc<Mutex<Wal<D>>>,
    work: Option<SyncSender<Work>>,
    done: Receiver<Committed>,
    thread: Option<JoinHandle<()>>,
    under_way: UnderWay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnderWay {
    Nothing,
    OneBatch,
}

struct Work {
    batch: Batch,
    place: Place,
    at_ms: u64,
}

impl<D: Disk> LogThread<D> {
    /// Gives the log a thread, which calls `on_done` after each batch that was sent to it.
    pub fn start(wal: Wal<D>, on_done: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let wal = Arc::new(Mutex::new(wal));
        let (work, to_do) = mpsc::sync_channel::<Work>(1);
        let (tell, done) = mpsc::sync_channel(1);
        let shared = Arc::clone(&wal);
        let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            while let Ok(Work { batch, place, at_ms }) = to_do.recv() {
                let committed = lock(&shared).commit_at(batch, place, at_ms);
                if tell.send(committed).is_err() {
                    break;
                }
                on_done();
            }
        })?;
        let under_way = UnderWay::Nothing;
        Ok(Self { wal, work: Some(work), done, thread: Some(thread), under_way })
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
    type Snapshot = SnapshotWriter<D>;

    fn epoch(&self) -> u64 {
        self.wal().epoch()
    }

    fn end(&self) -> Anchor {
        let wal = self.idle();
        Anchor { lsn: wal.written(), chain: wal.chain() }
    }

    fn commit(&mut self, batch: Batch, place: Place, at_ms: u64) -> Committed {
        self.idle().commit_at(batch, place, at_ms)
    }

    fn begin(&mut self, batch: Batch, place: Place, at_ms: u64) {
        assert_eq!(self.under_way, UnderWay::Nothing, "one batch is under way at a time");
        self.under_way = UnderWay::OneBatch;
        let work = self.work.as_ref().expect("the thread runs as long as this does");
        work.send(Work { batch, place, at_ms }).expect("the thread runs as long as this does");
    }

    fn poll(&mut self) -> Option<Committed> {
        let done = self.done.try_recv().ok()?;
        self.under_way = UnderWay::Nothing;
        Some(done)
    }

    fn sync_due_ms(&self) -> Option<u64> {
        self.idle().sync_due_ms()
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.idle().sync().map(drop)
    }

    fn mark(&mut self, at_ms: u64) -> Result<(), Fault> {
        self.idle().mark(at_ms)
    }

    fn close(&mut self, at_ms: u64) -> Result<(), Fault> {
        self.idle().close(at_ms)
    }

    fn room(&mut self) -> Room {
        self.idle().room()
    }

    fn reader(&self) -> Reader<D> {
        self.wal().reader()
    }

    fn snapshot(&self, lsn: Lsn) -> Result<SnapshotWriter<D>, Fault> {
        let wal = self.wal();
        SnapshotWriter::create(wal.disk(), wal.log_id(), lsn)
    }

    fn trim(&mut self, before: Lsn) -> Result<(), Fault> {
        self.idle().trim(before)
    }
}

impl<D: Disk> ReadLog for Reader<D> {
    fn seek(&mut self, lsn: Lsn) {
        Reader::seek(self, lsn);
    }

    fn read(&mut self) -> Result<Read<'_>, Fault> {
        Reader::read(self)
    }
}

impl<D: Disk> WriteSnapshot for SnapshotWriter<D> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        SnapshotWriter::write(self, bytes)
    }

    fn finish(self, footer: &Footer) -> Result<(), Fault> {
        SnapshotWriter::finish(self, footer)
    }
}

impl<D: Disk> Drop for LogThread<D> {
    fn drop(&mut self) {
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

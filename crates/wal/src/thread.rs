//! The log on a thread of its own: while one batch is written and synced there, the next one is
//! made here. One batch is under way at a time.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::disk::Disk;
use crate::fault::Fault;
use crate::frame::Batch;
use crate::writer::{Released, Wal};

/// A log that can be synced here, without a hand-over, or over there, beside other work.
#[derive(Debug)]
pub struct LogThread<D: Disk> {
    wal: Arc<Mutex<Wal<D>>>,
    work: Option<SyncSender<Work>>,
    done: Receiver<Done>,
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
    at_ms: u64,
}

type Done = (Batch, Result<Released, Fault>);

impl<D: Disk> LogThread<D> {
    /// Gives the log a thread.
    pub fn start(wal: Wal<D>) -> std::io::Result<Self> {
        let wal = Arc::new(Mutex::new(wal));
        let (work, to_do) = mpsc::sync_channel::<Work>(1);
        let (tell, done) = mpsc::sync_channel(1);
        let shared = Arc::clone(&wal);
        let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            while let Ok(Work { mut batch, at_ms }) = to_do.recv() {
                let result = commit(&mut lock(&shared), &mut batch, at_ms);
                if tell.send((batch, result)).is_err() {
                    break;
                }
            }
        })?;
        let under_way = UnderWay::Nothing;
        Ok(Self { wal, work: Some(work), done, thread: Some(thread), under_way })
    }

    /// Commits a batch here. For low load: no hand-over, no wait for another thread.
    ///
    /// # Panics
    /// If a batch is under way.
    pub fn commit_here(&mut self, batch: &mut Batch, at_ms: u64) -> Result<Released, Fault> {
        assert_eq!(self.under_way, UnderWay::Nothing, "one batch is under way at a time");
        commit(&mut self.wal(), batch, at_ms)
    }

    /// Sends a batch to be committed; [`LogThread::finish`] tells when it is.
    ///
    /// # Panics
    /// If one is under way already.
    pub fn begin(&mut self, batch: Batch, at_ms: u64) {
        assert_eq!(self.under_way, UnderWay::Nothing, "one batch is under way at a time");
        self.under_way = UnderWay::OneBatch;
        let work = self.work.as_ref().expect("the thread runs as long as this does");
        work.send(Work { batch, at_ms }).expect("the thread runs as long as this does");
    }

    /// Waits for the batch under way. Gives it back, for its room, and what became of it.
    ///
    /// # Panics
    /// If none is under way.
    pub fn finish(&mut self) -> (Batch, Result<Released, Fault>) {
        assert_eq!(self.under_way, UnderWay::OneBatch, "something must be under way");
        self.under_way = UnderWay::Nothing;
        self.done.recv().expect("the thread answers every batch")
    }

    /// The same, if it is there already.
    pub fn poll(&mut self) -> Option<(Batch, Result<Released, Fault>)> {
        let done = self.done.try_recv().ok()?;
        self.under_way = UnderWay::Nothing;
        Some(done)
    }

    /// The log itself, for everything else. Waits for what is under way.
    pub fn wal(&self) -> MutexGuard<'_, Wal<D>> {
        lock(&self.wal)
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

fn commit<D: Disk>(wal: &mut Wal<D>, batch: &mut Batch, at_ms: u64) -> Result<Released, Fault> {
    let released = wal.commit(batch, at_ms)?;
    batch.clear();
    Ok(released)
}

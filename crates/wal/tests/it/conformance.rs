//! The log on the real disk keeps what every log must keep: on its own thread, and committed by the
//! caller's thread (the laws use both ways).

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tenure_log::conformance::{Harness, Support, Takeover};
use tenure_log::{Fault, Lsn, conformance_tests};
use tenure_wal::disk::real::RealDisk;
use tenure_wal::{Claim, LogThread, Options, Wal, snapshot};

/// A few frames fit a segment.
const SEGMENT_BYTES: u64 = 32 << 10;
/// A bell that rang for something else is not waited for longer than this.
const WAIT: Duration = Duration::from_millis(20);

/// A folder of its own, which goes away with it.
struct Folder {
    path: PathBuf,
    ring: Sender<()>,
    bell: Receiver<()>,
    starts: u128,
}

impl Folder {
    fn new() -> Self {
        static FOLDERS: AtomicU64 = AtomicU64::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenure-conformance-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let (ring, bell) = channel();
        Self { path, ring, bell, starts: 0 }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Harness for Folder {
    type Claim = Claim<RealDisk>;
    type Log = LogThread<RealDisk>;

    fn claim(&mut self) -> Result<Claim<RealDisk>, Fault> {
        self.starts += 1;
        let disk = RealDisk::open(&self.path).unwrap();
        let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::new(self.starts) };
        Claim::new(&disk, options)
    }

    fn start(&mut self, log: Wal<RealDisk>) -> LogThread<RealDisk> {
        let ring = self.ring.clone();
        let on_done = move || {
            // After the test nothing listens any more.
            let _ = ring.send(());
        };
        LogThread::start(log, on_done).unwrap()
    }

    fn takeover(&self) -> Takeover {
        Takeover::Locked
    }

    fn wait(&mut self) {
        let _ = self.bell.recv_timeout(WAIT);
    }

    fn fill(&mut self) -> Support {
        // `full_disk.rs` does it on a disk of its own.
        Support::NotSupported
    }

    fn make_room(&mut self) {}

    fn damage_snapshot(&mut self, lsn: Lsn) {
        let path = self.path.join(snapshot::file_name(lsn));
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
}

conformance_tests!(Folder::new());

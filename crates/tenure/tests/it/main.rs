//! The library on the real disk: calls, workers, watching and backups.
#![allow(clippy::unwrap_used, clippy::panic)]

mod calls;
mod executor;
mod spilled;
mod workers;
mod workers_async;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tenure::Tenure;

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenure-embedded-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn open(&self) -> Tenure {
        Tenure::open(&self.0).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

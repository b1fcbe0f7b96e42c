//! The folder that is measured in, and what its disk can do alone.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A folder that goes away with this.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let base =
            std::env::var_os("TENURE_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = base.join(format!("tenure-bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the bench folder can be made");
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Bare writes of 200 bytes with a sync after each, into a file that was written before: how many
/// a second.
pub(crate) fn syncs_per_s(folder: &Folder, span: Duration) -> f64 {
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .open(folder.path().join("probe"))
        .expect("a file can be made");
    file.write_all_at(&vec![0; 8 << 20], 0).expect("there is room");
    file.sync_all().expect("it syncs");
    let (start, mut done) = (Instant::now(), 0_u64);
    while start.elapsed() < span {
        file.write_all_at(&[1; 200], done * 200 % (8 << 20)).expect("the disk works");
        file.sync_data().expect("the disk works");
        done += 1;
    }
    done as f64 / start.elapsed().as_secs_f64()
}

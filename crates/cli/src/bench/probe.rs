//! What the disk can do by itself: small writes, each made durable. A figure without it says little,
//! as most of a figure is the disk.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::failure::Failure;

const WRITE_BYTES: u64 = 4 << 10;
const FILE_BYTES: u64 = 4 << 20;
const TIME: Duration = Duration::from_secs(1);

/// Writes of 4 KiB, each followed by an fdatasync.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// How long each took, sorted.
    us: Vec<u32>,
}

impl Disk {
    pub(super) fn with(mut self, mut other: Self) -> Self {
        self.us.append(&mut other.us);
        self.us.sort_unstable();
        self
    }

    fn p50(&self) -> u32 {
        self.us.get(self.us.len() / 2).copied().unwrap_or_default()
    }

    fn per_s(&self) -> f64 {
        let all: f64 = self.us.iter().map(|us| f64::from(*us)).sum();
        self.us.len() as f64 * 1e6 / all.max(1.0)
    }

    pub(super) fn as_json(&self) -> Value {
        json!({"sync_us_p50": self.p50(), "syncs_per_s": self.per_s().round()})
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (per_s, p50) = (self.per_s(), self.p50());
        write!(f, "{per_s:.0} writes of 4 KiB with fdatasync a second by itself, p50 {p50} µs")
    }
}

/// Measures the disk under a folder for a second.
pub(super) fn measure(folder: &Path) -> Result<Disk, Failure> {
    let path = folder.join(format!("bench-probe-{}", std::process::id()));
    let measured = measure_file(&path);
    // If it is not there, it was not made.
    let _ = fs::remove_file(&path);
    measured.map_err(|error| Failure::Probe { folder: folder.to_owned(), error })
}

fn measure_file(path: &Path) -> std::io::Result<Disk> {
    let file = File::create_new(path)?;
    let zeros = vec![0; FILE_BYTES as usize];
    file.write_all_at(&zeros, 0)?;
    file.sync_all()?;
    let block = vec![1; WRITE_BYTES as usize];
    let (start, mut us) = (Instant::now(), Vec::new());
    while start.elapsed() < TIME {
        let offset = us.len() as u64 * WRITE_BYTES % FILE_BYTES;
        let begun = Instant::now();
        file.write_all_at(&block, offset)?;
        file.sync_data()?;
        us.push(u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    us.sort_unstable();
    Ok(Disk { us })
}

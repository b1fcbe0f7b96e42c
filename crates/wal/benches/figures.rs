//! The log beside the bare disk, in one run: appends in sync mode with many or few callers, large
//! frames, and a scan. `cargo bench -p tenure-wal` runs it; `TENURE_BENCH_DIR` says on which disk.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tenure_log::Batch;
use tenure_wal::disk::real::RealDisk;
use tenure_wal::{Options, Wal};

const RECORD: [u8; 100] = [0x5a; 100];
const ROUND: Duration = Duration::from_millis(700);
const ROUNDS: usize = 5;
/// How much of the disk is tried on its own.
const PROBE_BYTES: usize = 256 << 20;
/// Large frames for about four segments.
const WARM_UP_FRAMES: usize = 60;
/// What a frame adds to each record, and once.
const RECORD_PREFIX: usize = 4;
const FRAME_HEADER: usize = 88;

fn main() {
    let base = std::env::var_os("TENURE_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = base.join(format!("tenure-wal-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the bench folder can be made");
    probe(&folder);
    println!("each line: the log, the bare disk, and their ratio; medians of {ROUNDS} rounds");
    for callers in [1, 16, 256, 4_096] {
        appends(&folder, callers);
    }
    large_frames(&folder, Retention::Trims);
    large_frames(&folder, Retention::Grows);
    scan(&folder);
    std::fs::remove_dir_all(&folder).expect("the bench folder can be removed");
}

fn options() -> Options {
    Options::new(1)
}

fn fresh_log(folder: &Path) -> Wal<RealDisk> {
    let log = folder.join("log");
    let _ = std::fs::remove_dir_all(&log);
    let disk = RealDisk::open(log).expect("the log's folder can be made");
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).expect("a new log opens");
    wal.prepare().expect("there is room");
    wal
}

/// A file as the log's segments are: all of it written once.
fn bare_file(folder: &Path, bytes: usize) -> File {
    let path = folder.join("bare");
    let file = OpenOptions::new().create(true).write(true).truncate(true).open(path);
    let file = file.expect("the bare file can be made");
    fill_with_zeros(&file, bytes);
    file
}

fn fill_with_zeros(file: &File, bytes: usize) {
    let zeros = vec![0; 1 << 20];
    for at in 0..bytes.div_ceil(zeros.len()) {
        file.write_all_at(&zeros, (at * zeros.len()) as u64).expect("there is room");
    }
    file.sync_all().expect("it syncs");
}

/// What the disk itself does, without which the other figures say little.
fn probe(folder: &Path) {
    let start = Instant::now();
    let file = bare_file(folder, PROBE_BYTES);
    let fill = start.elapsed().as_secs_f64();
    let start = Instant::now();
    fill_with_zeros(&file, PROBE_BYTES);
    let refill = start.elapsed().as_secs_f64();
    let (page, mut at) = ([1; 4_096], 0);
    let syncs = median((0..ROUNDS).map(|_| {
        rate(|| {
            file.write_all_at(&page, at % PROBE_BYTES as u64).expect("the disk works");
            file.sync_data().expect("the disk works");
            at += page.len() as u64;
        })
    }));
    let megabytes = PROBE_BYTES as f64 / 1e6;
    println!(
        "the bare disk: {syncs:.0} writes of 4 KiB + fdatasync/s, zeros into a new file {:.0} MB/s, in place {:.0} MB/s",
        megabytes / fill,
        megabytes / refill
    );
}

/// Each caller has one record on its way, so a frame has one from each.
fn appends(folder: &Path, callers: usize) {
    let mut wal = fresh_log(folder);
    let frame = (FRAME_HEADER + callers * (RECORD_PREFIX + RECORD.len())).next_multiple_of(8);
    let bare = bare_file(folder, 64 << 20);
    let (mut batch, mut offset, bytes) = (Batch::default(), 0, vec![1; frame]);
    let (mut log_rates, mut bare_rates) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        log_rates.push(rate(|| {
            batch.clear();
            for _ in 0..callers {
                batch.push(|out| out.extend_from_slice(&RECORD));
            }
            wal.commit(&mut batch, 1).expect("the disk works");
        }));
        bare_rates.push(rate(|| {
            if offset + frame > 64 << 20 {
                offset = 0;
            }
            bare.write_all_at(&bytes, offset as u64).expect("the disk works");
            bare.sync_data().expect("the disk works");
            offset += frame;
        }));
    }
    let (log, bare) = (median(log_rates), median(bare_rates));
    let (records, megabytes) = (log * callers as f64, log * frame as f64 / 1e6);
    println!(
        "{callers:>5} callers: {log:>7.0} syncs/s  {bare:>7.0} syncs/s  {:.2}   {records:>9.0} records/s {megabytes:>7.1} MB/s",
        log / bare
    );
}

/// What becomes of old segments while large frames are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retention {
    /// Those that a snapshot has made needless go at once, and their files are used again.
    Trims,
    /// They all stay, and each new one takes new room.
    Grows,
}

fn large_frames(folder: &Path, retention: Retention) {
    let records = 40_000;
    let payload = records * (RECORD_PREFIX + RECORD.len());
    let mut wal = fresh_log(folder);
    let bare = bare_file(folder, 64 << 20);
    let (mut batch, mut at, bytes) = (Batch::default(), 0, vec![1; payload]);
    let (mut log_rates, mut bare_rates) = (Vec::new(), Vec::new());
    let mut commit = || {
        // The frame is filled outside the clock: that is the coordinator's work.
        batch.clear();
        for _ in 0..records {
            batch.push(|out| out.extend_from_slice(&RECORD));
        }
        let start = Instant::now();
        wal.commit(&mut batch, 1).expect("the disk works");
        if retention == Retention::Trims {
            wal.trim(wal.durable()).expect("the disk works");
        }
        start.elapsed()
    };
    if retention == Retention::Trims {
        // A log in use has its files already.
        for _ in 0..WARM_UP_FRAMES {
            commit();
        }
    }
    for _ in 0..ROUNDS {
        let mut spent = Duration::ZERO;
        let mut done = 0_u32;
        while spent < ROUND {
            spent += commit();
            done += 1;
        }
        log_rates.push(f64::from(done) / spent.as_secs_f64());
        bare_rates.push(rate(|| {
            bare.write_all_at(&bytes, (at % 15) * payload as u64).expect("the disk works");
            bare.sync_data().expect("the disk works");
            at += 1;
        }));
    }
    let (log, bare) = (median(log_rates), median(bare_rates));
    let megabytes = payload as f64 / 1e6;
    let what = match retention {
        Retention::Trims => "old segments trimmed",
        Retention::Grows => "the log grows",
    };
    println!(
        "large frames, {what}: {:>7.1} MB/s {:>7.1} MB/s  {:.2}   {:>9.0} records/s",
        log * megabytes,
        bare * megabytes,
        log / bare,
        log * records as f64
    );
}

/// Reading and checking everything, as a start does, from a warm file.
fn scan(folder: &Path) {
    for (callers, frames) in [(256, 20_000), (4_096, 1_500)] {
        let mut wal = fresh_log(folder);
        let mut batch = Batch::default();
        let relaxed = folder.join("log");
        for _ in 0..frames {
            batch.clear();
            for _ in 0..callers {
                batch.push(|out| out.extend_from_slice(&RECORD));
            }
            wal.append(&mut batch, 1).expect("the disk works");
            wal.sync().expect("the disk works");
        }
        drop(wal);
        let disk = RealDisk::open(&relaxed).expect("it is there");
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            let (mut bytes, mut records) = (0, 0_u64);
            let start = Instant::now();
            let visit = |frame: &tenure_log::Frame<'_>| {
                bytes += frame.header.frame_bytes();
                records += u64::from(frame.header.records);
            };
            let opened = Wal::open(&disk, options(), None, visit).expect("it is sound");
            // Closing waits for the spare segment in the making: that is no part of a scan.
            let spent = start.elapsed();
            drop(opened);
            rates.push(bytes as f64 / spent.as_secs_f64() / 1e9);
            assert_eq!(records, callers as u64 * frames);
        }
        println!("scan, {callers} records a frame: {:.2} GB/s", median(rates));
    }
}

/// How often a second `work` is done.
fn rate(mut work: impl FnMut()) -> f64 {
    let (start, mut done) = (Instant::now(), 0_u32);
    while start.elapsed() < ROUND {
        work();
        done += 1;
    }
    f64::from(done) / start.elapsed().as_secs_f64()
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

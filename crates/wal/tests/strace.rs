//! The same on a real disk: `strace` makes the Nth call of a kind fail, or kills the process in it.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{BATCHES, append, open, options, record};
use tenure_wal::Wal;
use tenure_wal::disk::real::RealDisk;

/// Tells the process that it is the one to be disturbed, and where it is to write.
const FOLDER: &str = "TENURE_WAL_STRACE_FOLDER";
const ACKNOWLEDGED: &str = "acknowledged ";
/// The most calls of one kind that are disturbed, one after the other.
const CALLS_MAX: u64 = 40;

/// Appends and says what is durable, until it is done or something fails. Does nothing in an
/// ordinary run.
#[test]
fn disturbed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let disk = RealDisk::open(PathBuf::from(folder)).unwrap();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    println!("opened");
    for count in BATCHES {
        append(&mut wal, count).unwrap();
        println!("{ACKNOWLEDGED}{}", wal.sync().unwrap().lsn());
    }
    wal.mark(9_000).unwrap();
    println!("whole");
}

fn disturb(folder: &Path, inject: &str) -> Output {
    let call = inject.split(':').next().unwrap();
    Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"])
        .arg(format!("inject={inject}"))
        .arg("-P")
        .arg(folder)
        .args((1..=4).flat_map(|n| ["-P".into(), folder.join(support::image::segment_name(n))]))
        .arg("-P")
        .arg(folder.join("spare.tmp"))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "disturbed", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        // A backtrace of each planned end would take ten times as long as the rest.
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap()
}

/// What the process said before it ended, and whether it came to its end.
fn said(output: &Output) -> (u64, bool) {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.lines().filter_map(|line| line.strip_prefix(ACKNOWLEDGED)?.parse().ok());
    (numbers.next_back().unwrap_or(0), text.lines().any(|line| line == "whole"))
}

/// Why there is nothing to disturb with, if there is not.
fn missing() -> Option<String> {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn no_failing_or_deadly_call_loses_what_was_acknowledged() {
    if let Some(why) = missing() {
        let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "under CI this must run: {why}");
        println!("SKIPPED: strace cannot be used: {why}");
        return;
    }
    let root = std::env::temp_dir().join(format!("tenure-wal-strace-{}", std::process::id()));
    std::fs::create_dir(&root).unwrap();
    let mut runs = 0;
    for call in ["fdatasync", "fsync", "pwrite64", "rename"] {
        for how in ["error=EIO", "error=ENOSPC", "signal=KILL"] {
            let mut disturbed = 0;
            for when in 1..=CALLS_MAX {
                let what = format!("{call}:{how}:when={when}");
                let folder = root.join(format!("{call}-{when}"));
                let output = disturb(&folder, &what);
                let (acknowledged, whole) = said(&output);
                check(&folder, acknowledged, &what);
                std::fs::remove_dir_all(&folder).unwrap();
                runs += 1;
                if output.status.success() && whole {
                    // There is no such call any more.
                    break;
                }
                disturbed += 1;
            }
            println!("{call}, {how}: {disturbed} runs were disturbed");
            assert!(disturbed > 0, "{call} is never called");
        }
    }
    std::fs::remove_dir_all(&root).unwrap();
    println!("{runs} runs");
}

fn check(folder: &Path, acknowledged: u64, what: &str) {
    let disk = RealDisk::open(folder).unwrap();
    let (mut wal, _, records) = open(&disk).unwrap_or_else(|fault| unreachable!("{what}: {fault}"));
    let last = records.len() as u64;
    assert!(last >= acknowledged, "{what}: {acknowledged} acknowledged, {last} left");
    assert!((1..).zip(&records).all(|(lsn, bytes)| *bytes == record(lsn)), "{what}");
    append(&mut wal, 2).unwrap();
    wal.sync().unwrap();
    drop(wal);
    assert_eq!(open(&disk).unwrap().2.len() as u64, last + 2, "{what}");
}

//! T5: the power is cut under a server that is busy or recovers, on a file system of its own, and
//! what was not synced is gone. P1: nothing that was acknowledged is lost. P2: nothing that was seen
//! is undone. P3: what got no answer is wholly there or not at all. P13: a write that failed ends it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod evidence;
mod oracle;
mod server;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oracle::{Client, Does, Oracle, Watcher};
use server::{Server, folder_of};

const CLIENTS: usize = 4;
/// How many cuts there are, unless told.
const CUTS: u64 = 10;
const CUTS_VARIABLE: &str = "TENURE_POWER_CUTS";
/// Cuts on one disk with one oracle; then both begin anew, so that the last cut is as quick as the first.
const CUTS_OF_A_LIFE: u64 = 20;
/// The image of the disk has holes until it is written to.
const DISK_BYTES: u64 = 4 << 30;
/// The exit code of a server whose log cannot be written.
const WRITE_FAILED: i32 = 74;
/// `EXT4_IOC_SHUTDOWN` without a flush of the journal, when a line comes. No safe call of Rust has it.
const CUT: &str = "import fcntl, os, struct, sys; disk = os.open(sys.argv[1], os.O_RDONLY); \
    print('armed', flush=True); sys.stdin.readline(); \
    fcntl.ioctl(disk, 0x8004587d, struct.pack('I', 2))";

/// An ext4 file system whose power can be cut.
struct Disk {
    root: PathBuf,
}

impl Disk {
    fn make(name: &str) -> Result<Self, String> {
        let root = folder_of(name);
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(root.join("mount")).unwrap();
        let disk = Self { root };
        let image = std::fs::File::create(disk.image()).unwrap();
        image.set_len(DISK_BYTES).unwrap();
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(disk.image()))?;
        disk.mount()?;
        Ok(disk)
    }

    fn image(&self) -> PathBuf {
        self.root.join("image")
    }

    fn mounted(&self) -> PathBuf {
        self.root.join("mount")
    }

    /// Where a server has its log.
    fn data(&self) -> PathBuf {
        self.mounted().join("data")
    }

    fn mount(&self) -> Result<(), String> {
        run(Command::new("mount").args(["-o", "loop"]).arg(self.image()).arg(self.mounted()))
    }

    /// Somebody with a hand on the switch.
    fn arm(&self) -> Switch {
        let mut python = Command::new("python3");
        python.args(["-c", CUT]).arg(self.mounted()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut python = python.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(python.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "armed\n");
        Switch(python)
    }

    /// The power is back. What was in memory only is gone.
    fn come_back(&self) {
        run(Command::new("umount").arg(self.mounted())).unwrap();
        self.mount().unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.mounted()).output();
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }
}

/// Cuts the power of a disk, at once.
struct Switch(Child);

impl Switch {
    /// From now on nothing reaches the disk, not even what was written and not synced.
    fn cut(mut self) {
        self.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(self.0.wait().unwrap().success(), "the power is cut");
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(Output { stderr, .. }) => Err(String::from_utf8_lossy(&stderr).into_owned()),
        Err(error) => Err(format!("{}: {error}", command.get_program().display())),
    }
}

/// Whether there can be no such disk here. A program that is missing must be there under CI; a
/// kernel that allows no mounts, as in a plain container, is told loudly.
fn lacks_disks() -> bool {
    static REFUSED: OnceLock<Option<String>> = OnceLock::new();
    if ["mkfs.ext4", "python3", "mount", "umount"].into_iter().any(evidence::lacks) {
        return true;
    }
    let refused = REFUSED.get_or_init(|| Disk::make("power-probe").map(drop).err());
    let Some(why) = refused else { return false };
    const REFUSALS: [&str; 5] =
        ["not permitted", "denied", "superuser", "loop device", "unknown filesystem"];
    let is_refused = REFUSALS.iter().any(|refusal| why.contains(refusal));
    assert!(is_refused, "a disk cannot be made: {why}");
    evidence::skipped(&format!("NO POWER WAS CUT: this kernel lets nobody mount a disk: {why}"));
    true
}

/// What was counted in all lives.
#[derive(Default)]
struct Count {
    cuts: u64,
    while_starting: u64,
    ended_by_itself: u64,
    ok: u64,
    unknown: u64,
    lost: u64,
    undone: u64,
    other: u64,
}

impl Count {
    fn print(&self) {
        let counts = [
            ("power cuts", self.cuts),
            ("lost", self.lost),
            ("undone", self.undone),
            ("other faults", self.other),
            ("acknowledged", self.ok),
            ("unknown", self.unknown),
            ("while starting", self.while_starting),
            ("ended by themselves", self.ended_by_itself),
        ];
        evidence::print("T5", &counts);
    }
}

/// A disk, and the one who remembers what servers on it promised. Its journal is on another disk.
struct Life {
    disk: Disk,
    oracle: Oracle,
    runner: Vec<String>,
}

impl Life {
    fn begin(name: &str, runner: &[&str]) -> Self {
        let disk = Disk::make(name).unwrap();
        let oracle = Oracle::begin(&disk.root.join("book"));
        Self { disk, oracle, runner: runner.iter().map(|word| (*word).to_owned()).collect() }
    }

    fn start(&self) -> Option<Server> {
        Server::start_on(self.disk.data(), &self.runner)
    }

    /// The power goes while clients act.
    fn cut_while_busy(&self, clients: &mut [Client<'_>], span: Duration, count: &mut Count) {
        let mut server = self.start().unwrap();
        let switch = self.disk.arm();
        let stop = AtomicBool::new(false);
        let address = server.address.clone();
        let watcher = Watcher { oracle: &self.oracle, number: 0 };
        std::thread::scope(|scope| {
            for client in clients {
                scope.spawn(|| client.work(&address, &stop, usize::MAX));
            }
            scope.spawn(|| watcher.follow(&address));
            std::thread::sleep(span);
            switch.cut();
            count.ended_by_itself += u64::from(has_given_up(&mut server));
            stop.store(true, Ordering::Relaxed);
            server.kill();
        });
        server.keep_folder();
        self.disk.come_back();
    }

    /// The power goes again while the log is recovered. Says whether that was before it was ready.
    fn cut_while_starting(&self, span: Duration) -> bool {
        let switch = self.disk.arm();
        let was_ready = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(span);
                switch.cut();
            });
            match self.start() {
                None => false,
                Some(mut server) => {
                    server.kill();
                    server.keep_folder();
                    true
                }
            }
        });
        self.disk.come_back();
        !was_ready
    }

    /// What the oracle says of a server that wakes up.
    fn judge(&self) -> Result<(), String> {
        let mut server = self.start().expect("it starts after a power cut");
        let verdict = self.oracle.check(&server.address);
        server.kill();
        let folder = server.keep_folder();
        verdict.and_then(|()| verify(&folder))
    }
}

/// P13: a server that cannot write any more ends by itself, and says why.
fn has_given_up(server: &mut Server) -> bool {
    let cut_at = Instant::now();
    while cut_at.elapsed() < Duration::from_secs(5) {
        if let Some(code) = server.exit_code() {
            assert_eq!(code, WRITE_FAILED, "a failed write has its exit code");
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

fn verify(folder: &Path) -> Result<(), String> {
    let mut verify = Command::new(env!("CARGO_BIN_EXE_tenure"));
    run(verify.args(["wal", "verify", "--data"]).arg(folder))
}

/// Cuts the power again and again on one disk.
fn live(number: u64, cuts: u64, all: u64, count: &mut Count) {
    let life = Life::begin(&format!("power-{number}"), &[]);
    let named = |n: usize| format!("client-{n}");
    let client = |n: usize| {
        let client = Client::new(&life.oracle, &named(n), number * 31 + n as u64 + 7);
        client.who_does(Does::Runs)
    };
    let mut clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let mut verdict = Ok(());
    for cut in 0..cuts {
        let drawn = (count.cuts + 1) * 7_919;
        // Never the first: there would be nothing to recover.
        if cut % 4 == 3 {
            let was_starting = life.cut_while_starting(Duration::from_millis(drawn % 60));
            count.while_starting += u64::from(was_starting);
        } else {
            life.cut_while_busy(&mut clients, Duration::from_millis(20 + drawn % 300), count);
        }
        count.cuts += 1;
        evidence::progress("power cuts", count.cuts, all);
        verdict = life.judge().map_err(|faults| format!("cut {}: {faults}", count.cuts));
        if verdict.is_err() {
            break;
        }
    }
    let tally = life.oracle.tally();
    count.ok += tally.ok as u64;
    count.unknown += tally.unknown as u64;
    count.lost += tally.lost as u64;
    count.undone += tally.undone as u64;
    count.other += tally.other as u64;
    if let Err(faults) = verdict {
        count.print();
        panic!("{faults}");
    }
}

/// T5; P1, P2, P3, P13.
#[test]
fn no_power_cut_loses_or_undoes_anything() {
    if lacks_disks() {
        return;
    }
    let cuts = evidence::count(CUTS_VARIABLE, CUTS);
    let mut count = Count::default();
    for number in 0.. {
        let rest = cuts - count.cuts;
        if rest == 0 {
            break;
        }
        live(number, rest.min(CUTS_OF_A_LIFE), cuts, &mut count);
    }
    count.print();
    assert!(count.ok > 20 && count.ended_by_itself > 0, "nothing much was promised");
}

/// The test of the test: who replies before anything is synced loses it with the power, and is
/// found out.
#[test]
fn a_server_that_leaves_syncing_to_the_system_is_found_out() {
    if lacks_disks() {
        return;
    }
    let careless = ["sh", "-c", "exec \"$0\" \"$@\" --durability os"];
    let life = Life::begin("power-careless", &careless);
    let mut clients = [Client::new(&life.oracle, "client", 5)];
    life.cut_while_busy(&mut clients, Duration::from_millis(1_000), &mut Count::default());
    let faults = life.judge().unwrap_err();
    assert!(faults.contains("lost") || faults.contains("undone"), "{faults}");
}

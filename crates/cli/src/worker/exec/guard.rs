//! A guard: a process that outlives a worker which is killed, and ends what it has started.
//!
//! The worker tells it through a pipe which groups run. When the worker is gone, however it went,
//! the pipe closes, and what still runs is ended. So no orphan of a killed worker works beside the
//! next attempt. A child that was started just before the end, of which the worker had no time to
//! tell, is known by a mark in its environment. A death signal of the parent (`PR_SET_PDEATHSIG`) would end the leaders only, and
//! cost each task one more exec.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

/// How long orphans may take to end, however long other children may. The next attempt may begin
/// when the worker's stream has been silent for its grace.
const ORPHAN_GRACE_MAX: Duration = Duration::from_secs(1);
/// How often the guard looks whether they are gone.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// By what in their environment the children of a worker are known.
const MARK: &str = "TENURE_WORKER_MARK";

/// What a worker says last that ends in good order: it has told of every child.
const GOODBYE: &str = "bye\n";

/// The worker's end.
#[derive(Debug)]
pub(super) struct Guard {
    process: std::process::Child,
    mark: String,
    /// None when the guard is gone.
    pipe: Mutex<Option<ChildStdin>>,
}

impl Guard {
    /// Starts a guard for this process.
    pub(super) fn start(grace: Duration) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let grace = grace.min(ORPHAN_GRACE_MAX).as_millis().to_string();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mark = format!("{}-{:x}", std::process::id(), since.as_nanos());
        let args = ["worker", "guard", "--grace-ms", &grace, "--mark", &mark];
        command.args(args).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own, so that an interrupt from the keyboard is the worker's alone.
        let mut process = command.process_group(0).spawn()?;
        let pipe = Mutex::new(process.stdin.take());
        Ok(Self { process, mark, pipe })
    }

    /// What the environment of every child must have.
    pub(super) fn mark(&self) -> (&'static str, &str) {
        (MARK, &self.mark)
    }

    /// This group runs now.
    pub(super) fn watch(&self, group: Pid) {
        self.tell('+', group);
    }

    /// This group is no more. To be said before its leader is reaped.
    pub(super) fn forget(&self, group: Pid) {
        self.tell('-', group);
    }

    fn tell(&self, sign: char, group: Pid) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(to) = pipe.as_mut() else { return };
        // One write, so that a death in between cannot tear the line.
        let line = format!("{sign}{}\n", group.as_raw_nonzero());
        if to.write_all(line.as_bytes()).is_err() {
            tracing::warn!(
                "the guard is gone: if this worker is killed, its children are not ended with it"
            );
            *pipe = None;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let pipe = self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut to) = pipe.take() {
            // If it cannot be told, it looks around before it ends.
            let _ = to.write_all(GOODBYE.as_bytes());
        }
        // It ends when its pipe does.
        let _ = self.process.wait();
    }
}

/// The guard's own verb.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    #[arg(long)]
    grace_ms: u64,
    #[arg(long)]
    mark: String,
}

/// Watches until the worker is gone, then ends what it left behind.
pub(crate) fn run(watch: &Watch) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let within = runtime.enter();
    // Whoever stops a whole service also signals us; but first the worker may finish its tasks.
    let _deaf = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()]
        .map(|kind| signal(kind).ok());
    let (mut groups, mut mark) = (BTreeSet::new(), Some(watch.mark.as_str()));
    for line in BufReader::new(io::stdin().lock()).lines() {
        let Ok(line) = line else { break };
        if line == GOODBYE.trim_end() {
            mark = None;
        }
        match read(&line) {
            Some(('+', group)) => drop(groups.insert(group)),
            Some(('-', group)) => drop(groups.remove(&group)),
            Some(_) | None => {}
        }
    }
    drop(within);
    end(groups, Duration::from_millis(watch.grace_ms), mark);
    Ok(())
}

fn read(line: &str) -> Option<(char, i32)> {
    let mut rest = line.chars();
    Some((rest.next()?, rest.as_str().parse().ok()?))
}

/// Ends these groups, and those with the mark if some may not have been told of.
fn end(told: BTreeSet<i32>, grace: Duration, mark: Option<&str>) {
    // One that is gone needs no signal.
    let send = |group: Pid, signal| {
        let _ = kill_process_group(group, signal);
    };
    let mut known = told;
    let mut groups: Vec<_> = known.iter().filter_map(|group| Pid::from_raw(*group)).collect();
    groups.iter().for_each(|group| send(*group, Signal::TERM));
    let until = Instant::now() + grace;
    loop {
        // One that was just being started may show up a little later.
        for group in mark.map(marked).unwrap_or_default() {
            if known.insert(group.as_raw_nonzero().get()) {
                send(group, Signal::TERM);
                groups.push(group);
            }
        }
        groups.retain(|group| test_kill_process_group(*group).is_ok());
        let enough = if mark.is_some() { until - grace / 2 } else { Instant::now() };
        if Instant::now() >= until || groups.is_empty() && Instant::now() >= enough {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    groups.iter().for_each(|group| send(*group, Signal::KILL));
}

/// The groups of processes with this mark.
fn marked(mark: &str) -> Vec<Pid> {
    let wanted = format!("{MARK}={mark}");
    let has_mark = |environment: &[u8]| {
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // Those of others cannot be read, and are none of ours.
    let ours = pids.filter(|pid| {
        std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|found| has_mark(&found))
    });
    // Who has left our session with `setsid` is left alone, as one who has left a group is.
    let session = place(std::process::id()).map(|(_, session)| session);
    let stayed = ours.filter_map(place).filter(|(_, theirs)| Some(*theirs) == session);
    stayed.filter_map(|(group, _)| Pid::from_raw(group)).collect()
}

/// The group and the session of a process. Read, not asked for: in a container the session may
/// have begun outside of it, and is then number 0, which is no process.
fn place(pid: u32) -> Option<(i32, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, spaces and brackets too.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(2).map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn who_was_not_told_of_is_known_by_the_mark() {
        let sleep = |mark: &str| {
            let mut command = Command::new("sleep");
            command.arg("600").env(MARK, mark).process_group(0).spawn().unwrap()
        };
        let mark = format!("test-{}", std::process::id());
        let (mut ours, mut other) = (sleep(&mark), sleep("of-somebody-else"));
        // It has its environment once it has become what it is.
        let until = Instant::now() + Duration::from_secs(60);
        while marked(&mark).is_empty() && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
        end(BTreeSet::new(), Duration::from_millis(100), Some(&mark));
        assert!(!ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none(), "others are left alone");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_line_is_a_sign_and_a_group() {
        assert_eq!(read("+12"), Some(('+', 12)));
        assert_eq!(read("-12"), Some(('-', 12)));
        for wrong in ["", "+", "+x", "12.5"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}

//! A guard: a process that outlives a worker which is killed, and ends what it has started.
//!
//! The worker tells it through a pipe which groups run. When the worker is gone, however it went,
//! the pipe closes, and what still runs is ended. So no orphan of a killed worker works beside the
//! next attempt. A death signal of the parent (`PR_SET_PDEATHSIG`) would end the leaders only, and
//! cost each task one more exec.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

/// How long orphans may take to end, however long other children may. The next attempt may begin
/// when the worker's stream has been silent for its grace.
const ORPHAN_GRACE_MAX: Duration = Duration::from_secs(1);
/// How often the guard looks whether they are gone.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The worker's end.
#[derive(Debug)]
pub(super) struct Guard {
    process: std::process::Child,
    /// None when the guard is gone.
    pipe: Mutex<Option<ChildStdin>>,
}

impl Guard {
    /// Starts a guard for this process.
    pub(super) fn start(grace: Duration) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let grace = grace.min(ORPHAN_GRACE_MAX).as_millis().to_string();
        command.args(["worker", "guard", "--grace-ms", &grace]).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own, so that an interrupt from the keyboard is the worker's alone.
        let mut process = command.process_group(0).spawn()?;
        let pipe = Mutex::new(process.stdin.take());
        Ok(Self { process, pipe })
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
        *self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        // It ends when its pipe does.
        let _ = self.process.wait();
    }
}

/// The guard's own verb.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    #[arg(long)]
    grace_ms: u64,
}

/// Watches until the worker is gone, then ends what it left behind.
pub(crate) fn run(watch: &Watch) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let within = runtime.enter();
    // Whoever stops a whole service also signals us; but first the worker may finish its tasks.
    let _deaf = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()]
        .map(|kind| signal(kind).ok());
    let mut groups = BTreeSet::new();
    for line in BufReader::new(io::stdin().lock()).lines() {
        let Ok(line) = line else { break };
        match read(&line) {
            Some(('+', group)) => drop(groups.insert(group)),
            Some(('-', group)) => drop(groups.remove(&group)),
            Some(_) | None => {}
        }
    }
    drop(within);
    end(groups, Duration::from_millis(watch.grace_ms));
    Ok(())
}

fn read(line: &str) -> Option<(char, i32)> {
    let mut rest = line.chars();
    Some((rest.next()?, rest.as_str().parse().ok()?))
}

fn end(groups: BTreeSet<i32>, grace: Duration) {
    let mut groups: Vec<_> = groups.into_iter().filter_map(Pid::from_raw).collect();
    let send = |groups: &[Pid], signal| {
        for group in groups {
            // One that is gone needs no signal.
            let _ = kill_process_group(*group, signal);
        }
    };
    send(&groups, Signal::TERM);
    let until = Instant::now() + grace;
    loop {
        groups.retain(|group| test_kill_process_group(*group).is_ok());
        if groups.is_empty() || Instant::now() >= until {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    send(&groups, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_sign_and_a_group() {
        assert_eq!(read("+12"), Some(('+', 12)));
        assert_eq!(read("-12"), Some(('-', 12)));
        for wrong in ["", "+", "+x", "12.5"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}

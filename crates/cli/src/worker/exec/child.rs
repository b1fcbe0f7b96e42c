//! A child process and its group. Nothing of it outlives its task.
//!
//! The leader is not reaped before its group was killed. Until then the system gives its number to
//! nobody else, so no signal can hit a stranger.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use tokio::io::unix::AsyncFd;

use super::guard::Guard;
use super::pipes::Pipes;

/// A child that runs, or has ended and was not reaped yet. Its group is killed when this goes.
#[derive(Debug)]
pub(super) struct Child {
    process: Option<std::process::Child>,
    group: Pid,
    guard: Arc<Guard>,
}

/// Tells when the leader has ended, and does not reap it.
#[derive(Debug)]
pub(super) struct Exit(AsyncFd<OwnedFd>);

impl Child {
    /// Starts it as the leader of a group of its own, with a pipe each for stdout and stderr.
    pub(super) fn start(
        command: &mut Command,
        guard: Arc<Guard>,
    ) -> io::Result<(Self, Exit, Pipes)> {
        let mut process = command.process_group(0).spawn()?;
        let group = Pid::from_child(&process);
        guard.watch(group);
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let child = Self { process: Some(process), group, guard };
        let exit = Exit::of(group)?;
        let (stdin, Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the child has no pipes"));
        };
        Ok((child, exit, Pipes::new(stdin, stdout, stderr)?))
    }

    /// Asks the whole group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the whole group, and the leader even if it has gone over to another group.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
        // It is ours and not reaped, so this cannot fail.
        let _ = kill_process(self.group, Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Err(error) = kill_process_group(self.group, signal) {
            // A group whose members have all changed their user is out of our reach.
            tracing::warn!(group = self.group.as_raw_nonzero().get(), "no {signal:?}: {error}");
        }
    }

    /// Ends what is left of the group, and says how its leader ended; none if it has not.
    pub(super) fn reap(mut self) -> Option<ExitStatus> {
        self.kill();
        let mut process = self.process.take()?;
        self.guard.forget(self.group);
        process.try_wait().ok().flatten().or_else(|| {
            // The system still holds it, which nobody can change; its slot is not held up by that.
            reap_later(process);
            None
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            self.kill();
            self.guard.forget(self.group);
            reap_later(process);
        }
    }
}

impl Exit {
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types that may swap or close their \
                                   descriptor; an OwnedFd does neither"
    )]
    fn of(leader: Pid) -> io::Result<Self> {
        Ok(Self(AsyncFd::new(pidfd_open(leader, PidfdFlags::empty())?)?))
    }

    /// Waits until the leader has ended.
    pub(super) async fn reached(&self) {
        if let Err(error) = self.0.readable().await {
            // Only a runtime that is going away says this; then all of this goes away too.
            tracing::debug!("cannot wait for a child: {error}");
            std::future::pending::<()>().await;
        }
    }
}

fn reap_later(mut process: std::process::Child) {
    let reap = move || {
        // A child of ours can be waited for.
        let _ = process.wait();
    };
    // Without a thread for it, it is reaped when this process ends.
    let _ = std::thread::Builder::new().name("reaper".to_owned()).spawn(reap);
}

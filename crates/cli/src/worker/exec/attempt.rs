//! One attempt: a child from its start to its end, whatever it does.

use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tenure_sdk::{Failure, LeasedTask, Output, Stop};
use tokio::time::timeout;

use super::artifacts::Folder;
use super::checkpoint::CheckpointFile;
use super::child::{Child, Exit};
use super::guard::Guard;
use super::payload::Job;
use super::pipes::{Tail, TooLarge};
use super::{Environment, Settings};
use crate::worker::output;

/// How long those that a child leaves behind may hold its stdout or stderr open.
const LINGER_MAX: Duration = Duration::from_secs(2);
/// How long the system may take to end what was killed.
const KILL_MAX: Duration = Duration::from_secs(5);
/// How long pipes are read after that. Somebody who left the group may hold them for ever.
const LAST_READ_MAX: Duration = Duration::from_millis(500);
/// With `--clean-env`, what a child has of the worker's environment.
const CLEAN_ENV: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// Does a task: runs what its payload says.
pub(super) async fn run(
    task: &LeasedTask,
    job: Job,
    settings: &Settings,
    guard: Arc<Guard>,
) -> Result<Output, Failure> {
    let Job { argv, env, stdin, cwd } = job;
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    surround(&mut command, settings.environment, env, task);
    let (name, mark) = guard.mark();
    command.env(name, mark);
    let checkpoint = CheckpointFile::of(task)?;
    command.env("TENURE_CHECKPOINT", checkpoint.path());
    let artifacts = Folder::of(task)?;
    if let Some(artifacts) = &artifacts {
        command.env("TENURE_ARTIFACTS", artifacts.path());
    }
    let folder = match (&settings.cwd, cwd) {
        (Some(base), Some(cwd)) => Some(base.join(cwd)),
        (None, cwd) => cwd,
        (base, None) => base.clone(),
    };
    if let Some(folder) = &folder {
        check_folder(folder)?;
        command.current_dir(folder);
    }
    if task.stop().is_some() {
        return stopped(task);
    }
    // To start a program may take as long as its disk does.
    let start = move || Child::start(&mut command, guard);
    let started = tokio::task::spawn_blocking(start)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)));
    let (child, exit, pipes) = started.map_err(|error| cannot_start(&argv[0], &error))?;

    let (mut written, mut tail) = (Vec::new(), Tail::default());
    let ended = {
        let pump = pin!(pipes.pump(stdin, &mut written, settings.output_max, &mut tail));
        watch(task, &child, Progress::new(&exit, pump), settings.kill_after).await
    };
    let status = child.reap();
    let result = match ended {
        Ended::Stopped => stopped(task),
        Ended::TooLarge => Err(output::too_large(format!(
            "stdout has more than {} bytes, and the command was stopped; write less, or put it \
             somewhere and print where",
            settings.output_max
        ))),
        Ended::Itself => match status {
            Some(status) if status.success() => handed_in(output::of(&written)?, artifacts).await,
            status => Err(failed(status, &tail)),
        },
    };
    checkpoint.hand_on(result)
}

/// The output with the files that the command has left.
async fn handed_in(output: Output, artifacts: Option<Folder>) -> Result<Output, Failure> {
    let Some(folder) = artifacts else { return Ok(output) };
    let read = tokio::task::spawn_blocking(move || folder.add_to(output)).await;
    read.unwrap_or_else(|error| Err(Failure::new(error)))
}

/// The environment: the worker's, then the payload's, then what the task is.
fn surround(
    command: &mut Command,
    environment: Environment,
    env: Vec<(String, String)>,
    task: &LeasedTask,
) {
    if environment == Environment::Clean {
        command.env_clear();
        let kept = CLEAN_ENV.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(kept);
    }
    for ours in [
        "TENURE_ARTIFACTS",
        "TENURE_API_KEY",
        "TENURE_TRACEPARENT",
        "TRACEPARENT",
        "TENURE_TASK_NAME",
    ] {
        command.env_remove(ours);
    }
    command.envs(env);
    command.env("TENURE_TASK_ID", task.id().to_string());
    command.env("TENURE_LEASE_ID", task.lease_id().to_string());
    command.env("TENURE_ATTEMPT", task.attempt().to_string());
    command.env("TENURE_QUEUE", task.queue());
    if let Some(name) = task.name() {
        command.env("TENURE_TASK_NAME", name);
    }
    if let Some(traceparent) = task.traceparent() {
        command.env("TENURE_TRACEPARENT", traceparent).env("TRACEPARENT", traceparent);
    }
}

/// The system's own word for a folder that is missing would be blamed on the program.
fn check_folder(folder: &Path) -> Result<(), Failure> {
    match folder.is_dir() {
        true => Ok(()),
        false => Err(final_start(format!("there is no folder {}", folder.display()))),
    }
}

fn final_start(reason: impl fmt::Display) -> Failure {
    Failure::permanent(reason).code("cannot_start")
}

/// What the program's absence or shape prevents is final; what the machine lacks may come back.
fn cannot_start(program: &str, error: &io::Error) -> Failure {
    let is_final = matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidFilename
            | ErrorKind::ArgumentListTooLong
    ) || error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error());
    let reason = format!("{program:?} cannot be started: {error}");
    match is_final {
        true => final_start(reason),
        false => Failure::new(reason).code("cannot_start"),
    }
}

/// How a child came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Itself,
    Stopped,
    TooLarge,
}

/// Waits for a child to end, and sees to it that it does when it should.
async fn watch<F>(
    task: &LeasedTask,
    child: &Child,
    mut progress: Progress<'_, F>,
    kill_after: Duration,
) -> Ended
where
    F: Future<Output = Result<(), TooLarge>>,
{
    let is_stopped = tokio::select! {
        // What has ended by itself was not stopped.
        biased;
        () = progress.until_end() => false,
        () = task.canceled() => true,
    };
    if !is_stopped && !progress.is_too_large() {
        tokio::select! {
            _ = timeout(LINGER_MAX, progress.until_quiet()) => {}
            () = task.canceled() => {}
        }
    }
    if !progress.is_quiet() {
        child.terminate();
        let _ = timeout(kill_after, progress.until_quiet()).await;
    }
    // Also those who are silent go with their leader.
    child.kill();
    if timeout(KILL_MAX, progress.until_exit()).await.is_err() {
        tracing::warn!(task = task.id(), "a child is killed, and the system does not let it go");
    }
    let _ = timeout(LAST_READ_MAX, progress.until_quiet()).await;
    match is_stopped {
        true => Ended::Stopped,
        false if progress.is_too_large() => Ended::TooLarge,
        false => Ended::Itself,
    }
}

/// How far a child and its pipes have come.
struct Progress<'a, F> {
    exit: &'a Exit,
    pump: Pin<&'a mut F>,
    has_exited: bool,
    pumped: Option<Result<(), TooLarge>>,
}

impl<'a, F: Future<Output = Result<(), TooLarge>>> Progress<'a, F> {
    fn new(exit: &'a Exit, pump: Pin<&'a mut F>) -> Self {
        Self { exit, pump, has_exited: false, pumped: None }
    }

    fn is_too_large(&self) -> bool {
        self.pumped == Some(Err(TooLarge))
    }

    /// Whether the leader has ended and nobody holds a pipe.
    fn is_quiet(&self) -> bool {
        self.has_exited && self.pumped.is_some()
    }

    /// Until the leader has ended, or must be.
    async fn until_end(&mut self) {
        while !self.has_exited && !self.is_too_large() {
            self.step().await;
        }
    }

    async fn until_exit(&mut self) {
        while !self.has_exited {
            self.step().await;
        }
    }

    async fn until_quiet(&mut self) {
        while !self.is_quiet() {
            self.step().await;
        }
    }

    async fn step(&mut self) {
        tokio::select! {
            () = self.exit.reached(), if !self.has_exited => self.has_exited = true,
            pumped = &mut self.pump, if self.pumped.is_none() => self.pumped = Some(pumped),
            else => {}
        }
    }
}

fn stopped(task: &LeasedTask) -> Result<Output, Failure> {
    match task.stop() {
        Some(Stop::Canceled) => {
            Err(Failure::new("the task was canceled, and the command was stopped").code("canceled"))
        }
        // What comes of a lost lease is dropped anyway.
        Some(Stop::Leaving | Stop::Lost) | None => Err(Failure::release()),
    }
}

fn failed(status: Option<ExitStatus>, tail: &Tail) -> Failure {
    let (code, how) = match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => (format!("exit_{code}"), format!("exit code {code}")),
        Some((None, Some(signal))) => (format!("signal_{signal}"), format!("signal {signal}")),
        Some((None, None)) | None => ("unknown".to_owned(), "nobody knows what".to_owned()),
    };
    let reason = match tail.text() {
        empty if empty.is_empty() => {
            format!("the command ended with {how}, and wrote nothing to stderr")
        }
        tail => tail,
    };
    Failure::new(reason).code(code)
}

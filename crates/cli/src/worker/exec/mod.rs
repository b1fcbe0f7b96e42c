//! `tenure worker exec`: runs programs.

mod artifacts;
mod attempt;
mod checkpoint;
mod child;
pub(super) mod guard;
mod payload;
mod pipes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustix::process::{Resource, getrlimit};
use tenure_sdk::{Client, LeasedTask};

use self::guard::Guard;
use self::payload::Accepts;
use super::output::OUTPUT_BYTES_MAX;
use super::terms::{Terms, told};
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::span;

/// Open files of a worker without children, and what a child takes while it is started: both ends
/// of its pipes, and word of its end.
const FILES: u64 = 64;
const FILES_PER_CHILD: u64 = 8;

const EXAMPLES: &str = "\
A payload:
  {\"argv\": [\"convert\", \"a.png\", \"a.jpg\"], \"env\": {\"QUALITY\": \"80\"}, \"stdin\": \"…\", \"cwd\": \"…\"}
  Only argv is needed. Whoever may submit to the queue may run any program as this user.

The program has TENURE_TASK_ID, TENURE_LEASE_ID (the fence), TENURE_ATTEMPT and TENURE_QUEUE in
its environment. Its stdout is the output; exit code 0 completes the task, any other is a failure
with the end of stderr as the reason. On cancel, or when the lease is lost, its process group gets
SIGTERM, and SIGKILL after --kill-after.

Examples:
  tenure worker exec --queue images --slots 4
  tenure submit --queue images --payload '{\"argv\": [\"echo\", \"hello\"]}' --wait";

/// Run each task's payload as a program.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Exec {
    #[command(flatten)]
    terms: Terms,

    /// Also run `payload.command`, a text for `sh -c`.
    #[arg(long)]
    shell: bool,

    /// The most that a program may write to stdout.
    #[arg(long, value_name = "BYTES", default_value_t = OUTPUT_BYTES_MAX as u64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=OUTPUT_BYTES_MAX as u64))]
    output_max: u64,

    /// How long a program may take to end after SIGTERM; then it gets SIGKILL.
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = span::parse_to_a_day)]
    kill_after: Duration,

    /// Where programs run, if not here; `payload.cwd` starts from it.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Hand on only PATH, HOME, USER, LANG, LC_ALL, TZ and TMPDIR of the worker's environment.
    #[arg(long)]
    clean_env: bool,
}

/// How programs are run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) accepts: Accepts,
    pub(crate) environment: Environment,
    pub(crate) output_max: usize,
    pub(crate) kill_after: Duration,
    pub(crate) cwd: Option<PathBuf>,
}

/// What a program has of the worker's environment; never its API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Environment {
    Inherited,
    Clean,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            accepts: Accepts::Argv,
            environment: Environment::Inherited,
            output_max: OUTPUT_BYTES_MAX,
            kill_after: Duration::from_secs(5),
            cwd: None,
        }
    }
}

impl Exec {
    fn settings(&self) -> Settings {
        Settings {
            accepts: if self.shell { Accepts::ArgvAndShell } else { Accepts::Argv },
            environment: match self.clean_env {
                true => Environment::Clean,
                false => Environment::Inherited,
            },
            output_max: usize::try_from(self.output_max).unwrap_or(OUTPUT_BYTES_MAX),
            kill_after: self.kill_after,
            cwd: self.cwd.clone(),
        }
    }
}

pub(super) fn run(exec: &Exec, server: &Server) -> Result<(), Failure> {
    exec.terms.log();
    server.with(async |client| {
        let worker = worker(client, &exec.terms, exec.settings())?;
        tracing::info!(queues = exec.terms.queues.join(","), slots = exec.terms.slots, "at work");
        worker.drain_on_signals().run().await?;
        tracing::info!("the worker has left in good order");
        Ok(())
    })
}

/// A worker that runs programs in children of this process, ready to run.
pub(crate) fn worker(
    client: Client,
    terms: &Terms,
    settings: Settings,
) -> Result<tenure_sdk::Worker, Failure> {
    check_files(terms.slots);
    let guard = Arc::new(Guard::start(settings.kill_after).map_err(Failure::NoGuard)?);
    let settings = Arc::new(settings);
    let mut worker = terms.worker(client);
    for queue in &terms.queues {
        let (guard, settings) = (Arc::clone(&guard), Arc::clone(&settings));
        worker = worker.handle_with_cleanup(queue, move |task: LeasedTask| {
            let (guard, settings) = (Arc::clone(&guard), Arc::clone(&settings));
            async move {
                let job = payload::parse(task.payload_bytes(), settings.accepts);
                let what = match &job {
                    Ok(job) => format!("{:?}", job.argv[0]),
                    Err(_) => "a payload that cannot be run".to_owned(),
                };
                let work = async { attempt::run(&task, job?, &settings, guard).await };
                told(&task, what, work).await
            }
        });
    }
    Ok(worker)
}

/// Says so if there may be more pipes than this process can open: children that cannot be started
/// for want of them would use up their attempts.
fn check_files(slots: u32) {
    let needed = FILES + u64::from(slots) * FILES_PER_CHILD;
    if let Some(limit) = getrlimit(Resource::Nofile).current.filter(|limit| *limit < needed) {
        tracing::warn!(
            "{slots} slots may need {needed} open files, and {limit} are allowed; raise `ulimit -n`, \
             or give fewer slots"
        );
    }
}

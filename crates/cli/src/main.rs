//! The `tenure` command. Each verb has a file of its own; this one reads the command line, and says
//! what went wrong.

mod backup;
mod bench;
mod client;
mod completions;
mod dev;
mod doctor;
mod failure;
mod history;
mod queue;
mod restore;
mod run;
mod serve;
mod snapshot;
mod status;
mod submit;
mod task;
mod ui;
mod wal;
mod watch;
mod worker;
mod workflow;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::failure::Failure;

/// What ADR 0011 measured: memory that is no longer used goes back to the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXAMPLES: &str = "\
Examples:
  tenure dev                                    a server and sample tasks, to try things out
  tenure serve --data ./data                    a server
  tenure submit --queue mail --payload '{}'     a task
  tenure task list --state failed               what went wrong
  tenure watch                                  what happens, as it happens
  tenure wal stat --data ./data                 what is in a log
  tenure wal dump --data ./data | head          its first records, one JSON object each
  tenure wal verify --data ./data               proof that it keeps every law
  tenure backup ./backup                        a copy of a running server
  tenure history --archive ./archive            what became of tasks that are forgotten
  tenure doctor --data ./data                   what is wrong with a data folder
  tenure workflow check review.yaml             all that is wrong with a definition
  tenure workflow put review.yaml               a server learns it
  tenure run start review --input '{}' --wait   a run of it
  tenure run graph 17                           where a run stands

Exit codes:
  0   done
  1   it was refused, or the task or run did not come to a good end
  2   wrong usage
  3   the server cannot be reached
  65  the log or the archive is corrupt or unsound, from a newer version or not this log's
  66  there is no such data folder or archive
  73  the folder is in use, is a backup, was replaced, or has something in it
  74  a read or a write failed
  77  other users could change the data folder";

/// A durable task scheduler.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Cli {
    /// How answers are printed: table for people, json for programs.
    #[arg(short, long, global = true, value_name = "FORMAT", default_value_t = Format::Table)]
    #[arg(value_enum, hide_possible_values = true, help_heading = "Options of every command")]
    output: Format,

    #[command(flatten)]
    server: client::Server,

    #[command(subcommand)]
    verb: Verb,
}

/// How answers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the server.
    Serve(serve::Serve),
    /// Measure a server under load.
    Bench(bench::Bench),
    /// Run a server with a worker, sample tasks and sample workflows, to try things out.
    Dev(dev::Dev),
    /// Submit a task, or many.
    Submit(submit::Submit),
    /// Look at tasks, and tell them what to do.
    Task(task::Task),
    /// Follow what happens, one line for each transition.
    Watch(watch::Watch),
    /// Look at queues, and change their settings.
    Queue(queue::Queue),
    /// Do the tasks of queues, and look at who does.
    Worker(worker::Worker),
    /// Show how the server stands.
    Status(status::Status),
    /// Look at finished tasks and runs that the server has forgotten, in its archive.
    History(history::History),
    /// Take a snapshot of a running server.
    #[command(after_help = snapshot::EXAMPLES)]
    Snapshot,
    /// Copy all that a running server has into a folder.
    Backup(backup::Backup),
    /// Put a backup back into a new data folder.
    Restore(restore::Restore),
    /// Say what is wrong with a data folder, in plain words.
    Doctor(doctor::Doctor),
    /// Look into a log, without changing it.
    Wal(wal::Wal),
    /// Print what a shell needs to complete commands and flags.
    Completions(completions::Completions),
    /// Definitions of workflows: check, register, look at.
    Workflow(workflow::Workflow),
    /// Runs of workflows: start, look at, cancel, signal, draw.
    Run(run::Run),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // Help goes to stdout and ends with 0, a mistake goes to stderr and ends with 2. There
            // is nobody left to tell if printing fails.
            let _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2));
        }
    };
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            ui::output::complain(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    match &cli.verb {
        Verb::Serve(serve) => serve::run(serve, cli.server.api_key.as_deref()),
        Verb::Bench(bench) => bench::run(bench, &cli.server, cli.output),
        Verb::Dev(dev) => dev::run(dev, &cli.server),
        Verb::Submit(submit) => submit::run(submit, &cli.server, cli.output),
        Verb::Task(task) => task::run(task, &cli.server, cli.output),
        Verb::Watch(watch) => watch::run(watch, &cli.server, cli.output),
        Verb::Queue(queue) => queue::run(queue, &cli.server, cli.output),
        Verb::Worker(worker) => worker::run(worker, &cli.server, cli.output),
        Verb::Status(status) => status::run(status, &cli.server, cli.output),
        Verb::History(history) => history::run(history, &cli.server, cli.output),
        Verb::Snapshot => snapshot::run(&cli.server, cli.output),
        Verb::Backup(backup) => backup::run(backup, &cli.server, cli.output),
        Verb::Restore(restore) => restore::run(restore, cli.output),
        Verb::Doctor(doctor) => doctor::run(doctor, cli.output),
        Verb::Wal(wal) => wal::run(wal, cli.output),
        Verb::Completions(completions) => completions::run(completions),
        Verb::Workflow(workflow) => workflow::run(workflow, &cli.server, cli.output),
        Verb::Run(run) => run::run(run, &cli.server, cli.output),
    }
}

//! The `tenure` command. Each verb has a file of its own; this one reads the command line, and says
//! what went wrong.

mod bench;
mod client;
mod failure;
mod output;
mod serve;
mod snapshot;
mod wal;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::failure::Failure;

/// What ADR 0011 measured: memory that is no longer used goes back to the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXAMPLES: &str = "\
Examples:
  tenure wal stat --data ./data                 what is in a log
  tenure wal dump --data ./data | head          its first records, one JSON object each
  tenure wal verify --data ./data               proof that it keeps every law

Exit codes:
  0   done
  1   it was refused
  2   wrong usage
  3   the server cannot be reached
  65  the log is corrupt or unsound, from a newer version or not this log's
  66  there is no such data folder
  74  a read or a write failed";

/// A durable task scheduler.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Cli {
    /// How answers are printed.
    #[arg(short, long, global = true, value_name = "FORMAT", default_value_t = Format::Table)]
    #[arg(value_enum)]
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
    /// Take a snapshot of a running server.
    #[command(after_help = snapshot::EXAMPLES)]
    Snapshot,
    /// Look into a log, without changing it.
    Wal(wal::Wal),
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
            output::complain(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    match &cli.verb {
        Verb::Serve(serve) => serve::run(serve, cli.server.api_key.as_deref()),
        Verb::Bench(bench) => bench::run(bench, &cli.server, cli.output),
        Verb::Snapshot => snapshot::run(&cli.server, cli.output),
        Verb::Wal(wal) => wal::run(wal, cli.output),
    }
}

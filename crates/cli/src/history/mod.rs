//! `tenure history`: what became of tasks and runs that the server has forgotten, from its archive.
//! It needs no server, but to say where the archive is.

mod item;
mod scan;
mod seen;
mod shown;
mod wanted;

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;

use self::scan::Scan;
use self::wanted::Wanted;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::output::{self, Lines};
use crate::ui::plain;

const EXAMPLES: &str = "\
A server that was started with --archive writes finished tasks and runs there before it
forgets them. This reads those files, newest first, each task or run once. Without --archive the
running server is asked where its archive is. With -o json each line is one task or run, with its
history in it.

Examples:
  tenure history --archive ./archive
  tenure history --archive ./archive --task 17
  tenure history --archive ./archive --run 3
  tenure history --archive ./archive --queue mail --state failed --since 2d
  tenure history --archive ./archive --runs --workflow order --all -o json | jq .output
  duckdb -c \"select queue, count(*) from 'archive/tasks-*.ndjson.zst' group by queue\"";

/// Look at finished tasks and runs that the server has forgotten, in its archive.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct History {
    /// The folder of the archive; that of the running server unless one is named.
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,

    /// This task, with its history.
    #[arg(long, value_name = "ID", conflicts_with_all = ["run", "runs", "queue", "state", "key", "workflow", "of_run", "since", "until"])]
    task: Option<u64>,

    /// This run, with its history.
    #[arg(long, value_name = "ID", conflicts_with_all = ["runs", "queue", "state", "key", "workflow", "of_run", "since", "until"])]
    run: Option<u64>,

    /// Runs, and not tasks.
    #[arg(long, conflicts_with_all = ["queue", "of_run"])]
    runs: bool,

    #[command(flatten)]
    wanted: Wanted,

    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,

    /// All of them, however many there are.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

pub(crate) fn run(history: &History, server: &Server, format: Format) -> Result<(), Failure> {
    let folder = match &history.archive {
        Some(folder) => folder.clone(),
        None => ask_for_folder(server)?,
    };
    let kind = history.kind();
    let mut scan = Scan::new(&folder, kind, history.wanted.since_day().as_deref())?;
    let found = match history.task.or(history.run) {
        Some(id) => one(&mut scan, id, format)?,
        None => list(history, &mut scan, format)?,
    };
    let damage = scan.damage();
    match found {
        // What is missing may be in what could not be read.
        _ if damage > 0 => Err(Failure::ArchiveDamaged { folder, places: damage }),
        Found::Missing(id) => Err(Failure::NotArchived { folder, what: kind.noun(), id }),
        Found::Shown => Ok(()),
    }
}

/// What came of a search.
enum Found {
    Shown,
    Missing(u64),
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Task,
    Run,
}

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Kind::Task => "task",
            Kind::Run => "run",
        }
    }

    fn of_files(self) -> tenure_server::archive::Kind {
        match self {
            Kind::Task => tenure_server::archive::Kind::Tasks,
            Kind::Run => tenure_server::archive::Kind::Runs,
        }
    }
}

impl History {
    fn kind(&self) -> Kind {
        match self.run.is_some() || self.runs || self.wanted.is_about_runs() {
            true => Kind::Run,
            false => Kind::Task,
        }
    }
}

/// Where the running server archives.
fn ask_for_folder(server: &Server) -> Result<PathBuf, Failure> {
    server.with(|client| async move {
        let archive = client.status().await?.archive;
        let none = "the server has no archive (it was started without --archive); name a folder \
                    with --archive";
        archive.map(|it| it.folder.into()).ok_or_else(|| Failure::Usage(none.to_owned()))
    })
}

fn one(scan: &mut Scan, id: u64, format: Format) -> Result<Found, Failure> {
    let mut found = Found::Missing(id);
    let kind = scan.kind();
    scan.read(
        |item| item.id == id,
        |_, line| {
            match (format, kind) {
                (Format::Json, _) => {
                    let mut out = Lines::new();
                    out.print(plain::json(line));
                    out.finish();
                }
                (Format::Table, Kind::Task) => shown::task(line),
                (Format::Table, Kind::Run) => shown::run(line),
            }
            found = Found::Shown;
            ControlFlow::Break(())
        },
    )?;
    Ok(found)
}

fn list(history: &History, scan: &mut Scan, format: Format) -> Result<Found, Failure> {
    let mut left = if history.all { u64::MAX } else { history.limit };
    let mut out = Lines::new();
    let mut table = shown::table(scan.kind());
    let mut is_cut = false;
    scan.read(
        |item| history.wanted.takes(item),
        |item, line| {
            if left == 0 {
                is_cut = true;
                return ControlFlow::Break(());
            }
            left -= 1;
            match format {
                Format::Json => out.print(plain::json(line)),
                Format::Table => table.row(shown::row(&item)),
            }
            ControlFlow::Continue(())
        },
    )?;
    if format == Format::Table {
        table.print(&mut out, "nothing in the archive is like that");
    }
    out.finish();
    if is_cut {
        output::complain(&"there are more: --all lists them, --limit N so many");
    }
    Ok(Found::Shown)
}

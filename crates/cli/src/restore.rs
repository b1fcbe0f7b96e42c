//! `tenure restore`: a backup becomes a data folder.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tenure_record::id::Lsn;
use tenure_server::restore;

use crate::Format;
use crate::failure::Failure;
use crate::ui::copying::Copying;
use crate::ui::output::Lines;

const EXAMPLES: &str = "\
The backup stays as it is. All of it is checked on the way; if anything is wrong, no data folder is
made. Ids that the old server may have given since are never given again: the next ones are far
ahead. Do not let both servers run: each would do the work of the other.

Examples:
  tenure restore ./backup-monday --data ./data
  tenure restore ./backup-monday --data ./data --lsn 120000
  tenure serve --data ./data";

/// Put a backup back into a new data folder.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Restore {
    /// The backup; any data folder that no server is running on will do.
    #[arg(value_name = "DIR")]
    backup: PathBuf,

    /// The data folder to be made.
    #[arg(long, value_name = "NEW")]
    data: PathBuf,

    /// Up to this record, and nothing that came after it.
    #[arg(long, value_name = "LSN")]
    lsn: Option<u64>,
}

pub(crate) fn run(args: &Restore, format: Format) -> Result<(), Failure> {
    let progress = Copying::new(bytes_of(&args.backup));
    let restored =
        restore(&args.backup, &args.data, args.lsn.map(Lsn), &mut |bytes| progress.tell(bytes));
    drop(progress);
    let restored = restored.map_err(|error| Failure::Server(error.into()))?;
    let folder = args.data.display();
    let mut lines = Lines::new();
    match format {
        Format::Json => lines.print(json!({
            "folder": folder.to_string(),
            "lsn": restored.lsn.0,
            "tasks": restored.tasks,
            "bytes": restored.bytes,
            "state_hash": restored.state_hash.to_string(),
        })),
        Format::Table => {
            lines.print(format_args!("folder    {folder}"));
            lines.print(format_args!("lsn       {}", restored.lsn));
            lines.print(format_args!("tasks     {}", restored.tasks));
            lines.print(format_args!("state     {}", restored.state_hash));
            lines.print(format_args!("Start it with `tenure serve --data {folder}`."));
        }
    }
    lines.finish();
    Ok(())
}

/// About as many bytes as will be copied.
fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

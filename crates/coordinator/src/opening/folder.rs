//! The data folder before it is opened: who may touch it, and what is in it.

use std::path::Path;

use tenure_log::Fault;
use tenure_wal::disk::access::{self, Tightened};
use tenure_wal::is_log_file;

use super::restore::BLOBS;
use crate::shelf::{SHELF_FILE, UNNAMED_FILE};
use crate::warning::{Warning, WarningHandler};

/// What else a server and `tenure dev` put there, and what a file system does.
const FOLDERS: [&str; 4] = [BLOBS, "artifacts", "samples", "lost+found"];

/// Whether something of that name belongs into a data folder.
#[must_use]
pub fn is_data_file(name: &str) -> bool {
    is_log_file(name)
        || name == SHELF_FILE
        || name.ends_with(UNNAMED_FILE)
        || FOLDERS.contains(&name)
}

/// Narrows what other users could read in a folder that is locked, and tells of what is left to do.
pub(crate) fn secure(folder: &Path, on_warning: &WarningHandler) -> Result<(), Fault> {
    let name = || folder.display().to_string();
    let seen = access::tighten(folder, is_data_file);
    let seen = seen.map_err(|cause| Fault::NoFolder { folder: name(), cause })?;
    let Tightened { narrowed, readable, foreign, foreign_count } = seen;
    if narrowed > 0 {
        on_warning.call(&Warning::Narrowed { folder: name(), count: narrowed });
    }
    if let Some(mode) = readable {
        on_warning.call(&Warning::Readable { folder: name(), mode });
    }
    if foreign_count > 0 {
        on_warning.call(&Warning::ForeignFiles {
            folder: name(),
            names: foreign,
            count: foreign_count,
        });
    }
    Ok(())
}

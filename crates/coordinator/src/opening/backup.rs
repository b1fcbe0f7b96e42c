//! A backup written into a folder. The folder gets its name only when everything in it is durable.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tenure_log::{Backup, Fault};
use tenure_wal::CopiedFile;
use tenure_wal::disk::access::BACKUP_FILE;
use tenure_wal::disk::private;
use tenure_wal::disk::real::RealDisk;

use super::restore::{check_free, no_folder, part_of, sync_parent};
use crate::engine::Error;

/// What follows the name of a folder that is not whole yet.
const PART: &str = ".part";
/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 1 << 20;
/// What the file that marks a backup says.
const MARK: &str = "\
This folder is a backup. It must be restored before it can be opened: `tenure restore`, or
`tenure::restore` in a program.
";

/// Copies a backup into a folder that does not exist or is empty.
pub fn copy_backup(backup: &Backup, to: &Path) -> Result<(), Error> {
    check_free(to)?;
    let part = part_of(to, PART);
    let copied = copy(backup, &part);
    if copied.is_err() {
        // Half a copy is of no use. What stays all the same is removed by the next try.
        let _ = fs::remove_dir_all(&part);
    }
    copied?;
    fs::rename(&part, to).map_err(|cause| no_folder(to, cause))?;
    sync_parent(to)
}

fn copy(backup: &Backup, part: &Path) -> Result<(), Error> {
    let failed = |cause| no_folder(part, cause);
    match fs::remove_dir_all(part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    private::create_folder(part).map_err(failed)?;
    let disk = RealDisk::open(part).map_err(failed)?;
    let mut piece = vec![0; PIECE_BYTES];
    for file in &backup.files {
        let mut copied = CopiedFile::create(&disk, &file.name)?;
        while copied.offset < file.bytes {
            let read = file.read(&mut piece, copied.offset)?;
            copied.write(&piece[..read])?;
        }
        copied.finish(file.size)?;
    }
    let mut mark = private::create_file(&part.join(BACKUP_FILE)).map_err(failed)?;
    let marked = mark.write_all(MARK.as_bytes()).and_then(|()| mark.sync_all());
    marked.map_err(|cause| Fault::io("write", BACKUP_FILE, cause))?;
    super::restore::sync(part)
}

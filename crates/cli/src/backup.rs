//! `tenure backup`: a copy of all that a running server has.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tenure_log::Fault;
use tenure_sdk::{BackupContents, BackupFile, BackupPart, BackupScope, Client, Error};
use tenure_server::{let_large_writes_fail, look_at_blobs};
use tenure_wal::CopiedFile;
use tenure_wal::disk::access::BACKUP_FILE;
use tenure_wal::disk::real::RealDisk;
use tenure_wal::disk::{Disk, private};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::copying::Copying;
use crate::ui::output::Lines;
use crate::wal::{self, Proof};

/// What follows the name of a folder that is not whole yet.
const PART: &str = ".part";

/// What the file that marks a backup says.
const MARK: &str = "\
This folder is a backup. `tenure restore` makes a data folder of it; a server does not start on it.
";

const EXAMPLES: &str = "\
The copy has all that was acknowledged when it began, and can be restored to any record since the
older of the server's two snapshots (with --whole: since the oldest record that it still has). The
server goes on meanwhile. At the end the copy is read back and proved, as by `tenure wal verify`; only
then does the folder get its name. `tenure wal` and `tenure doctor` read it like a data
folder; a server does not start on it: restore it first.

Examples:
  tenure backup ./backup-monday
  tenure backup --whole ./everything
  tenure restore ./backup-monday --data ./data";

/// Copy all that a running server has into a folder.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Backup {
    /// The folder to be made.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// All records that the server still has, and not only those since its older snapshot.
    #[arg(long)]
    whole: bool,
}

pub(crate) fn run(backup: &Backup, server: &Server, format: Format) -> Result<(), Failure> {
    check_free(&backup.folder)?;
    let part = part_of(&backup.folder);
    match fs::remove_dir_all(&part) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(failed(&part, cause)),
        Ok(()) | Err(_) => {}
    }
    private::create_folder(&part).map_err(|cause| failed(&part, cause))?;
    let scope = match backup.whole {
        true => BackupScope::WholeLog,
        false => BackupScope::SinceSnapshot,
    };
    let copied = copy(scope, server, &part);
    if copied.is_err() {
        // Half a copy is of no use. What stays all the same is removed by the next try.
        let _ = fs::remove_dir_all(&part);
    }
    let (contents, proof) = copied?;
    let state_hash = proof.hash();
    fs::rename(&part, &backup.folder).map_err(|cause| failed(&backup.folder, cause))?;
    let parent = backup.folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync(parent.unwrap_or(Path::new(".")))?;
    let mut lines = Lines::new();
    match format {
        Format::Json => lines.print(json!({
            "folder": backup.folder.display().to_string(),
            "lsn": contents.lsn,
            "since_lsn": contents.since_lsn,
            "files": contents.files,
            "bytes": contents.bytes,
            "state_hash": state_hash.to_string(),
            "notes": proof.all_notes().collect::<Vec<_>>(),
        })),
        Format::Table => {
            let since = contents.since_lsn;
            lines.print(format_args!("folder    {}", backup.folder.display()));
            lines.print(format_args!("lsn       {} (restorable from {since} on)", contents.lsn));
            lines.print(format_args!("bytes     {} in {} files", contents.bytes, contents.files));
            lines.print(format_args!("state     {state_hash}"));
            proof.all_notes().for_each(|note| lines.print(format_args!("note      {note}")));
            lines.print("The backup is whole and sound.");
        }
    }
    lines.finish();
    Ok(())
}

/// Copies everything, and proves that it is sound.
fn copy(
    scope: BackupScope,
    server: &Server,
    part: &Path,
) -> Result<(BackupContents, Proof), Failure> {
    let contents = server.with(|client| fetch(client, scope, part.to_owned()))?;
    let proof = wal::proof(part)?;
    check_blobs(part)?;
    mark(part).map_err(|cause| failed(part, cause))?;
    sync(part)?;
    Ok((contents, proof))
}

/// Says in the folder what it is: a server does not start on it.
fn mark(part: &Path) -> io::Result<()> {
    let mut file = private::create_file(&part.join(BACKUP_FILE))?;
    file.write_all(MARK.as_bytes())?;
    file.sync_all()
}

/// Takes the files one after the other.
async fn fetch(
    client: Client,
    scope: BackupScope,
    part: PathBuf,
) -> Result<BackupContents, Failure> {
    let_large_writes_fail();
    let mut parts = client.backups().start(scope).await?;
    let contents = parts.contents();
    check_room(&part, contents.bytes)?;
    let progress = Copying::new(contents.bytes);
    let mut done = 0;
    for _ in 0..contents.files {
        let BackupPart::File(file) = parts.next().await.ok_or_else(cut)?? else {
            return Err(cut());
        };
        let mut target = Target::create(&part, &file)?;
        while target.copied.offset < file.bytes {
            let BackupPart::Bytes(bytes) = parts.next().await.ok_or_else(cut)?? else {
                return Err(cut());
            };
            target.write(&bytes)?;
            done += bytes.len() as u64;
            progress.tell(done);
        }
        target.finish(&file)?;
    }
    Ok(contents)
}

/// A file that is being written.
struct Target {
    copied: CopiedFile<RealDisk>,
}

impl Target {
    fn create(folder: &Path, file: &BackupFile) -> Result<Self, Failure> {
        if !is_ours(&file.name) {
            let said = format!("the server sends a file with the name {:?}", file.name);
            return Err(Error::unavailable(said).into());
        }
        let path = folder.join(&file.name);
        let parent = path.parent().unwrap_or(folder);
        if path.exists() {
            return Err(failed(&path, io::ErrorKind::AlreadyExists.into()));
        }
        let made = private::create_folders(parent).and_then(|()| RealDisk::open(parent));
        let disk = made.map_err(|cause| failed(&path, cause))?;
        let name = file.name.rsplit('/').next().unwrap_or(&file.name);
        Ok(Self { copied: CopiedFile::create(&disk, name).map_err(given_up)? })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.copied.write(bytes).map_err(given_up)
    }

    fn finish(self, file: &BackupFile) -> Result<(), Failure> {
        self.copied.finish(file.size).map_err(given_up)
    }
}

/// It is the copy's disk that failed, and not the server's.
fn given_up(fault: Fault) -> Failure {
    let said = if let Fault::Io { doing, file, cause } = &fault {
        Some(format!("cannot {doing} {file}: {cause}"))
    } else {
        None
    };
    let told = "the copy was given up, and the server goes on; see to the disk of the copy, or \
                give a folder on another one";
    Failure::HalfDone { cause: Box::new(fault.into()), said, told: told.to_owned() }
}

/// A disk that turns out to be full after an hour of copying helps nobody.
fn check_room(part: &Path, needed: u64) -> Result<(), Failure> {
    let free = RealDisk::open(part).and_then(|disk| disk.free_bytes());
    match free.map_err(|cause| failed(part, cause))? {
        free if free < needed => {
            Err(Failure::NoRoom { folder: part.with_extension(""), needed, free })
        }
        _ => Ok(()),
    }
}

/// A server is a stranger, too: only names that a data folder has will do.
fn is_ours(name: &str) -> bool {
    let is_plain = |text: &str| {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        !text.is_empty() && !text.starts_with('.') && text.bytes().all(is_fit)
    };
    let parts: Vec<_> = name.split('/').collect();
    match parts.as_slice() {
        [file] => is_plain(file),
        ["blobs", folder, blob] => is_plain(folder) && is_plain(blob),
        _ => false,
    }
}

fn cut() -> Failure {
    Error::unavailable("the server ended the backup before it was whole; run it again").into()
}

/// What was copied must be what its name says.
fn check_blobs(folder: &Path) -> Result<(), Failure> {
    let seen = look_at_blobs(folder).map_err(|cause| failed(folder, cause))?;
    match seen.damaged.first() {
        None => Ok(()),
        Some(blob) => {
            let found =
                "its bytes are not what its name says; the server's own may be damaged, too";
            Err(Fault::Foreign { file: blob.clone(), found: found.to_owned() }.into())
        }
    }
}

fn check_free(folder: &Path) -> Result<(), Failure> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Fault::NotEmpty { folder: folder.display().to_string() }.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(folder, error)),
    }
}

fn part_of(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(PART);
    name.into()
}

fn sync(folder: &Path) -> Result<(), Failure> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|cause| failed(folder, cause))
}

fn failed(path: &Path, cause: io::Error) -> Failure {
    Fault::NoFolder { folder: path.display().to_string(), cause }.into()
}

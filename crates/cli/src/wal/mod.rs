//! `tenure wal`: looking into the log of a data folder. Nothing in the folder is changed, and no
//! lock is taken.

mod dump;
mod json;
mod stat;
mod time;
mod verify;

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tenure_log::{Fault, Lsn, Note};
use tenure_record::codec;
use tenure_record::event::Record;
use tenure_wal::disk::read_only::ReadOnlyDisk;
use tenure_wal::{Beginning, Inspection, Located, inspect, inspect_until};

pub(crate) use self::verify::Proof;
use crate::Format;
use crate::failure::{Failure, RecordLocation};

const EXAMPLES: &str = "\
Nothing in the data folder is changed and no lock is taken: a server may be running on it.

Examples:
  tenure wal stat --data ./data
  tenure wal dump --data ./data --from 1000 --limit 10
  tenure wal verify --data ./data";

/// The verbs of the log.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Wal {
    #[command(subcommand)]
    verb: WalVerb,
}

#[derive(Debug, Subcommand)]
enum WalVerb {
    /// Print the records, each as one line of JSON.
    #[command(after_help = dump::EXAMPLES)]
    Dump(dump::Dump),
    /// Print sizes and counts, and a picture of the segments.
    #[command(after_help = stat::EXAMPLES)]
    Stat(stat::Stat),
    /// Prove that the log keeps every law, or name the first record that breaks one.
    #[command(after_help = verify::EXAMPLES)]
    Verify(verify::Verify),
}

/// Where the log is.
#[derive(Debug, Args)]
struct Data {
    /// The data folder. It is only read.
    #[arg(long = "data", value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(wal: &Wal, format: Format) -> Result<(), Failure> {
    match &wal.verb {
        WalVerb::Dump(dump) => dump::run(dump),
        WalVerb::Stat(stat) => stat::run(stat, format),
        WalVerb::Verify(verify) => verify::run(verify, format),
    }
}

/// Proves that a folder's log keeps every law.
pub(crate) fn proof(folder: &Path) -> Result<Proof, Failure> {
    verify::prove(folder)
}

/// A record, and how many bytes it has in its frame.
struct Seen<'a> {
    bytes: usize,
    record: Record<'a>,
}

/// Reads the log. `frame` gets every frame, `record` every record, both in order, until `record`
/// has enough.
fn read(
    folder: &Path,
    mut frame: impl FnMut(&Located<'_>),
    mut record: impl FnMut(&Seen<'_>) -> ControlFlow<()>,
) -> Result<Inspection, Failure> {
    walk(folder, Beginning::Oldest, |at| {
        frame(at);
        for (lsn, bytes) in at.frame.records() {
            match decode(lsn, bytes) {
                Ok(decoded) => {
                    if record(&Seen { bytes: bytes.len(), record: decoded }).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Err(found) => {
                    let at =
                        RecordLocation { file: at.segment.file.clone(), offset: at.offset, lsn };
                    return Err(Failure::Record { at, found });
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Reads the log frame by frame until a visit wants no more, or fails.
fn walk(
    folder: &Path,
    beginning: Beginning,
    mut visit: impl FnMut(&Located<'_>) -> Result<ControlFlow<()>, Failure>,
) -> Result<Inspection, Failure> {
    let disk = ReadOnlyDisk::open(folder)?;
    let mut failed = None;
    let inspected = inspect_until(&disk, beginning, |at| {
        visit(at).unwrap_or_else(|failure| {
            failed = Some(failure);
            ControlFlow::Break(())
        })
    });
    match (inspected, failed) {
        // What was visited was whole, so its trouble comes first, whatever follows.
        (_, Some(failure)) => Err(failure),
        // What is corrupt stays so. In a log that is being written, a page can be read before its
        // frame is there and a later page after the next one is, which looks the same only once.
        (Err(Fault::Corrupt(first)), None) => match inspect(&disk, beginning, |_| {}) {
            Err(Fault::Corrupt(second)) if first == second => Err(Fault::Corrupt(second).into()),
            Err(other) if !matches!(other, Fault::Corrupt(_)) => Err(other.into()),
            Ok(_) | Err(_) => Err(Failure::InMotion),
        },
        // A server forgets old segments as it goes; one that was listed may be gone when its turn
        // comes.
        (Err(Fault::Io { cause, .. }), None) if cause.kind() == ErrorKind::NotFound => {
            Err(Failure::InMotion)
        }
        (Err(fault), None) => Err(fault.into()),
        (Ok(inspection), None) => Ok(inspection),
    }
}

fn decode(lsn: Lsn, bytes: &[u8]) -> Result<Record<'_>, String> {
    let record = codec::decode(bytes).map_err(|malformed| malformed.to_string())?;
    if record.lsn.0 != lsn.0 {
        return Err(format!("it says that its LSN is {}", record.lsn));
    }
    Ok(record)
}

/// A note for somebody who looks from outside: the log may be in use.
fn sentence(note: &Note) -> String {
    match note {
        Note::Torn { file, offset, lsn } => format!(
            "{file} ends in a torn frame at offset {offset}, LSN {lsn}; if a server is running on \
             this folder, it is writing that frame right now; if not, the frame was never \
             acknowledged, and the next start leaves it out and goes on in a new segment"
        ),
        Note::Scar { .. } | Note::OneHeader { .. } | Note::BadSnapshot { .. } => note.to_string(),
    }
}

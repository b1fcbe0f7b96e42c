//! A copy of a server that goes on: read beside everything else, and sent as fast as it is taken.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tenure_code::Code;
use tenure_coordinator::{Backup, Since};
use tenure_proto::v1;
use tenure_proto::v1::backup_part::Part;
use tenure_record::artifact::Sha256;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::app::App;
use crate::artifacts::blobs::Blobs;
use crate::limits::{BACKUP_PIECE_BYTES, BACKUPS_MAX};
use crate::problem::Problem;

/// Pieces that wait to be sent.
const PIECES_AHEAD: usize = 4;

/// The pieces of a copy.
pub(super) type Parts = ReceiverStream<Result<v1::BackupPart, Status>>;

/// Begins a copy.
pub(super) async fn begin(app: &Arc<App>, since: Since) -> Result<Parts, Problem> {
    let Ok(place) = Arc::clone(&app.backups).try_acquire_owned() else {
        let detail = format!("{BACKUPS_MAX} backup is being taken already; wait until it is done");
        return Err(Problem::new(Code::Overloaded, detail));
    };
    let (tenure, blobs) = (app.tenure.clone(), Arc::clone(&app.blobs));
    let begun = tokio::task::spawn_blocking(move || -> Result<Copy, String> {
        let log = tenure.back_up(since).map_err(|error| error.to_string())?;
        // A record never names a blob that is not there, so those of the copy's records are.
        let named = blobs.list().map_err(|error| format!("the blobs cannot be listed: {error}"))?;
        Ok(Copy { log, blobs, named, _place: place })
    });
    let begun = begun.await.map_err(|_| Problem::stopping())?;
    let copy = begun.map_err(|error| Problem::new(Code::Unavailable, error))?;
    let (pieces, parts) = mpsc::channel(PIECES_AHEAD);
    tracing::info!(lsn = copy.log.lsn.0, bytes = copy.bytes(), "a backup begins");
    std::thread::Builder::new()
        .name("backup".to_owned())
        .spawn(move || {
            if let Err(Stopped::Failed(why)) = copy.send(&pieces) {
                let problem =
                    Problem::new(Code::Unavailable, format!("{why}; run the backup again"));
                let _ = pieces.blocking_send(Err(problem.into()));
            }
        })
        .map_err(|error| Problem::new(Code::Unavailable, format!("no thread for it: {error}")))?;
    Ok(ReceiverStream::new(parts))
}

/// All that belongs to a copy.
struct Copy {
    log: Backup,
    blobs: Arc<Blobs>,
    named: Vec<(Sha256, u64)>,
    _place: OwnedSemaphorePermit,
}

/// Why a copy was not sent to its end.
enum Stopped {
    /// Nobody wants it any more.
    Unwanted,
    /// It cannot be read.
    Failed(String),
}

type Pieces = mpsc::Sender<Result<v1::BackupPart, Status>>;

impl Copy {
    fn bytes(&self) -> u64 {
        self.log.bytes() + self.named.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }

    fn send(&self, pieces: &Pieces) -> Result<(), Stopped> {
        let contents = v1::BackupContents {
            lsn: self.log.lsn.0,
            since_lsn: self.log.since.0,
            files: (self.log.files.len() + self.named.len()) as u64,
            bytes: self.bytes(),
        };
        give(pieces, Part::Contents(contents))?;
        for file in &self.log.files {
            let head =
                v1::BackupFile { name: file.name.clone(), bytes: file.bytes, size: file.size };
            send_file(pieces, head, |piece, offset| {
                file.read(piece, offset).map(drop).map_err(|fault| fault.to_string())
            })?;
        }
        for (sha256, bytes) in &self.named {
            let path = self.blobs.path(*sha256);
            let failed = |error: std::io::Error| format!("blob {sha256} cannot be read: {error}");
            let text = sha256.to_string();
            let name = format!("blobs/{}/{}", &text[..2], &text[2..]);
            let head = v1::BackupFile { name, bytes: *bytes, size: *bytes };
            let file = std::fs::File::open(path).map_err(|error| Stopped::Failed(failed(error)))?;
            send_file(pieces, head, |piece, offset| {
                file.read_exact_at(piece, offset).map_err(failed)
            })?;
        }
        Ok(())
    }
}

fn send_file(
    pieces: &Pieces,
    head: v1::BackupFile,
    read: impl Fn(&mut [u8], u64) -> Result<(), String>,
) -> Result<(), Stopped> {
    let bytes = head.bytes;
    give(pieces, Part::File(head))?;
    let mut offset = 0;
    while offset < bytes {
        let mut piece = vec![0; (bytes - offset).min(BACKUP_PIECE_BYTES as u64) as usize];
        read(&mut piece, offset).map_err(Stopped::Failed)?;
        offset += piece.len() as u64;
        give(pieces, Part::Bytes(piece))?;
    }
    Ok(())
}

fn give(pieces: &Pieces, part: Part) -> Result<(), Stopped> {
    let part = Ok(v1::BackupPart { part: Some(part) });
    pieces.blocking_send(part).map_err(|_| Stopped::Unwanted)
}

//! A copy of a server that goes on: read beside everything else, and sent as fast as it is taken.

use std::sync::Arc;

use tenure_coordinator::{Backup, RealDisk, Since};
use tenure_proto::v1;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::app::App;
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
        return Err(Problem::new("overloaded", detail));
    };
    let tenure = app.tenure.clone();
    let begun = tokio::task::spawn_blocking(move || tenure.back_up(since)).await;
    let backup = begun.map_err(|_| Problem::new("unavailable", "the server is stopping"))?;
    let backup = backup.map_err(|error| Problem::new("unavailable", error.to_string()))?;
    let (pieces, parts) = mpsc::channel(PIECES_AHEAD);
    tracing::info!(lsn = backup.lsn.0, bytes = backup.bytes(), "a backup begins");
    std::thread::Builder::new()
        .name("backup".to_owned())
        .spawn(move || send(&backup, &pieces, place))
        .map_err(|error| Problem::new("unavailable", format!("no thread for it: {error}")))?;
    Ok(ReceiverStream::new(parts))
}

/// Sends all of it, or as much as is wanted.
fn send(
    backup: &Backup<RealDisk>,
    pieces: &mpsc::Sender<Result<v1::BackupPart, Status>>,
    _place: OwnedSemaphorePermit,
) {
    let give = |part| pieces.blocking_send(Ok(v1::BackupPart { part: Some(part) })).is_ok();
    if !give(v1::backup_part::Part::Contents(contents(backup))) {
        return;
    }
    for file in &backup.files {
        let mut offset = 0;
        while offset < file.bytes {
            let left = file.bytes - offset;
            let mut piece = vec![0; left.min(BACKUP_PIECE_BYTES as u64) as usize];
            if let Err(fault) = file.read(&mut piece, offset) {
                let problem = Problem::new("unavailable", format!("the backup ends: {fault}"));
                let _ = pieces.blocking_send(Err(problem.into()));
                return;
            }
            offset += piece.len() as u64;
            if !give(v1::backup_part::Part::Bytes(piece.into())) {
                return;
            }
        }
    }
}

fn contents(backup: &Backup<RealDisk>) -> v1::BackupContents {
    let files = backup.files.iter().map(|file| v1::BackupFile {
        name: file.name.clone(),
        bytes: file.bytes,
        size: file.size,
    });
    v1::BackupContents { lsn: backup.lsn.0, since_lsn: backup.since.0, files: files.collect() }
}

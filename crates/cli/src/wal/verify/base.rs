//! What a proof begins with: nothing, if the log is whole, or else the oldest snapshot that can be
//! read.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use tenure_core::State;
use tenure_core::shelf::Shelf;
use tenure_core::state::StateHash;
use tenure_core::state::snapshot::Decoder;
use tenure_log::SnapshotFooter;
use tenure_log::{Fault, Lsn, Note};
use tenure_server::FileShelf;
use tenure_wal::disk::read_only::ReadOnlyDisk;
use tenure_wal::snapshot::{self, file_name};
use tenure_wal::{Beginning, first_segment};

use crate::failure::{Failure, RecordLocation};

/// What a proof begins with.
pub(super) struct Base {
    pub(super) beginning: Beginning,
    pub(super) state: State,
    /// The snapshots that the records will come by, the first of them last.
    pub(super) snapshots: Vec<SnapshotFooter>,
    /// Those that cannot be read, and what is wrong with each.
    pub(super) bad_snapshots: Vec<(Lsn, String)>,
}

pub(super) fn find(folder: &Path) -> Result<Base, Failure> {
    let disk = ReadOnlyDisk::open(folder)?;
    let first = first_segment(&disk)?;
    let is_whole = first.is_none_or(|first| first.first_lsn <= Lsn(1));
    let log_id = first.map_or(0, |first| first.log_id);
    // A folder that is only looked at is not written to. Without a shelf it takes more memory.
    let shelf = FileShelf::unnamed(&std::env::temp_dir()).ok().map(FileShelf::shared);
    let mut base = Base {
        beginning: Beginning::First,
        state: State::replaying(0).on_shelf(shelf.clone()),
        snapshots: Vec::new(),
        bad_snapshots: Vec::new(),
    };
    let mut is_found = is_whole;
    for lsn in snapshot::list(&disk)?.into_iter().rev() {
        match read(&disk, shelf.clone(), log_id, lsn)? {
            Ok((state, footer)) if !is_found => {
                (base.beginning, base.state) = (Beginning::After(footer.anchor()), state);
                is_found = true;
            }
            Ok((_, footer)) => base.snapshots.insert(0, footer),
            Err(found) => {
                let bad = Note::BadSnapshot { file: file_name(lsn), found };
                base.bad_snapshots.push((lsn, bad.to_string()));
            }
        }
    }
    Ok(base)
}

/// Reads a snapshot; says what is wrong with it if it has rotted.
fn read(
    disk: &ReadOnlyDisk,
    shelf: Option<Arc<dyn Shelf>>,
    log_id: u128,
    lsn: Lsn,
) -> Result<Result<(State, SnapshotFooter), String>, Failure> {
    let mut decoder = Decoder::new(0).on_shelf(shelf);
    let mut fed = Ok(());
    let footer = snapshot::load(disk, log_id, lsn, |piece| {
        if fed.is_ok() {
            fed = decoder.feed(piece);
        }
    });
    let footer = match footer {
        Ok(footer) => footer,
        // A server takes a new one and forgets an old one as it goes.
        Err(Fault::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
            return Err(Failure::InMotion);
        }
        Err(fault @ (Fault::Corrupt(_) | Fault::Io { .. })) => return Ok(Err(fault.finding())),
        Err(fault) => return Err(fault.into()),
    };
    let at = || RecordLocation { file: file_name(lsn), offset: 0, lsn };
    let state = fed.and_then(|()| decoder.finish());
    let state =
        state.map_err(|malformed| Failure::Record { at: at(), found: malformed.to_string() })?;
    let (stored, found) = (StateHash(footer.state_hash), state.facts().hash());
    match stored == found && state.last_lsn().0 == lsn.0 {
        true => Ok(Ok((state, footer))),
        false => Err(Failure::Unsound {
            at: at(),
            law: "SnapshotsFollowTheLog".to_owned(),
            found: format!("it says that its state has hash {stored}, and it has {found}"),
        }),
    }
}

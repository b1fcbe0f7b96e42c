//! The file in which a command finds where an earlier attempt left off, and leaves word for the next
//! one: `$TENURE_CHECKPOINT`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use tenure_sdk::{Failure, LeasedTask, Output};

use super::artifacts::Folder;

/// The largest checkpoint that a server takes.
const CHECKPOINT_BYTES_MAX: usize = 64 << 10;

/// The file of one attempt, in a folder of its own. It goes with the attempt.
#[derive(Debug)]
pub(super) struct CheckpointFile {
    path: PathBuf,
    /// What the task came with.
    before: Vec<u8>,
    _folder: Folder,
}

impl CheckpointFile {
    /// Makes the folder, and the file if an earlier attempt left a checkpoint.
    pub(super) fn of(task: &LeasedTask) -> Result<Self, Failure> {
        let failed = |error| Failure::new(format!("no file for the checkpoint: {error}"));
        let folder = Folder::make(&std::env::temp_dir(), "checkpoint").map_err(failed)?;
        let path = folder.path().join("checkpoint");
        let before = task.checkpoint_bytes().to_vec();
        if !before.is_empty() {
            fs::write(&path, &before).map_err(failed)?;
        }
        Ok(Self { path, before, _folder: folder })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Hands what the command has left in the file to the next attempt, if one follows.
    pub(super) fn hand_on(&self, result: Result<Output, Failure>) -> Result<Output, Failure> {
        result.map_err(|failure| match self.read() {
            Some(left) if left.len() > CHECKPOINT_BYTES_MAX => {
                tracing::warn!(
                    "a command left more than {CHECKPOINT_BYTES_MAX} bytes in $TENURE_CHECKPOINT; \
                     they are dropped, and the task keeps the checkpoint that it has"
                );
                failure
            }
            Some(left) if !left.is_empty() && left != self.before => failure.checkpoint(left),
            Some(_) | None => failure,
        })
    }

    /// At most one byte more than may be handed on.
    fn read(&self) -> Option<Vec<u8>> {
        let mut left = Vec::new();
        let file = fs::File::open(&self.path).ok()?;
        file.take(CHECKPOINT_BYTES_MAX as u64 + 1).read_to_end(&mut left).ok()?;
        Some(left)
    }
}

//! Backups: a copy of everything that a server has acknowledged, as a stream of files.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tenure_proto::v1;
use tonic::Streaming;
use v1::backup_part::Part;

use crate::error::Error;

/// How much of the log a backup holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackupScope {
    /// The records since the older of the server's two snapshots, and that snapshot.
    #[default]
    SinceSnapshot,
    /// All records that the server still has.
    WholeLog,
}

/// What a backup consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupContents {
    /// The LSN of the last record in the backup.
    pub lsn: u64,
    /// The LSN of the oldest record that the backup can be restored to; zero for the first one.
    pub since_lsn: u64,
    /// The number of files.
    pub files: u64,
    /// The number of bytes in all files.
    pub bytes: u64,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFile {
    /// The path of the file in the data folder; `blobs/ab/…` for the bytes of an artifact.
    pub name: String,
    /// The number of bytes that follow.
    pub bytes: u64,
    /// The length of the file, which is padded with zeros.
    pub size: u64,
}

/// An item of a [`Backup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupPart {
    /// The next file; its bytes follow.
    File(BackupFile),
    /// The next bytes of the current file.
    Bytes(Vec<u8>),
}

/// A backup that is being received: a stream of files, each followed by its bytes.
#[derive(Debug)]
pub struct Backup {
    contents: BackupContents,
    parts: Streaming<v1::BackupPart>,
}

impl Backup {
    pub(crate) async fn begin(mut parts: Streaming<v1::BackupPart>) -> Result<Self, Error> {
        let first = parts.message().await.map_err(Error::from_status)?;
        let Some(Part::Contents(contents)) = first.and_then(|first| first.part) else {
            return Err(Error::unavailable("the server sent a backup without its contents"));
        };
        let v1::BackupContents { lsn, since_lsn, files, bytes } = contents;
        Ok(Self { contents: BackupContents { lsn, since_lsn, files, bytes }, parts })
    }

    /// What the backup consists of.
    #[must_use]
    pub fn contents(&self) -> BackupContents {
        self.contents
    }

    /// The next part; none at the end.
    pub async fn next(&mut self) -> Option<Result<BackupPart, Error>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for Backup {
    type Item = Result<BackupPart, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(part) = ready!(Pin::new(&mut self.parts).poll_next(context)) else {
            return Poll::Ready(None);
        };
        let part = part.map_err(Error::from_status).and_then(|part| match part.part {
            Some(Part::File(v1::BackupFile { name, bytes, size })) => {
                Ok(BackupPart::File(BackupFile { name, bytes, size }))
            }
            Some(Part::Bytes(bytes)) => Ok(BackupPart::Bytes(bytes)),
            Some(Part::Contents(_)) | None => {
                Err(Error::unavailable("the server sent a part of a backup that makes no sense"))
            }
        });
        Poll::Ready(Some(part))
    }
}

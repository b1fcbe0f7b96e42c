//! Artifacts as a completion hands them in: names and kinds are parsed, and the bytes are kept
//! before anything is decided.

use std::sync::Arc;

use bytes::Bytes;
use tenure_api::{Binary, NewArtifact};
use tenure_code::{Code, Echo};
use tenure_core::command::ReportTasks;
use tenure_record::artifact::{Artifact, ArtifactName, MediaType, Sha256, check_together};

use crate::app::App;
use crate::artifacts::blobs::Blobs;
use crate::problem::Problem;

/// Where the bytes of an artifact are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Data(Bytes),
    Blob(Sha256),
}

/// A file whose name is right, and whose bytes are not kept yet.
#[derive(Clone, Debug)]
pub(crate) struct Handed {
    pub name: ArtifactName,
    pub media_type: MediaType,
    pub content: Content,
}

/// All that one completion hands in.
pub(crate) fn parse(artifacts: Vec<NewArtifact>) -> Result<Vec<Handed>, Problem> {
    let handed: Vec<Handed> = artifacts.into_iter().map(parse_one).collect::<Result<_, _>>()?;
    check_together(handed.iter().map(|it| &it.name))?;
    Ok(handed)
}

fn parse_one(artifact: NewArtifact) -> Result<Handed, Problem> {
    let NewArtifact { name, media_type, data, blob } = artifact;
    let name = ArtifactName::parse(&name)?;
    let content = match (data, blob) {
        (Some(Binary(data)), None) => Content::Data(data),
        (None, Some(blob)) => Content::Blob(Sha256::parse(&blob)?),
        (None, None) | (Some(_), Some(_)) => {
            return Err(Problem::invalid(format!(
                "the artifact {} needs its bytes: give `data`, or `blob` with the SHA-256 of an \
                 uploaded file, and not both",
                Echo(name.as_str())
            )));
        }
    };
    let media_type = media_type.as_deref().map(MediaType::parse).transpose()?.unwrap_or_default();
    Ok(Handed { name, media_type, content })
}

/// Keeps the bytes of each, durably; only then may a command name them.
pub(crate) async fn keep(app: &App, handed: Vec<Handed>) -> Result<Vec<Artifact>, Problem> {
    if handed.is_empty() {
        return Ok(Vec::new());
    }
    let blobs = Arc::clone(&app.blobs);
    let kept = tokio::task::spawn_blocking(move || {
        handed.into_iter().map(|it| keep_one(&blobs, it)).collect()
    });
    kept.await.map_err(|_| Problem::stopping())?
}

/// Keeps the files of every completion in a batch of reports.
pub(crate) async fn keep_each(
    app: &App,
    reports: &mut ReportTasks,
    handed: Vec<Vec<Handed>>,
) -> Result<(), Problem> {
    for (report, handed) in reports.completes.iter_mut().zip(handed) {
        report.artifacts = keep(app, handed).await?;
    }
    Ok(())
}

fn keep_one(blobs: &Blobs, handed: Handed) -> Result<Artifact, Problem> {
    let Handed { name, media_type, content } = handed;
    let (sha256, bytes) = match content {
        Content::Data(data) => {
            let sha256 = blobs.keep_bytes(&data).map_err(|error| disk(&error))?;
            (sha256, data.len() as u64)
        }
        Content::Blob(sha256) => match blobs.touch(sha256).map_err(|error| disk(&error))? {
            Some(bytes) => (sha256, bytes),
            None => {
                return Err(Problem::invalid(format!(
                    "there is no blob {sha256}, which the artifact {} names; upload it first with \
                     PUT /v1/blobs/{sha256}",
                    Echo(name.as_str())
                )));
            }
        },
    };
    Ok(Artifact { name, media_type, bytes, sha256 })
}

/// The disk said no while a blob was written.
pub(crate) fn disk(error: &std::io::Error) -> Problem {
    if error.kind() == std::io::ErrorKind::StorageFull {
        let detail = "there is no room for the file; make some, and send it again";
        return Problem::new(Code::DiskFull, detail);
    }
    Problem::new(Code::Unavailable, format!("the file could not be kept: {error}; try again"))
}

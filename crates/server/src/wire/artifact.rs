//! Artifacts as a completion hands them in: names and kinds are parsed, and the bytes are kept
//! before anything is decided.

use std::sync::Arc;

use base64::Engine;
use serde::Deserialize;
use tenure_code::{Code, Echo};
use tenure_core::command::ReportTasks;
use tenure_record::artifact::{Artifact, ArtifactName, MediaType, Sha256, check_together};
use utoipa::ToSchema;

use crate::app::App;
use crate::artifacts::blobs::Blobs;
use crate::problem::Problem;

/// A file that a completion hands in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArtifactBody {
    /// A relative path, such as `report.pdf`.
    #[schema(max_length = 200, min_length = 1)]
    name: String,
    /// `application/octet-stream` if not given.
    media_type: Option<String>,
    /// Its bytes, in base64; not together with `blob`.
    data: Option<String>,
    /// The SHA-256 of a file that was uploaded with `PUT /v1/blobs/{sha256}`.
    blob: Option<String>,
}

/// Where the bytes of an artifact are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Data(Vec<u8>),
    Blob(Sha256),
}

/// A file whose name is right, and whose bytes are not kept yet.
#[derive(Clone, Debug)]
pub(crate) struct Handed {
    pub name: ArtifactName,
    pub media_type: MediaType,
    pub content: Content,
}

impl ArtifactBody {
    fn parse(self) -> Result<Handed, Problem> {
        let name = ArtifactName::parse(&self.name)?;
        let content = match (self.data, self.blob) {
            (Some(data), None) => {
                let engine = base64::engine::general_purpose::STANDARD;
                let data = engine.decode(data).map_err(|error| {
                    let name = Echo(name.as_str());
                    Problem::invalid(format!("data of the artifact {name} is no base64: {error}"))
                })?;
                Content::Data(data)
            }
            (None, Some(blob)) => Content::Blob(Sha256::parse(&blob)?),
            (None, None) | (Some(_), Some(_)) => {
                return Err(Problem::invalid(format!(
                    "the artifact {} needs its bytes: give `data` in base64, or `blob` with the \
                     SHA-256 of an uploaded file, and not both",
                    Echo(name.as_str())
                )));
            }
        };
        Ok(Handed { name, media_type: media_type(self.media_type.as_deref())?, content })
    }
}

/// What kind of file it is, or that nothing is known.
pub(crate) fn media_type(text: Option<&str>) -> Result<MediaType, Problem> {
    Ok(text.map(MediaType::parse).transpose()?.unwrap_or_default())
}

/// All that one completion hands in.
pub(crate) fn parse(bodies: Option<Vec<ArtifactBody>>) -> Result<Vec<Handed>, Problem> {
    let bodies = bodies.unwrap_or_default();
    let handed: Vec<Handed> =
        bodies.into_iter().map(ArtifactBody::parse).collect::<Result<_, _>>()?;
    check(handed)
}

/// Those that can be handed in together.
pub(crate) fn check(handed: Vec<Handed>) -> Result<Vec<Handed>, Problem> {
    check_together(handed.iter().map(|it| &it.name))?;
    Ok(handed)
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

/// The same for the completions of a report.
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

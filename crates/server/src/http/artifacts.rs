//! Artifacts of runs: which there are, and their bytes. And blobs, which are uploaded before a
//! completion names them.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http_body_util::BodyExt;
use tenure_api as api;
use tenure_code::{Code, Echo};
use tenure_coordinator::ArtifactInfo;
use tenure_coordinator::request::ListArtifacts;
use tenure_core::state::ArtifactState;
use tenure_record::artifact::Sha256;
use tenure_record::id::RunId;

use super::{Path, json, number};
use crate::admission::body_budget::drain;
use crate::app::App;
use crate::artifacts::blobs::{Lost, NotKept, Upload};
use crate::json as parse;
use crate::limits::{
    BLOB_BYTES_MAX, BLOB_IDLE_TIMEOUT, BLOB_PIECE_BYTES, BLOB_RATE_MIN_BYTES_PER_S, BLOB_TIMEOUT,
};
use crate::problem::Problem;
use crate::wire::artifact::disk;
use crate::wire::list;

type Outcome = Result<Response, Problem>;

#[utoipa::path(get, path = "/v1/runs/{id}/artifacts", tag = "runs", summary = "The files that tasks of a run handed in", params(("id" = u64, Path), api::PageQuery), responses((status = 200, description = "A page", body = api::Page<api::Artifact>), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let api::PageQuery { limit, cursor } = parse::query(query.as_deref())?;
    // The cursor is the number of artifacts on the pages before.
    let before: usize = list::cursor(cursor.as_deref())?.unwrap_or_default();
    let limit = list::limit(limit)?;
    let run = RunId(number(&id)?);
    let mut artifacts = artifacts(&app, run).await?;
    let end = before.saturating_add(limit);
    let next_cursor = (end < artifacts.len()).then(|| end.to_string());
    artifacts.truncate(end);
    artifacts.drain(..before.min(artifacts.len()));
    let store = Arc::clone(&app.store);
    // It looks at files.
    let states = tokio::task::spawn_blocking(move || {
        let state = |it: &ArtifactInfo| match it.state {
            ArtifactState::Staged => api::ArtifactState::Staged,
            ArtifactState::Committed if store.has(run, it) => api::ArtifactState::Published,
            ArtifactState::Committed => api::ArtifactState::Committed,
        };
        let states: Vec<_> = artifacts.iter().map(state).collect();
        (artifacts, states)
    });
    let (artifacts, states) = states.await.map_err(|_| Problem::stopping())?;
    let shown = artifacts.into_iter().zip(states).map(|(it, state)| api::Artifact {
        name: it.name,
        media_type: it.media_type,
        bytes: it.bytes,
        sha256: it.sha256.to_string(),
        node: it.node,
        state,
    });
    Ok(json(&api::Page { items: shown.collect(), next_cursor }))
}

#[utoipa::path(get, path = "/v1/runs/{id}/artifacts/{name}", tag = "runs", summary = "The bytes of an artifact", params(("id" = u64, Path), ("name" = String, Path)), responses((status = 200, description = "The file, with its media type", content_type = "application/octet-stream"), (status = 304, description = "It is the one that `If-None-Match` names"), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    Path((id, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Outcome {
    let run = RunId(number(&id)?);
    let artifacts = artifacts(&app, run).await?;
    let Some(artifact) = artifacts.into_iter().rfind(|it| it.name == name) else {
        let detail = format!(
            "run {run} has no artifact {}; GET /v1/runs/{run}/artifacts lists those it has",
            Echo(&name)
        );
        return Err(Problem::new(Code::NotFound, detail));
    };
    let tag = format!("\"{}\"", artifact.sha256);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = match known.is_some_and(|known| known.split(',').any(|it| it.trim() == tag))
    {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => content(&app, run, &artifact).await?,
    };
    let headers = response.headers_mut();
    for (key, value) in [
        (header::CONTENT_TYPE, artifact.media_type.clone()),
        (header::ETAG, tag),
        (header::CONTENT_DISPOSITION, disposition(&artifact.name)),
        // Strangers choose what is in it: it must do nothing in the name of this server.
        (
            header::CONTENT_SECURITY_POLICY,
            "sandbox; default-src 'none'; frame-ancestors 'none'".to_owned(),
        ),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(key, value);
        }
    }
    Ok(response)
}

async fn artifacts(app: &App, run: RunId) -> Result<Vec<ArtifactInfo>, Problem> {
    app.ask(ListArtifacts(run)).await
}

/// The bytes of an artifact, once it is known that they are the right ones.
async fn content(app: &App, run: RunId, artifact: &ArtifactInfo) -> Outcome {
    let (blobs, sha256, bytes) = (Arc::clone(&app.blobs), artifact.sha256, artifact.bytes);
    let file = tokio::task::spawn_blocking(move || {
        blobs.check(sha256, bytes)?;
        blobs.read(sha256, bytes)
    });
    let file =
        file.await.map_err(|_| Problem::stopping())?.map_err(|lost| told(run, artifact, &lost))?;
    let pieces = stream::try_unfold(file, |mut file| async move {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; BLOB_PIECE_BYTES];
            let some = file.read(&mut piece)?;
            piece.truncate(some);
            Ok::<_, std::io::Error>((Bytes::from(piece), file))
        });
        let (piece, file) = read.await.map_err(std::io::Error::other)??;
        Ok::<_, std::io::Error>((!piece.is_empty()).then_some((piece, file)))
    });
    Ok(([(header::CONTENT_LENGTH, bytes)], Body::from_stream(pieces)).into_response())
}

fn told(run: RunId, artifact: &ArtifactInfo, lost: &Lost) -> Problem {
    let (name, sha256) = (Echo(&artifact.name), artifact.sha256);
    let why = match lost {
        Lost::Missing => "is missing".to_owned(),
        Lost::Damaged => "has other bytes than were handed in".to_owned(),
        Lost::Disk(error) => format!("cannot be read: {error}"),
    };
    let detail = format!(
        "the file of artifact {name} of run {run}, blob {sha256}, {why}; bring it back from a \
         backup of the data folder, or upload it again with PUT /v1/blobs/{sha256}"
    );
    tracing::error!("{detail}");
    Problem::new(Code::ArtifactLost, detail)
}

/// A file to be saved, never shown. The name in it is for people.
fn disposition(name: &str) -> String {
    let file = name.rsplit('/').next().unwrap_or(name);
    let plain: String = file
        .chars()
        .map(|c| if c.is_ascii_graphic() && !"\"\\%".contains(c) { c } else { '_' })
        .collect();
    let mut encoded = String::new();
    for byte in file.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

#[utoipa::path(put, path = "/v1/blobs/{sha256}", tag = "workers", summary = "Upload a file that a completion will name", params(("sha256" = String, Path)), request_body(content = Vec<u8>, content_type = "application/octet-stream"), responses((status = 201, description = "It is kept", body = api::Blob), (status = 200, description = "It was there already", body = api::Blob), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Path(sha256): Path<String>,
    request: Request,
) -> Outcome {
    let mut body = request.into_body();
    let kept = take(&app, &sha256, &mut body).await;
    if !matches!(kept, Ok((StatusCode::CREATED, ..))) {
        // So that its sender hears why.
        drain(body);
    }
    let (status, sha256, bytes) = kept?;
    let shown = json(&api::Blob { sha256: sha256.to_string(), bytes });
    Ok((status, shown).into_response())
}

async fn take(
    app: &App,
    sha256: &str,
    body: &mut Body,
) -> Result<(StatusCode, Sha256, u64), Problem> {
    let sha256 = Sha256::parse(sha256)?;
    if axum::body::HttpBody::size_hint(body).lower() > BLOB_BYTES_MAX {
        return Err(too_large());
    }
    let Some(_place) = app.blobs.place() else {
        return Err(Problem::new(
            Code::Overloaded,
            "many files are being uploaded; try again later",
        ));
    };
    let blobs = Arc::clone(&app.blobs);
    let touched = blocking(move || blobs.touch_whole(sha256).map_err(|error| disk(&error))).await?;
    if let Some(bytes) = touched {
        return Ok((StatusCode::OK, sha256, bytes));
    }
    let blobs = Arc::clone(&app.blobs);
    let upload = blocking(move || blobs.begin().map_err(|error| disk(&error))).await?;
    let upload = receive(upload, body).await?;
    let blobs = Arc::clone(&app.blobs);
    let bytes = blocking(move || {
        blobs.keep(upload, sha256).map_err(|not_kept| match not_kept {
            NotKept::Disk(error) => disk(&error),
            NotKept::Differs(found) => Problem::invalid(format!(
                "the bytes that came have the SHA-256 {found}, not {sha256}; nothing was kept: send \
                 the file again, or put it under its own hash"
            )),
        })
    });
    Ok((StatusCode::CREATED, sha256, bytes.await?))
}

/// Writes what comes, piece by piece. Only the time counts in which the client is waited for.
async fn receive(mut upload: Upload, body: &mut Body) -> Result<Upload, Problem> {
    let begun = Instant::now();
    let (mut waited, mut received) = (Duration::ZERO, 0);
    let mut piece = Vec::new();
    loop {
        let patience = patience(begun.elapsed(), waited, received);
        let asked = Instant::now();
        let frame = tokio::time::timeout(patience, body.frame()).await;
        waited += asked.elapsed();
        let frame = frame.map_err(|_| too_slow())?;
        let is_end = frame.is_none();
        if let Some(frame) = frame {
            let frame = frame.map_err(|error| {
                Problem::invalid(format!("the file could not be read: {error}; send it again"))
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if upload.bytes() + (piece.len() + data.len()) as u64 > BLOB_BYTES_MAX {
                return Err(too_large());
            }
            received += data.len() as u64;
            piece.extend_from_slice(&data);
        }
        if piece.len() >= BLOB_PIECE_BYTES || (is_end && !piece.is_empty()) {
            let full = std::mem::take(&mut piece);
            upload = blocking(move || match upload.write(&full) {
                Ok(()) => Ok(upload),
                Err(error) => Err(disk(&error)),
            })
            .await?;
        }
        if is_end {
            return Ok(upload);
        }
    }
}

/// How long the next bytes of an upload may take. A client that sends less than the lowest rate uses
/// up [`BLOB_IDLE_TIMEOUT`] and is cut off, so that it does not hold one of the few places for long.
fn patience(elapsed: Duration, waited: Duration, received: u64) -> Duration {
    let earned = Duration::from_secs_f64(received as f64 / BLOB_RATE_MIN_BYTES_PER_S as f64);
    let left = (BLOB_IDLE_TIMEOUT + earned).saturating_sub(waited);
    left.min(BLOB_IDLE_TIMEOUT).min(BLOB_TIMEOUT.saturating_sub(elapsed))
}

fn too_slow() -> Problem {
    let detail = format!(
        "an upload may be silent for {} s, must bring {BLOB_RATE_MIN_BYTES_PER_S} bytes a second \
         beyond that, and may take {} s; nothing was kept: send the file again, faster or in parts",
        BLOB_IDLE_TIMEOUT.as_secs(),
        BLOB_TIMEOUT.as_secs()
    );
    Problem::new(Code::RequestTimeout, detail)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Problem::stopping())?
}

fn too_large() -> Problem {
    let detail = format!("a blob may have {BLOB_BYTES_MAX} bytes; split the file");
    Problem::new(Code::PayloadTooLarge, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long an upload lasts that sends so many bytes a second, a second apart.
    fn lasts(bytes_per_s: u64) -> Duration {
        let second = Duration::from_secs(1);
        let (mut waited, mut received) = (Duration::ZERO, 0);
        while patience(waited, waited, received) >= second {
            waited += second;
            received += bytes_per_s;
        }
        waited
    }

    #[test]
    fn an_upload_that_drips_ends_soon_and_a_steady_one_does_not() {
        assert_eq!(lasts(1), BLOB_IDLE_TIMEOUT);
        assert!(lasts(BLOB_RATE_MIN_BYTES_PER_S / 2) <= 2 * BLOB_IDLE_TIMEOUT);
        assert_eq!(lasts(BLOB_RATE_MIN_BYTES_PER_S), BLOB_TIMEOUT);
        // What came in a burst does not buy a long silence.
        let silence = patience(Duration::ZERO, Duration::ZERO, BLOB_BYTES_MAX);
        assert_eq!(silence, BLOB_IDLE_TIMEOUT);
        // A slow disk of ours is not the client's fault.
        let slow_disk = patience(10 * BLOB_IDLE_TIMEOUT, Duration::ZERO, 1);
        assert_eq!(slow_disk, BLOB_IDLE_TIMEOUT);
    }
}

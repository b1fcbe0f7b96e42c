//! `tenure submit --batch`: the tasks of a file, chunk by chunk and in order.
//!
//! The next chunk is sent when the one before is durable, so what is in is always the beginning of
//! the file: a run that stopped can be taken up where it ended. While a chunk is under way, the
//! next one is read.

mod chunks;
mod progress;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::time::Duration;

use serde::Serialize;
use tenure_sdk::{Client, Code, Error};
use tokio::time::Instant;

use self::chunks::{Chunk, Chunks};
use self::progress::Progress;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::output::{Lines, Listener};

/// How long a server may have no room for a chunk.
const NO_ROOM_MAX: Duration = Duration::from_secs(60);

pub(super) fn run(
    file: &str,
    from_line: u64,
    server: &Server,
    format: Format,
) -> Result<(), Failure> {
    let (from, bytes) = open(file)?;
    let chunks = Chunks::new(BufReader::new(from), from_line);
    server.with(|client| async move {
        let submitted = Submitted::new(file, from_line, format);
        submitted.all(&client, chunks, Progress::new(bytes)).await
    })
}

/// What to read, and how much it is if that is known.
fn open(file: &str) -> Result<(Box<dyn Read + Send>, Option<u64>), Failure> {
    if file == "-" {
        return Ok((Box::new(io::stdin()), None));
    }
    let cannot = |error| Failure::Usage(format!("the batch {file:?} cannot be read: {error}"));
    let opened = File::open(file).map_err(cannot)?;
    let metadata = opened.metadata().map_err(cannot)?;
    let bytes = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(opened), bytes))
}

/// What is in so far.
struct Submitted<'a> {
    file: &'a str,
    from_line: u64,
    format: Format,
    /// Whoever wants only the first ids still wants all tasks.
    listener: Listener,
    ids: Vec<u64>,
    /// The line after the last one that is in.
    next_line: u64,
}

#[derive(Serialize)]
struct Summary<'a> {
    submitted: usize,
    next_line: u64,
    ids: &'a [u64],
}

impl<'a> Submitted<'a> {
    fn new(file: &'a str, from_line: u64, format: Format) -> Self {
        let (listener, ids) = (Listener::There, Vec::new());
        Self { file, from_line, format, listener, ids, next_line: from_line }
    }

    async fn all(
        mut self,
        client: &Client,
        chunks: Chunks,
        progress: Progress,
    ) -> Result<(), Failure> {
        let outcome = self.chunk_by_chunk(client, chunks, &progress).await;
        progress.end();
        if self.format == Format::Json {
            let mut out = Lines::new();
            let (submitted, next_line) = (self.ids.len(), self.next_line);
            json::print(&mut out, &Summary { submitted, next_line, ids: &self.ids });
            out.finish();
        }
        outcome
    }

    async fn chunk_by_chunk(
        &mut self,
        client: &Client,
        chunks: Chunks,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let (mut chunks, mut read) = next(chunks).await;
        loop {
            let chunk = match read {
                Ok(None) => return Ok(()),
                Ok(Some(chunk)) => chunk,
                Err(sentence) => {
                    let cause = Box::new(Failure::Usage(sentence));
                    return Err(Failure::HalfDone { cause, said: None, told: self.go_on() });
                }
            };
            let (ids, ahead) = tokio::join!(submit(client, &chunk), next(chunks));
            (chunks, read) = ahead;
            match ids {
                Ok(ids) => self.take(&chunk, ids, progress),
                Err(error) => return Err(self.refused(&chunk, error)),
            }
        }
    }

    fn take(&mut self, chunk: &Chunk, ids: Vec<u64>, progress: &Progress) {
        self.next_line = chunk.end_line;
        progress.tell(chunk.read_bytes, (self.ids.len() + ids.len()) as u64);
        if self.format == Format::Table {
            progress.aside(|| self.listener.tell(&ids));
        }
        self.ids.extend(ids);
    }

    fn refused(&self, chunk: &Chunk, error: Error) -> Failure {
        let said = chunk.by_lines(error.message());
        let told = match error.is_definite() {
            true => self.go_on(),
            false => format!("{}; {}", unknown(chunk), self.go_on()),
        };
        Failure::HalfDone { cause: Box::new(Failure::Refused(error)), said, told }
    }

    /// What is in, and how the rest gets there.
    fn go_on(&self) -> String {
        let (from, next) = (self.from_line, self.next_line);
        let done = match self.ids.len() {
            0 => "nothing was submitted".to_owned(),
            count => format!("{count} tasks of lines {from} to {} are in", next - 1),
        };
        format!("{done}; go on with `tenure submit --batch {} --from-line {next}`", self.file)
    }
}

fn unknown(chunk: &Chunk) -> String {
    let (first, last) = (chunk.start_line, chunk.end_line - 1);
    let advice = match chunk.tasks.iter().all(|task| task.key.is_some()) {
        true => "they have keys, so to submit them again is safe",
        false => "look with `tenure task list` before you submit them again",
    };
    format!("nobody knows whether lines {first} to {last} are in: {advice}")
}

/// Submits a chunk. A server that has no room now is asked again for a while.
async fn submit(client: &Client, chunk: &Chunk) -> Result<Vec<u64>, Error> {
    let until = Instant::now() + NO_ROOM_MAX;
    loop {
        let tasks = chunk.tasks.iter().cloned();
        match client.tasks().submit_batch(tasks).await {
            Err(error)
                if error.is_retryable()
                    && *error.code() != Code::Unavailable
                    && Instant::now() < until =>
            {
                tokio::time::sleep(error.retry_after().unwrap_or_default()).await;
            }
            done => return done,
        }
    }
}

/// Reads the next chunk beside everything else: it may have to wait for whoever writes it.
async fn next(mut chunks: Chunks) -> (Chunks, Result<Option<Chunk>, String>) {
    let read = tokio::task::spawn_blocking(move || {
        let read = chunks.next();
        (chunks, read)
    });
    match read.await {
        Ok(read) => read,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

//! `tenure run start NAME --batch FILE`: many runs of a workflow, one JSON object per line. Lines go
//! to the server in batches, each of which begins as a whole or not at all.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use serde::Deserialize;
use serde_json::value::RawValue;
use tenure_sdk::api::Ids;
use tenure_sdk::{Client, Code, NewRun};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::output::Lines;

/// Runs that are sent together. A batch that is too much for one record is halved.
const BATCH_RUNS: usize = 500;

/// A line of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    input: Option<Box<RawValue>>,
    key: Option<String>,
    version: Option<u32>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

pub(super) fn run(
    workflow: &str,
    path: &str,
    server: &Server,
    format: Format,
) -> Result<(), Failure> {
    let runs = read(workflow, path)?;
    server.with(|client| async move {
        let (ids, failed) = start(&client, workflow, runs).await;
        let mut out = Lines::new();
        match format {
            Format::Table => ids.iter().for_each(|id| out.print(id)),
            Format::Json => json::print(&mut out, &Ids { ids: ids.clone() }),
        }
        out.finish();
        match failed {
            None => Ok(()),
            Some(error) => {
                let begun = ids.len();
                let told = format!(
                    "the first {begun} runs of the file have begun, and none of those after them \
                     that were sent in whole batches; go on after line {begun}"
                );
                let cause = Box::new(Failure::Refused(error));
                Err(Failure::HalfDone { cause, said: None, told })
            }
        }
    })
}

/// Starts batch after batch. Gives the ids of the runs that began, and why it stopped.
async fn start(
    client: &Client,
    workflow: &str,
    runs: Vec<NewRun>,
) -> (Vec<u64>, Option<tenure_sdk::Error>) {
    let (mut ids, mut size) = (Vec::with_capacity(runs.len()), BATCH_RUNS);
    while ids.len() < runs.len() {
        let next = &runs[ids.len()..runs.len().min(ids.len() + size)];
        match client.runs().start_batch(workflow, next.iter().cloned()).await {
            Ok(begun) => ids.extend(begun),
            Err(error) if *error.code() == Code::PayloadTooLarge && size > 1 => {
                size = next.len().div_ceil(2);
            }
            Err(error) => return (ids, Some(error)),
        }
    }
    (ids, None)
}

fn read(workflow: &str, path: &str) -> Result<Vec<NewRun>, Failure> {
    let cannot = |error| Failure::Usage(format!("the file {path:?} cannot be read: {error}"));
    let lines: Box<dyn BufRead> = match path {
        "-" => Box::new(io::stdin().lock()),
        path => Box::new(BufReader::new(File::open(path).map_err(cannot)?)),
    };
    let mut runs = Vec::new();
    for (number, line) in (1..).zip(lines.lines()) {
        let line = line.map_err(cannot)?;
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |error| {
            Failure::Usage(format!(
                "line {number} of {path:?} is no run: {error}; a line is like {{\"input\": {{}}, \
                 \"key\": \"A-1\"}}"
            ))
        };
        let Line { input, key, version, tags } = serde_json::from_str(&line).map_err(wrong)?;
        let mut run = NewRun::of(workflow);
        if let Some(input) = input {
            run = run.input(input.get());
        }
        if let Some(key) = key {
            run = run.key(key);
        }
        if let Some(version) = version {
            run = run.version(version);
        }
        runs.push(tags.into_iter().fold(run, |run, (key, value)| run.tag(key, value)));
    }
    Ok(runs)
}

//! `tenure run redecide`: what today's rules would decide, beside what was decided.

use clap::Args;
use serde::Serialize;
use tenure_sdk::Redecided;

use super::history::definition;
use super::story::Story;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::moment::{clock, rfc_3339};
use crate::output::Lines;
use crate::plain;
use crate::shown::{self, Verbatim};
use crate::style::{self, Paint};

pub(super) const EXAMPLES: &str = "\
The server rebuilds the state just before that record from its log, reads from the record what was
asked, and decides it again by its own rules. Nothing is written, and what is recorded stays: a log
is never decided again when it is replayed. It shows what an upgrade would do.

Examples:
  tenure run history 17           which records there are
  tenure run redecide 17 42

Exit codes:
  0  the same would be decided
  1  something else would, or it was refused";

#[derive(Debug, Args)]
pub(super) struct Redecide {
    /// The run's number.
    id: u64,

    /// The LSN of a record of its history.
    lsn: u64,
}

pub(super) fn run(redecide: &Redecide, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let Redecide { id, lsn } = *redecide;
        let found = client.redecide_run(id, lsn).await?;
        let mut out = Lines::new();
        match format {
            Format::Json => shown::print(&mut out, &ShownRedecided::of(id, &found)),
            Format::Table => {
                // A run that is forgotten can still be decided again, with numbers for names.
                let definition = match client.run(id).await {
                    Ok(run) => definition(&client, &run).await?,
                    Err(_) => None,
                };
                print(&mut out, &Story::new(definition.as_ref()), &found);
            }
        }
        out.finish();
        match found.same {
            true => Ok(()),
            false => Err(Failure::Different { run_id: id, lsn }),
        }
    })
}

fn print(out: &mut Lines, story: &Story<'_>, found: &Redecided) {
    let paint = Paint::of_stdout();
    let cause = paint.draw(style::heading(), &story.cause(&found.cause));
    out.print(format_args!("LSN {}, {}: {cause}", found.lsn, clock(found.at)));
    match (found.same, &found.refused) {
        (true, _) => out.print("today's rules decide the same:"),
        (false, Some(refused)) => {
            let (code, detail) = (plain::line(&refused.code), plain::line(&refused.detail));
            out.print(format_args!("today's rules refuse it ({code}): {detail}"));
        }
        (false, None) => out.print("today's rules decide something else (- recorded, + today):"),
    }
    let mut told = |mark: char, decision: &[u8]| {
        for sentence in story.decision(decision) {
            let line = format!("  {mark} {sentence}");
            out.print(paint.draw(style::difference(mark), &line));
        }
    };
    for pair in &found.decisions {
        match (pair.same, &pair.recorded, &pair.decided) {
            (true, Some(recorded), _) => told('=', recorded),
            (_, recorded, decided) => {
                recorded.iter().for_each(|recorded| told('-', recorded));
                decided.iter().for_each(|decided| told('+', decided));
            }
        }
    }
}

#[derive(Debug, Serialize)]
struct ShownRedecided<'a> {
    run_id: u64,
    lsn: u64,
    at: String,
    same: bool,
    cause: Verbatim<'a>,
    decisions: Vec<ShownPair<'a>>,
    refused: Option<ShownRefusal<'a>>,
}

#[derive(Debug, Serialize)]
struct ShownPair<'a> {
    same: bool,
    recorded: Option<Verbatim<'a>>,
    decided: Option<Verbatim<'a>>,
}

#[derive(Debug, Serialize)]
struct ShownRefusal<'a> {
    code: &'a str,
    detail: &'a str,
}

impl<'a> ShownRedecided<'a> {
    fn of(run_id: u64, found: &'a Redecided) -> Self {
        let pair = |pair: &'a tenure_sdk::wire::RedecidedPair| ShownPair {
            same: pair.same,
            recorded: pair.recorded.as_deref().map(Verbatim),
            decided: pair.decided.as_deref().map(Verbatim),
        };
        let refused = found.refused.as_ref();
        Self {
            run_id,
            lsn: found.lsn,
            at: rfc_3339(found.at),
            same: found.same,
            cause: Verbatim(&found.cause),
            decisions: found.decisions.iter().map(pair).collect(),
            refused: refused.map(|it| ShownRefusal { code: &it.code, detail: &it.detail }),
        }
    }
}

//! `tenure run graph`: a run's workflow as text, for Graphviz or as a picture, and where the run
//! stands in it.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tenure_flow::Definition;
use tenure_graph::{Graph, Tally, Token, dot, svg, text};
use tenure_sdk::{Client, EventFilter, Run, Workflow};

use super::words::{error_words, standing_words};
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::moment::{clock, now, relative};
use crate::ui::output::Lines;
use crate::ui::pages::Range;
use crate::ui::style::{self, Paint};

pub(super) const EXAMPLES: &str = "\
Each node has its ways below it, in the order in which they are tried. Behind a way stands how often
it was taken (×2), and how many branches of its group have come to an end (3/5).

  ─▶ a way   ╌▶ after an error   ═▶ opens branches   ─▷ where branches meet

Examples:
  tenure run graph 17
  tenure run graph 17 --watch
  tenure run graph 17 --svg > run.svg
  tenure run graph 17 --dot | dot -Tpng > run.png";

/// While somebody watches, what happens together is drawn once.
const TOGETHER: Duration = Duration::from_millis(150);
/// Clears a terminal, and goes to its first place.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Picture {
    /// For Graphviz.
    #[arg(long)]
    dot: bool,

    /// As a picture.
    #[arg(long, conflicts_with = "dot")]
    svg: bool,
}

impl Picture {
    pub(crate) fn print(self, out: &mut Lines, graph: &Graph) {
        if self.dot {
            out.part(dot::render(graph));
        } else if self.svg {
            out.part(svg::render(graph));
        } else {
            let paint = Paint::of_stdout();
            let draw = |tone, text: &str| paint.draw(style::tone(tone), text);
            text::render(graph, &draw).into_iter().for_each(|line| out.print(line));
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Draw {
    /// The run's number.
    id: u64,

    #[command(flatten)]
    picture: Picture,

    /// Draw it again whenever something happens, until the run is over.
    #[arg(long, conflicts_with_all = ["dot", "svg"])]
    watch: bool,
}

pub(super) fn run(draw: &Draw, server: &Server, format: Format) -> Result<(), Failure> {
    if format == Format::Json {
        let sentence = "a graph is no JSON; give --dot or --svg, or ask for `tenure run tokens`";
        return Err(Failure::Usage(sentence.to_owned()));
    }
    server.with(|client| async move {
        match draw.watch {
            false => print(&client, draw).await.map(|_| ()),
            true => watch(&client, draw).await,
        }
    })
}

/// Draws it again and again.
async fn watch(client: &Client, draw: &Draw) -> Result<(), Failure> {
    let filter = EventFilter { run: Some(draw.id), ..EventFilter::default() };
    let mut events = client.watch(filter).await?;
    let mut told = std::pin::pin!(tokio::signal::ctrl_c());
    let clears = io::stdout().is_terminal();
    let mut is_first = true;
    loop {
        if clears {
            let mut out = Lines::new();
            out.part(CLEAR);
            out.finish();
        } else if !is_first {
            let mut out = Lines::new();
            out.print("");
            out.finish();
        }
        is_first = false;
        if print(client, draw).await?.finished_at.is_some() {
            return Ok(());
        }
        tokio::select! {
            Some(event) = events.next() => { event?; }
            _ = &mut told => return Ok(()),
        }
        let together = tokio::time::sleep(TOGETHER);
        let mut together = std::pin::pin!(together);
        loop {
            tokio::select! {
                Some(event) = events.next() => { event?; }
                () = &mut together => break,
            }
        }
    }
}

async fn print(client: &Client, draw: &Draw) -> Result<Run, Failure> {
    let run = client.runs().get(draw.id).await?;
    let workflow = client.workflows().get(&run.workflow, Some(run.version)).await?;
    let runs = client.runs();
    let tokens = Range::whole().fetch(async |page| runs.tokens(run.id, page).await).await?;
    let mut tally = Tally::new(definition(&workflow)?);
    tokens.items.iter().for_each(|token| add(&mut tally, token));
    let mut out = Lines::new();
    draw.picture.print(&mut out, &Graph::of_tally(tally, title(&run)));
    out.finish();
    Ok(run)
}

/// A definition that a server has, which it has checked.
pub(crate) fn definition(workflow: &Workflow) -> Result<Arc<Definition>, Failure> {
    let compiled = Definition::from_json(workflow.definition.as_bytes()).map_err(|faults| {
        let found = faults.first().map(ToString::to_string).unwrap_or_default();
        Failure::Usage(format!(
            "this version cannot read the definition that the server has: {found}; use the \
             server's version, or -o json"
        ))
    })?;
    Ok(Arc::new(compiled))
}

fn title(run: &Run) -> Vec<String> {
    let now = now();
    let state = &run.state;
    let end = run.finished_at.map(|at| format!(", over {}", relative(at, now)));
    let mut title = vec![
        format!("{} {}, run {}", run.workflow, run.version, run.id),
        format!(
            "{state}, began {} at {}{}",
            relative(run.started_at, now),
            clock(run.started_at),
            end.unwrap_or_default()
        ),
    ];
    title.extend(standing_words(run, now));
    title.extend(error_words(&run.error));
    title
}

/// Counts a token of the run.
fn add(tally: &mut Tally, token: &tenure_sdk::Token) {
    let error: serde_json::Value = token.error.parse().unwrap_or_default();
    tally.add(Token {
        id: token.id,
        parent: token.parent,
        node: &token.node,
        state: token.state.as_str(),
        via: token.via.as_deref(),
        path: &token.path,
        branch_total: token.branch_total,
        error: error["code"].as_str(),
    });
}

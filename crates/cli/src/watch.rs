//! `tenure watch`: what happens, as it happens, one line for each transition.

use std::io;
use std::os::fd::AsFd;

use clap::Args;
use tenure_sdk::{Event, EventFilter, RunEvent, RunState, TaskEvent, TaskState};
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::clock;
use crate::ui::output::Lines;
use crate::ui::plain;
use crate::ui::style::{self, Paint};

const EXAMPLES: &str = "\
It goes on until it is interrupted, also over a restart of the server, and misses nothing and shows
nothing twice. Times are UTC.

Examples:
  tenure watch
  tenure watch --queue mail
  tenure watch --run 3
  tenure watch --task 17 --after 0          all that happened to a task, and what will
  tenure watch -o json | jq 'select(.to == \"FAILED\")'";

/// Follow what happens, one line for each transition.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Watch {
    /// Only of this task.
    #[arg(long, value_name = "ID")]
    task: Option<u64>,

    /// Only of this run: its own steps, and those of its tasks.
    #[arg(long, value_name = "ID")]
    run: Option<u64>,

    /// Only of this queue.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,

    /// Begin after this record, or after one event of it as LSN.INDEX; 0 for all that the log has.
    /// From now on if not given.
    #[arg(long, value_name = "LSN", value_parser = parse_after)]
    after: Option<String>,
}

fn parse_after(text: &str) -> Result<String, String> {
    let (lsn, index) = text.split_once('.').unwrap_or((text, "0"));
    match (lsn.parse::<u64>(), index.parse::<u32>()) {
        (Ok(_), Ok(_)) => Ok(text.to_owned()),
        _ => Err("it must be an LSN, such as 42, or the id of an event, such as 42.0".to_owned()),
    }
}

pub(crate) fn run(watch: &Watch, server: &Server, format: Format) -> Result<(), Failure> {
    let filter = EventFilter {
        after: watch.after.clone(),
        task: watch.task,
        run: watch.run,
        queue: watch.queue.clone(),
    };
    server.with(|client| async move {
        let mut watch = client.watch(filter).await?;
        let paint = Paint::of_stdout();
        let mut out = Lines::new();
        let mut gone = std::pin::pin!(nobody_reads());
        let mut told = std::pin::pin!(tokio::signal::ctrl_c());
        loop {
            let event = tokio::select! {
                event = watch.next() => match event {
                    Some(event) => event?,
                    None => return Ok(()),
                },
                () = &mut gone => return Ok(()),
                _ = &mut told => return Ok(()),
            };
            match (format, &event) {
                (Format::Table, Event::Task(event)) => out.print(line(event, paint)),
                (Format::Table, Event::Run(event)) => out.print(run_line(event, paint)),
                (Format::Json, event) => json::print(&mut out, event),
            }
            out.flush();
        }
    })
}

/// Ends when standard output was closed at its other end, which a write would notice only with the
/// next event. Nothing is written here, so the pipe stays as it is for whoever shares it.
async fn nobody_reads() {
    let watched = io::stdout().as_fd().try_clone_to_owned();
    // What cannot be watched, such as a file, has no other end.
    let Ok(Ok(stdout)) = watched.map(|stdout| Sender::from_file_unchecked(stdout.into())) else {
        return std::future::pending().await;
    };
    if stdout.ready(Interest::ERROR).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn line(event: &TaskEvent, paint: Paint) -> String {
    let state = |state: Option<&TaskState>| {
        let style = state.map(style::state).unwrap_or_default();
        paint.draw(style, &format!("{:<9}", state.map_or("-", TaskState::as_str)))
    };
    let mut line = format!(
        "{}  {:>6}  {:<12}  {} → {}  {}",
        paint.draw(style::faint(), &clock(event.at)),
        event.task_id,
        plain::line(&event.queue),
        state(event.from.as_ref()),
        state(Some(&event.to)),
        plain::line(&event.event),
    );
    if event.attempt > 0 {
        line.push_str(&format!("  attempt {}", event.attempt));
    }
    if let Some(worker) = &event.worker {
        line.push_str(&format!("  {}", plain::line(worker)));
    }
    if let Some(reason) = &event.reason {
        line.push_str(&format!("  {}", plain::line(reason)));
    }
    if let Some(of) = event.dead_letter_of {
        line.push_str(&format!("  dead letter of {of}"));
    }
    line
}

/// A run has no queue, and its state before is not told.
fn run_line(event: &RunEvent, paint: Paint) -> String {
    let mut line = format!(
        "{}  {:>6}  {:<12}  {}  {}",
        paint.draw(style::faint(), &clock(event.at)),
        event.run_id,
        "run",
        paint.draw(
            event.to.as_ref().map(style::run_state).unwrap_or_default(),
            &format!("{:<21}", event.to.as_ref().map_or("-", RunState::as_str))
        ),
        plain::line(&event.event),
    );
    for text in [&event.workflow, &event.signal, &event.code].into_iter().flatten() {
        line.push_str(&format!("  {}", plain::line(text)));
    }
    line
}

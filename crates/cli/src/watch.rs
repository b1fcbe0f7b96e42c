//! `tenure watch`: what happens, as it happens, one line for each transition.

use std::io;
use std::os::fd::AsFd;

use clap::Args;
use tenure_sdk::{Event, WatchFrom};
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::shown::{self, ShownEvent};
use crate::ui::moment::clock;
use crate::ui::output::Lines;
use crate::ui::plain;
use crate::ui::style::{self, Paint, run_state_name, state_name};

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
    let mut from = watch.after.as_ref().map_or_else(WatchFrom::now, WatchFrom::after);
    if let Some(task) = watch.task {
        from = from.task(task);
    }
    if let Some(run) = watch.run {
        from = from.run(run);
    }
    if let Some(queue) = &watch.queue {
        from = from.queue(queue);
    }
    server.with(|client| async move {
        let mut watch = client.watch(from).await?;
        let paint = Paint::of_stdout();
        let mut out = Lines::new();
        let mut gone = std::pin::pin!(nobody_reads());
        let mut told = std::pin::pin!(tokio::signal::ctrl_c());
        loop {
            let event = tokio::select! {
                event = watch.next() => event?,
                () = &mut gone => return Ok(()),
                _ = &mut told => return Ok(()),
            };
            match format {
                Format::Table if event.task_id == 0 => out.print(run_line(&event, paint)),
                Format::Table => out.print(line(&event, paint)),
                Format::Json => shown::print(&mut out, &ShownEvent::of(&event)),
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

fn line(event: &Event, paint: Paint) -> String {
    let state = |state: i32, width: usize| {
        let name = state_name(state).unwrap_or("-");
        paint.draw(style::state(state), &format!("{name:<width$}"))
    };
    let mut line = format!(
        "{}  {:>6}  {:<12}  {} → {}  {}",
        paint.draw(style::faint(), &clock(event.at)),
        event.task_id,
        plain::line(&event.queue),
        state(event.from, 9),
        state(event.to, 9),
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
fn run_line(event: &Event, paint: Paint) -> String {
    let mut line = format!(
        "{}  {:>6}  {:<12}  {}  {}",
        paint.draw(style::faint(), &clock(event.at)),
        event.run_id.unwrap_or_default(),
        "run",
        paint.draw(
            style::run_state(event.run_state),
            &format!("{:<21}", run_state_name(event.run_state).unwrap_or("-"))
        ),
        plain::line(&event.event),
    );
    for text in [&event.workflow, &event.signal, &event.code].into_iter().flatten() {
        line.push_str(&format!("  {}", plain::line(text)));
    }
    line
}

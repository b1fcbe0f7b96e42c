//! `tenure dev`: a server, a worker that runs programs, sample tasks and workflows, and what to try
//! with them.

mod samples;
mod workflows;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tenure_server::{Durability, Hangup, Lines, News, Options, Upkeep, serve};

use self::workflows::Begun;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::output;
use crate::worker::exec;
use crate::worker::terms::Terms;

/// Tasks at a time.
const SLOTS: u32 = 4;
/// The folder of the sample workflows, in that of the log.
const SAMPLES: &str = "samples";

const EXAMPLES: &str = "\
The sample tasks are submitted once, and a run of each sample workflow begins once; a second start on
the same folder finds them there. The definitions and their scripts are in DIR/samples, to be read and
changed; they are registered as they are at each start.

Examples:
  tenure dev
  tenure dev --data /tmp/try --listen 127.0.0.1:0";

/// Run a server with a worker, sample tasks and sample workflows, to try things out.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Dev {
    /// The folder of the log; it is made if it is missing.
    #[arg(long, value_name = "DIR", default_value = "tenure-data")]
    data: PathBuf,

    /// Where to listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    listen: String,
}

pub(crate) fn run(dev: &Dev, server: &Server) -> Result<(), Failure> {
    let level = tracing::Level::WARN;
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false);
    log.with_max_level(level).init();
    let options = Options {
        data: dev.data.clone(),
        listen: dev.listen.clone(),
        durability: Durability::Sync,
        api_key: server.api_key.clone(),
        // It belongs to the terminal that it was started from.
        hangup: Hangup::Stop,
        lines: Lines::Quiet,
        upkeep: Upkeep::default(),
        archive: None,
        memory_max: None,
    };
    serve(&options, |news| match news {
        News::Replaying(progress) => tracing::info!(records = progress.records, "replaying"),
        News::Note(note) => tracing::warn!("{note}"),
        News::Started(_) => {}
        News::Ready(address) => {
            let (client, data) = (server.at(address), dev.data.clone());
            // It needs the server, which goes on only when this returns.
            std::thread::spawn(move || beside(&client, address, &data));
        }
    })
    .map_err(Failure::Server)?;
    output::say("tenure has stopped in good order");
    Ok(())
}

/// What goes on beside the server, as long as it runs.
fn beside(server: &Server, address: SocketAddr, data: &Path) {
    let done = server.with(|client| async move {
        let folder = data.join(SAMPLES);
        workflows::unpack(&folder)?;
        samples::submit(&client).await?;
        let runs = workflows::begin(&client, &folder).await?;
        output::say(&guide(address, data, &runs));
        // Their scripts are there.
        let settings = exec::Settings { cwd: Some(folder), ..exec::Settings::default() };
        // It goes on until the server ends, and this process with it.
        exec::worker(client, &terms(), settings)?.run().await?;
        Ok(())
    });
    if let Err(failure) = done {
        output::complain(&failure);
    }
}

/// How the worker works that comes with the server.
fn terms() -> Terms {
    Terms {
        queues: vec![samples::QUEUE.to_owned()],
        slots: SLOTS,
        name: Some("dev".to_owned()),
        lease: None,
        drain_timeout: Duration::ZERO,
        quiet: true,
    }
}

/// What there is, and what to try.
fn guide(address: SocketAddr, data: &Path, runs: &[Begun]) -> String {
    let (queue, data) = (samples::QUEUE, data.display());
    let run = |name: &str| runs.iter().find(|run| run.name == name).map_or(0, |run| run.run_id);
    let (order, invoices, race, agent) = (run("order"), run("invoices"), run("race"), run("agent"));
    // As the other lines are to be copied, they say where the server is if it is not at its usual
    // place.
    let server = match address.port() {
        7070 if address.ip().is_loopback() => String::new(),
        _ => format!(" --server http://{address}"),
    };
    format!(
        "tenure is ready at http://{address}
Its data is in {data}; Ctrl-C stops it, and nothing is lost.

A worker runs the commands in the queue {queue}, samples to begin with. Look at them:
  tenure task list --queue {queue}{server}
  tenure watch --after 0{server}
  curl -s 'http://{address}/v1/tasks?queue={queue}'
  curl -N 'http://{address}/v1/events?after=0'

Four workflows are in {data}/{SAMPLES}, and a run of each has begun. An order waits for an approval:
  tenure run graph {order}{server}
  tenure run signal {order} approval --payload '{{\"approved\": true, \"by\": \"you\"}}'{server}
  tenure run history {order}{server}
  tenure run get {invoices}{server}      # a map over files, and a merge
  tenure run graph {race}{server}    # a race: the first answer wins
  tenure run history {agent}{server}  # a model and a judge, in a loop
  tenure run start order --input '{{\"order\": \"A-1002\", \"amount\": 80, \"to\": \"Atlantis\"}}' --wait{server}

Submit some of your own, and stop one of them:
  tenure submit --queue {queue} --payload '{{\"argv\": [\"echo\", \"hello\"]}}' --wait{server}
  tenure submit --queue {queue} --payload '{{\"argv\": [\"sleep\", \"600\"]}}'{server}
  tenure task cancel ID{server}
  curl -s http://{address}/v1/tasks -H 'content-type: application/json' -d '{{\"queue\": \"{queue}\", \"payload\": {{\"argv\": [\"date\"]}}}}'

See how it stands, and look into the log:
  tenure status{server}
  tenure queue list{server}
  tenure wal verify --data {data}"
    )
}

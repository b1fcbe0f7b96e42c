//! `cargo xtask dev`: a server to play with, and sample tasks that a worker does before your eyes.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use crate::command;

/// Where the server keeps its tasks.
const FOLDER: &str = "tenure-data";
const ADDRESS: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
    // As `tenure serve` has it.
    7070,
);
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    match args {
        [] => serve(),
        [flag] if flag == "--sample" => sample(),
        [arg, ..] => Err(command::unknown_argument("dev", arg)),
    }
}

fn serve() -> Result<(), String> {
    println!("Building everything; the first time takes a few minutes.");
    command::run(&mut command::cargo("build --workspace --examples --bins"))?;
    if TcpStream::connect(ADDRESS).is_ok() {
        return Err(format!(
            "Something listens on {ADDRESS} already. Stop it first; if it is a Tenure, \
             `cargo xtask dev --sample` gives it the sample tasks."
        ));
    }
    println!(
        "\nStarting Tenure with its data in ./{FOLDER}; Ctrl-C stops it, and nothing is lost."
    );
    let this = std::env::current_exe().map_err(|error| format!("This has no path: {error}."))?;
    let mut beside = command::program(this);
    beside.args(["dev", "--sample"]);
    beside.spawn().map_err(|error| format!("The sample tasks could not be started: {error}."))?;
    // The server takes this process over, so whoever stops this stops it.
    let mut server = command::program("target/debug/tenure");
    server.args(["serve", "--data", FOLDER]);
    let error = server.exec();
    Err(format!("{} could not be started: {error}.", command::line(&server)))
}

/// Gives sample tasks to a server that runs, and a worker that does them.
fn sample() -> Result<(), String> {
    let start = Instant::now();
    while TcpStream::connect(ADDRESS).is_err() {
        if start.elapsed() > PATIENCE {
            return Err(format!("Nothing listens on {ADDRESS}. Start it with `cargo xtask dev`."));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("\nTwenty sample tasks, and a worker with eight slots:");
    command::run(&mut command::program("target/debug/examples/worker"))?;
    println!(
        "\nLook at http://{ADDRESS}/ or try:\n    \
         curl -s {ADDRESS}/v1/tasks -d '{{\"queue\": \"mail\", \"payload\": {{\"to\": \"ada\"}}}}'\n    \
         curl -s {ADDRESS}/v1/leases -d '{{\"worker\": \"me\", \"queues\": [\"mail\"]}}'\n    \
         curl -N '{ADDRESS}/v1/events?after=0'\n    \
         cargo run -p tenure-sdk --example worker     a worker, and more tasks\n    \
         target/debug/tenure wal verify --data {FOLDER}     proof that the log is sound"
    );
    Ok(())
}

//! The doors of Tenure: HTTP, gRPC and live updates on one port. Async ends here: behind this is the
//! coordinator, which is asked and answers. Nothing is decided in this crate.

mod app;
mod grpc;
mod guard;
mod http;
mod json;
pub mod limits;
mod listen;
mod metrics;
pub mod problem;
mod wire;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

pub use tenure_coordinator::{Durability, Keep, Upkeep, limits as engine_limits};
use tenure_coordinator::{Error, Note, Opening, Progress, Start, Tenure};
pub use tenure_core::command::Retention;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::app::App;
use crate::guard::{Guard, Guarded, guard};

/// What a server needs to know.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the log is.
    pub data: PathBuf,
    /// Where to listen.
    pub listen: String,
    /// When a reply may leave.
    pub durability: Durability,
    /// When snapshots are taken, and what is kept.
    pub upkeep: Upkeep,
    /// What clients have to show; none only on a loopback address.
    pub api_key: Option<String>,
}

/// Why a server ended, or did not begin.
#[derive(Debug)]
pub enum Failure {
    /// The engine.
    Engine(Error),
    /// The address.
    Listen {
        /// Which address.
        address: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// An address that others can reach, and no key.
    Unguarded {
        /// Which address.
        address: SocketAddr,
    },
    /// No runtime could be made.
    Runtime(std::io::Error),
}

impl Failure {
    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Engine(Error::Failed(failure)) => failure.exit_code(),
            Failure::Engine(Error::Invalid(_) | Error::Refused(_)) | Failure::Runtime(_) => 1,
            Failure::Listen { .. } => 1,
            Failure::Unguarded { .. } => 2,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Engine(error) => error.fmt(f),
            Failure::Listen { address, cause } => {
                write!(f, "cannot listen on {address}: {cause}; give another with --listen")
            }
            Failure::Unguarded { address } => write!(
                f,
                "{address} can be reached by others, so an API key is needed: give one with \
                 --api-key or TENURE_API_KEY, or listen on 127.0.0.1"
            ),
            Failure::Runtime(cause) => write!(f, "the server cannot begin: {cause}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Engine(error)
    }
}

/// What a server says while it begins.
#[derive(Debug)]
pub enum News<'a> {
    /// How far the replay is.
    Replaying(Progress),
    /// Something about the log that people should hear.
    Note(&'a Note),
    /// What it has started from.
    Started(Start),
    /// It is ready, at this address.
    Ready(SocketAddr),
}

/// Serves until it is told to stop (SIGTERM, SIGINT) or the log fails.
pub fn serve(options: &Options, mut news: impl FnMut(News<'_>)) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::Runtime)?;
    let listen = |cause| Failure::Listen { address: options.listen.clone(), cause };
    // The address first: a wrong one should not wait for a long replay.
    let listener = runtime.block_on(TcpListener::bind(&options.listen)).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let is_loopback = listen::is_loopback(address);
    if !is_loopback && options.api_key.is_none() {
        return Err(Failure::Unguarded { address });
    }
    let tenure = Opening::default()
        .durability(options.durability)
        .upkeep(options.upkeep)
        .on_trouble(|trouble| tracing::warn!("{trouble}"))
        .open(&options.data, |progress| news(News::Replaying(progress)))?;
    for note in tenure.notes() {
        news(News::Note(note));
    }
    news(News::Started(tenure.start()));
    let app = Arc::new(App::new(tenure.clone()));
    let guarded = Guarded {
        app: Arc::clone(&app),
        guard: Guard { api_key: options.api_key.as_deref().map(Arc::from), is_loopback },
    };
    let routes = http::routes(Arc::clone(&app))
        .merge(runtime.block_on(grpc::routes(&app)))
        .layer(axum::middleware::from_fn_with_state(guarded, guard));
    let engine_ended = watch_engine(tenure.clone());
    news(News::Ready(address));
    runtime.block_on(async {
        let stop = async {
            tokio::select! {
                () = told_to_stop() => tracing::info!("told to stop"),
                _ = engine_ended.told => {}
            }
            app.stop();
            // Those who are parked are answered, so that their connections can end.
            tenure.close_door("the server is stopping; try again when it is back");
        };
        listen::serve(listener, routes, Arc::clone(&app), stop).await;
    });
    drop(runtime);
    drop(tenure);
    match engine_ended.thread.join() {
        Ok(ended) => Ok(ended?),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

struct EngineEnd {
    told: oneshot::Receiver<()>,
    thread: std::thread::JoinHandle<Result<(), Error>>,
}

/// Waits on a thread for the engine to end, which it does by itself only if the log fails.
fn watch_engine(tenure: Tenure) -> EngineEnd {
    let (tell, told) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        let ended = tenure.join();
        let _ = tell.send(());
        ended
    });
    EngineEnd { told, thread }
}

async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

//! The doors of Tenure: HTTP, gRPC and live updates on one port. Async ends here: behind this is the
//! coordinator, which is asked and answers. Nothing is decided in this crate.

mod admission;
mod answer;
mod app;
pub mod archive;
mod artifacts;
mod auth;
mod fetch;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod grpc;
mod http;
mod json;
pub mod limits;
mod listen;
mod observe;
pub mod problem;
mod redecide;
mod show;
mod system;
mod wire;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{SystemTime, UNIX_EPOCH};

pub use crate::artifacts::blobs::{BlobsSeen, look_at_blobs};
pub use crate::auth::key::BadKey;
pub use crate::observe::event_log::Lines;
pub use crate::system::rlimits::let_large_writes_fail;
pub use crate::system::signals::Hangup;
pub use tenure_coordinator::{
    Durability, FileShelf, Keep, Restoration, SHELF_FILE, Upkeep, is_data_file,
    limits as engine_limits, restore,
};
use tenure_coordinator::{
    Engine, EngineOptions, Error, Note, Position, Progress, Purge, RecoveryInfo,
};
pub use tenure_core::command::Retention;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::app::App;
use crate::archive::{ArchiveNews, Cabinet, NoArchive};
use crate::artifacts::blobs::Blobs;
use crate::artifacts::publish::{self, Store};
use crate::auth::guard::{Guard, Guarded, guard};
use crate::auth::key::ApiKey;
use crate::limits::{ENGINE_STOP_TIMEOUT, STOP_TIMEOUT};
use crate::observe::event_log::Scribe;
use crate::system::{memory, rlimits, signals};

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
    /// Where finished tasks and runs go before they are forgotten; nowhere if there is none.
    pub archive: Option<PathBuf>,
    /// How many bytes of memory the process may take; a part of what the system allows if none is
    /// given.
    pub memory_max: Option<u64>,
    /// What clients have to show; none only on a loopback address. An empty text is an error, not
    /// the absence of a key.
    pub api_key: Option<String>,
    /// What SIGHUP does.
    pub hangup: Hangup,
    /// Which lines are written about what happens.
    pub lines: Lines,
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
    /// A key that is none, or could be guessed.
    ApiKey(BadKey),
    /// The archive.
    Archive {
        /// Which folder.
        folder: PathBuf,
        /// What is wrong with it.
        cause: NoArchive,
    },
    /// It was told to stop, and the log did not come to its end in time.
    Stuck,
    /// The wall clock shows a time before 1970, which no record and no header can have.
    Clock,
    /// No runtime could be made.
    Runtime(std::io::Error),
}

impl Failure {
    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Engine(Error::Failed(failure)) => failure.exit_code(),
            Failure::Engine(Error::Refused(_)) | Failure::Runtime(_) => 1,
            Failure::Listen { .. } => 1,
            // As a failed write: what is durable is there, and the disk needs a look.
            Failure::Stuck => 74,
            Failure::Unguarded { .. } | Failure::ApiKey(_) => 2,
            // As for other things that every program needs of its system.
            Failure::Clock => 71,
            Failure::Archive { cause: NoArchive::InUse | NoArchive::Foreign, .. } => 73,
            Failure::Archive { cause: NoArchive::InData, .. } => 2,
            Failure::Archive { cause: NoArchive::Disk(_), .. } => 74,
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
            Failure::ApiKey(bad) => bad.fmt(f),
            Failure::Clock => f.write_str(
                "the wall clock shows a time before 1970, so that nothing could be recorded with \
                 its time; set the clock, and start again",
            ),
            Failure::Archive { folder, cause } => match cause {
                NoArchive::InUse => write!(
                    f,
                    "another server archives into {}; each needs a folder of its own",
                    folder.display()
                ),
                NoArchive::Foreign => write!(
                    f,
                    "{} is the archive of another log, whose tasks have the same numbers; name \
                     another folder with --archive",
                    folder.display()
                ),
                NoArchive::InData => write!(
                    f,
                    "the archive {} and the data folder must not be inside of one another; name \
                     another folder with --archive",
                    folder.display()
                ),
                NoArchive::Disk(cause) => write!(
                    f,
                    "nothing can be archived in {}: {cause}; name a folder that can be written with \
                     --archive",
                    folder.display()
                ),
            },
            Failure::Stuck => write!(
                f,
                "the log did not come to its end within {} s and was left as it is: nothing that \
                 was acknowledged is lost; look at the disk",
                ENGINE_STOP_TIMEOUT.as_secs()
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
    Started(RecoveryInfo),
    /// It is ready, at this address.
    Ready(SocketAddr),
}

/// Serves until it is told to stop (SIGTERM, SIGINT) or the log fails.
pub fn serve(options: &Options, mut news: impl FnMut(News<'_>)) -> Result<(), Failure> {
    if SystemTime::now() < UNIX_EPOCH {
        return Err(Failure::Clock);
    }
    // Before anything is opened: a wrong key must not look like a slow start.
    let api_key = options.api_key.as_deref().map(ApiKey::parse).transpose();
    let api_key = api_key.map_err(Failure::ApiKey)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().on_thread_start(listen::prepare_thread).build();
    let runtime = runtime.map_err(Failure::Runtime)?;
    runtime.block_on(async {
        rlimits::let_large_writes_fail();
        signals::ignore_the_rest(options.hangup);
    });
    let connections_max = rlimits::connections_max();
    let listen = |cause| Failure::Listen { address: options.listen.clone(), cause };
    // The address first: a wrong one should not wait for a long replay.
    let listener = runtime.block_on(TcpListener::bind(&options.listen)).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let is_loopback = listen::is_loopback(address);
    if !is_loopback && api_key.is_none() {
        return Err(Failure::Unguarded { address });
    }
    let cabinet = open_cabinet(options)?;
    // With an archive, nothing is forgotten that is not in it.
    let purge = if cabinet.is_some() { Purge::AfterArchive } else { Purge::ByItself };
    let tenure = EngineOptions::default()
        .durability(options.durability)
        .upkeep(Upkeep { purge, ..options.upkeep })
        .memory(memory::budget(options.memory_max))
        .on_warning(|warning| tracing::warn!("{warning}"))
        .open(&options.data, |progress| news(News::Replaying(progress)))?;
    for note in tenure.recovery_warnings() {
        news(News::Note(note));
    }
    news(News::Started(tenure.recovery_info()));
    let follower = tenure.follow(Position::after(tenure.last_lsn()));
    let scribe = Scribe::start(options.lines, follower).map_err(Failure::Runtime)?;
    let blobs = Arc::new(Blobs::open(&options.data).map_err(Failure::Runtime)?);
    let store = Arc::new(Store::new(&options.data));
    publish::start(tenure.clone(), Arc::clone(&blobs), Arc::clone(&store))
        .map_err(Failure::Runtime)?;
    let archive = cabinet.map(|cabinet| begin_archive(&tenure, cabinet)).transpose()?;
    let app = Arc::new(App::new(tenure.clone(), scribe, blobs, store, archive));
    let (grpc, health) = runtime.block_on(grpc::routes(&app));
    let (routes, classes) = http::routes(Arc::clone(&app));
    let (guard_rules, classes) = (Guard { api_key, is_loopback }, Arc::new(classes));
    let guarded = Guarded { app: Arc::clone(&app), guard: guard_rules, classes };
    let routes = routes.merge(grpc).layer(axum::middleware::from_fn_with_state(guarded, guard));
    let engine_ended = watch_engine(tenure.clone());
    news(News::Ready(address));
    runtime.block_on(async {
        let stop = async {
            tokio::select! {
                () = signals::told_to_stop(options.hangup) => tracing::info!("told to stop"),
                _ = engine_ended.told => {}
            }
            health.stop().await;
            app.stop();
            // Those who are parked are answered, so that their connections can end.
            tenure.begin_shutdown("the server is stopping; try again when it is back");
        };
        listen::serve(listener, connections_max, routes, Arc::clone(&app), stop).await;
    });
    // What reads files need not come to its end.
    runtime.shutdown_timeout(STOP_TIMEOUT);
    drop(tenure);
    let ended = engine_ended.outcome.recv_timeout(ENGINE_STOP_TIMEOUT);
    app.scribe.finish();
    match ended {
        Ok(ended) => Ok(ended?),
        Err(RecvTimeoutError::Timeout) => Err(Failure::Stuck),
        Err(RecvTimeoutError::Disconnected) => match engine_ended.thread.join() {
            Ok(()) => Ok(()),
            Err(panic) => std::panic::resume_unwind(panic),
        },
    }
}

/// The folder of the archive, if there is to be one. It is looked at before a long replay.
fn open_cabinet(options: &Options) -> Result<Option<Cabinet>, Failure> {
    let Some(folder) = &options.archive else { return Ok(None) };
    let opened = Cabinet::open(folder, &options.data);
    opened.map(Some).map_err(|cause| Failure::Archive { folder: folder.clone(), cause })
}

fn begin_archive(tenure: &Engine, cabinet: Cabinet) -> Result<Arc<ArchiveNews>, Failure> {
    let folder = cabinet.folder().to_owned();
    cabinet.claim(tenure.log_id()?).map_err(|cause| Failure::Archive { folder, cause })?;
    archive::start(tenure.clone(), cabinet).map_err(Failure::Runtime)
}

struct EngineEnd {
    told: oneshot::Receiver<()>,
    outcome: std::sync::mpsc::Receiver<Result<(), Error>>,
    thread: std::thread::JoinHandle<()>,
}

/// Waits on a thread for the engine to end, which it does by itself only if the log fails.
fn watch_engine(tenure: Engine) -> EngineEnd {
    let (tell, told) = oneshot::channel();
    let (end, outcome) = std::sync::mpsc::sync_channel(1);
    let thread = std::thread::spawn(move || {
        let ended = tenure.join();
        let _ = end.send(ended);
        let _ = tell.send(());
    });
    EngineEnd { told, outcome, thread }
}

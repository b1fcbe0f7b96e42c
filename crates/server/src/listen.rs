//! The listener: one port for HTTP/1 and HTTP/2, bounded connections, timeouts, an orderly stop.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt;

use crate::admission::connections::{Admission, Answering, Connection, Connections, Place};
use crate::admission::response_budget::InFlight;
use crate::app::App;
use crate::limits::{
    CLOSE_TIMEOUT, HEADER_BYTES_MAX, HEADER_TIMEOUT, READER_TIMEOUT, STOP_TIMEOUT, STREAMS_MAX,
    UNSENT_BYTES_MAX,
};

/// After a failed accept, so long nothing is accepted: there are no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// What one stream, and one connection, may send before it is read.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// Serves until `stop` is done, and then ends what is under way in good order.
pub(crate) async fn serve(
    listener: TcpListener,
    connections_max: usize,
    routes: Router,
    app: Arc<App>,
    stop: impl Future<Output = ()>,
) {
    let connections = Connections::new(connections_max);
    // Every connection's task holds a receiver until it ends.
    let (stopping, stopped) = watch::channel(());
    let mut stop = std::pin::pin!(stop);
    loop {
        let stream = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let place = match connections.admit().await {
            Admission::Place(place) => place,
            Admission::Evicted(place) => {
                app.metrics.connections_evicted.inc();
                place
            }
            Admission::Full => {
                // The client has sent no request yet that could be answered with a refusal.
                app.metrics.connections_refused.inc();
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let socket = SockRef::from(&stream);
        // The kernel closes the connection of a client that does not read what was sent to it.
        let _ = socket.set_tcp_user_timeout(Some(READER_TIMEOUT));
        // The rest of an answer waits here, where it is counted.
        let _ = socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
        let (routes, app, stopped) = (routes.clone(), Arc::clone(&app), stopped.clone());
        tokio::spawn(async move {
            app.metrics.connections.inc();
            let unread = Arc::new(InFlight::default());
            match attend(stream, routes, place, &unread, stopped).await {
                // The kernel has closed the connection of a subscriber that does not read.
                End::Unread => {
                    app.metrics.subscribers_dropped.inc_by(unread.followers() as u64);
                }
                End::Stalled => {
                    app.metrics.readers_cut.inc();
                }
                End::Orderly => {}
            }
            app.metrics.connections.dec();
        });
    }
    drop((listener, stopped));
    let _ = stopping.send(());
    if tokio::time::timeout(STOP_TIMEOUT, stopping.closed()).await.is_err() {
        tracing::warn!("some connections did not end in time and are cut off");
    }
}

/// Serves one connection until its client, an idle timeout, an eviction or a stop ends it.
async fn attend(
    stream: TcpStream,
    routes: Router,
    place: Place,
    unread: &Arc<InFlight>,
    mut stopped: watch::Receiver<()>,
) -> End {
    let connection = &place.connection;
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(unread));
        exchange(request, routes.clone(), Arc::clone(connection))
    });
    let builder = builder();
    let served = builder.serve_connection(TokioIo::new(stream), service);
    let mut served = std::pin::pin!(served);
    tokio::select! {
        ended = served.as_mut() => return End::of(ended),
        () = connection.evicted() => return End::Orderly,
        () = unread.stalled() => return End::Stalled,
        () = connection.idle() => {}
        _ = stopped.changed() => {}
    }
    // HTTP/2 clients are told, so that no request of theirs is lost on the way.
    served.as_mut().graceful_shutdown();
    let patience = async {
        tokio::time::sleep(CLOSE_TIMEOUT).await;
        // A request that was on its way is answered first.
        connection.idle().await;
    };
    tokio::select! {
        ended = served => End::of(ended),
        () = connection.evicted() => End::Orderly,
        () = unread.stalled() => End::Stalled,
        () = patience => End::Orderly,
    }
}

/// How a connection ended.
enum End {
    /// Its client, an idle timeout, an eviction or a stop ended it.
    Orderly,
    /// The client did not read what was sent, and the kernel closed it.
    Unread,
    /// The client did not read its answers in time.
    Stalled,
}

impl End {
    fn of(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) -> Self {
        match ended {
            Err(error) if is_timeout(&*error) => End::Unread,
            // Whatever else ends a connection is the client's business.
            Ok(()) | Err(_) => End::Orderly,
        }
    }
}

/// Answers one request. An error ends the connection.
async fn exchange(
    request: Request<Incoming>,
    routes: Router,
    connection: Arc<Connection>,
) -> Result<Response<Answering>, Evicted> {
    let exchange = connection.begin().ok_or(Evicted)?;
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(connection);
    let Ok(response) = routes.oneshot(request).await;
    Ok(response.map(|body| Answering::new(body, exchange)))
}

/// The connection is being closed to make room for another.
#[derive(Debug)]
struct Evicted;

impl std::fmt::Display for Evicted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection is being closed to make room for another")
    }
}

impl std::error::Error for Evicted {}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_BYTES_MAX)
        // Ours is in `answer.rs`, and is right after the clock was set back, too.
        .auto_date_header(false)
        .http2()
        .timer(TokioTimer::new())
        .auto_date_header(false)
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(Some(Duration::from_secs(20)))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}

/// Makes the HTTP library render its date on this thread. It keeps one for each thread, wanted or not,
/// and panics if it is first rendered while the wall clock is before 1970. A server does not start
/// then, but the clock can be set back while it runs.
pub(crate) fn prepare_thread() {
    if SystemTime::now() < UNIX_EPOCH {
        return;
    }
    let service = service_fn(|_: Request<Incoming>| pending::<Result<Response<Body>, Evicted>>());
    let connection =
        http1::Builder::new().serve_connection(TokioIo::new(tokio::io::empty()), service);
    let mut context = Context::from_waker(Waker::noop());
    // The first poll renders it; nothing is ever read.
    let _ = std::pin::pin!(connection).poll(&mut context);
}

/// Whether a connection ended because nothing that was sent was read.
fn is_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut causes = causes.filter_map(|error| error.downcast_ref::<std::io::Error>());
    causes.any(|cause| cause.kind() == std::io::ErrorKind::TimedOut)
}

/// Whether an address can be reached from this machine only.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().is_loopback()
}

//! The port: connections are counted, and one that is slow or idle costs little.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceExt;

use crate::app::App;
use crate::limits::{HEADER_BYTES_MAX, HEADER_TIMEOUT, READER_TIMEOUT, STOP_TIMEOUT};

/// After a failed accept, so long nothing is accepted: there are no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const STREAMS_MAX: u32 = 1_000;
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
    let places = Arc::new(Semaphore::new(connections_max));
    let graceful = GracefulShutdown::new();
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
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            // There is nobody to read a refusal: those who wait see a closed connection.
            app.metrics.connections_refused.inc();
            continue;
        };
        let _ = stream.set_nodelay(true);
        // Whoever does not read what was sent is cut off by the system.
        let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(READER_TIMEOUT));
        let service =
            TowerToHyperService::new(routes.clone().map_request(
                |request: hyper::Request<Incoming>| request.map(axum::body::Body::new),
            ));
        let connection =
            builder().serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        let app = Arc::clone(&app);
        app.metrics.connections.inc();
        tokio::spawn(async move {
            // What ends a connection is the other side's business.
            let _ = connection.await;
            app.metrics.connections.dec();
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(STOP_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("some connections did not end in time and are cut off");
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_BYTES_MAX)
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(Some(Duration::from_secs(20)))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}

/// Whether an address can be reached from this machine only.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().is_loopback()
}

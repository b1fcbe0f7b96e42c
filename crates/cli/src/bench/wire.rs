//! The gRPC connection of the load test, which speaks the wire contract without the SDK.

use tenure_sdk::{Code, Error, ErrorCode};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::client::Server;

/// Flow-control windows that a batch of large payloads does not fill.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// A channel with the API key in every request.
pub(super) type Connection = InterceptedService<Channel, ApiKey>;

/// Adds the API key to every request.
#[derive(Clone, Debug)]
pub(super) struct ApiKey(Option<MetadataValue<Ascii>>);

impl Interceptor for ApiKey {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(key) = &self.0 {
            request.metadata_mut().insert("authorization", key.clone());
        }
        Ok(request)
    }
}

/// Opens a connection of its own.
pub(super) async fn connect(server: &Server) -> Result<Connection, Error> {
    let endpoint = Endpoint::from_shared(server.url().to_owned());
    let endpoint = endpoint.map_err(|error| Error::new(Code::InvalidRequest, error.to_string()))?;
    let endpoint = endpoint
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    let channel =
        endpoint.connect().await.map_err(|error| Error::unavailable(error.to_string()))?;
    let key = server.api_key.as_ref().map(|key| format!("Bearer {key}").parse());
    let key = key.transpose().map_err(|_| {
        Error::new(Code::InvalidRequest, "the API key has characters that a header cannot have")
    })?;
    Ok(InterceptedService::new(channel, ApiKey(key)))
}

/// The error of a status, with the server's code if it sent one.
pub(super) fn refused(status: &Status) -> Error {
    let code = status.metadata().get("tenure-code").and_then(|code| code.to_str().ok());
    match code {
        Some(code) => Error::new(ErrorCode::parse(code), status.message()),
        None => Error::unavailable(status.message()),
    }
}

//! The connection to a server: its address, its options, and the API key in every request.

use std::time::Duration;

use tenure_code::Code;
#[cfg(feature = "worker")]
use tenure_proto::v1::workers_client::WorkersClient;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};

use crate::client::Client;
use crate::error::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// A channel with the API key in every request.
pub(crate) type Connection = InterceptedService<Channel, ApiKey>;

/// Adds the API key to every request.
#[derive(Clone, Debug)]
pub(crate) struct ApiKey(Option<MetadataValue<Ascii>>);

impl Interceptor for ApiKey {
    fn call(
        &mut self,
        mut request: tonic::Request<()>,
    ) -> Result<tonic::Request<()>, tonic::Status> {
        if let Some(key) = &self.0 {
            request.metadata_mut().insert("authorization", key.clone());
        }
        Ok(request)
    }
}

/// The address of a server, and how to connect to it.
///
/// ```no_run
/// # async fn example() -> Result<(), tenure_sdk::Error> {
/// use tenure_sdk::ConnectOptions;
///
/// let client = ConnectOptions::new("http://127.0.0.1:7070").api_key("secret").connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ConnectOptions {
    address: String,
    api_key: Option<String>,
}

impl ConnectOptions {
    /// Options for an address such as `http://127.0.0.1:7070`.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), api_key: None }
    }

    /// Sets the API key, which authenticates every request.
    pub fn api_key(self, key: impl Into<String>) -> Self {
        Self { api_key: Some(key.into()), ..self }
    }

    /// Connects to the server.
    pub async fn connect(self) -> Result<Client, Error> {
        let server = self.server()?;
        let connection = server.connect().await?;
        Ok(Client::new(connection, server))
    }

    fn server(self) -> Result<Server, Error> {
        let address = self.address;
        let wrong = |why: &str| Error::new(Code::InvalidRequest, format!("{address:?}: {why}"));
        let endpoint = Endpoint::from_shared(address.clone())
            .map_err(|error| wrong("an address is like http://127.0.0.1:7070").with_source(error))?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let key = self.api_key.map(|key| format!("Bearer {key}").parse());
        let key =
            key.transpose().map_err(|error: tonic::metadata::errors::InvalidMetadataValue| {
                wrong("the API key has characters that a header cannot have").with_source(error)
            })?;
        Ok(Server { endpoint, api_key: ApiKey(key) })
    }
}

/// A server that can be connected to. Each runtime makes its own connection.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    endpoint: Endpoint,
    api_key: ApiKey,
}

impl Server {
    async fn connect(&self) -> Result<Connection, Error> {
        let channel = self.endpoint.connect().await.map_err(Error::from_transport)?;
        Ok(InterceptedService::new(channel, self.api_key.clone()))
    }

    /// A client for workers on a connection of its own.
    #[cfg(feature = "worker")]
    pub(crate) async fn connect_worker(&self) -> Result<WorkersClient<Connection>, Error> {
        let connection = self.connect().await?;
        Ok(WorkersClient::new(connection).max_decoding_message_size(usize::MAX))
    }
}

//! How verbs reach a server.

use std::future::Future;

use tenure_sdk::{Client, ConnectOptions, Error};

use crate::failure::Failure;

/// Where the server is, and what it asks for.
#[derive(Debug, clap::Args)]
pub(crate) struct Server {
    /// Where the server is.
    #[arg(long = "server", global = true, value_name = "URL", env = "TENURE_SERVER")]
    #[arg(default_value = "http://127.0.0.1:7070")]
    url: String,

    /// What the server asks for, or what to ask clients for.
    #[arg(long, global = true, value_name = "KEY", env = "TENURE_API_KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
}

impl Server {
    /// Connects, and does something with the connection.
    pub(crate) fn with<T, F>(&self, work: impl FnOnce(Client) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(Failure::NoRuntime)?;
        let done = runtime.block_on(async { work(self.connect().await?).await });
        // Whoever still reads standard input must not hold up the end.
        runtime.shutdown_background();
        done.map_err(|failure| self.named(failure))
    }

    async fn connect(&self) -> Result<Client, Error> {
        let mut options = ConnectOptions::new(self.url.as_str());
        if let Some(key) = &self.api_key {
            options = options.api_key(key.as_str());
        }
        options.connect().await
    }

    /// Tells a server that said no from one that said nothing.
    fn named(&self, failure: Failure) -> Failure {
        if let Failure::Refused(error) = &failure
            && error.code() == "unavailable"
        {
            return Failure::Unreachable { url: self.url.clone(), error: error.clone() };
        }
        failure
    }
}

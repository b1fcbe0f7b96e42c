//! How verbs reach a server.

use std::future::Future;
use std::net::SocketAddr;

use tenure_sdk::{Client, Code, ConnectOptions, Error};

use crate::failure::Failure;

/// Where the server is, and what it asks for.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Server {
    /// Where the server is.
    #[arg(long = "server", global = true, value_name = "URL", env = "TENURE_SERVER")]
    #[arg(default_value = "http://127.0.0.1:7070", value_parser = parse_url)]
    url: String,

    /// What the server asks for, or what to ask clients for.
    #[arg(long, global = true, value_name = "KEY", env = "TENURE_API_KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
}

impl Server {
    /// A server that listens there, with the same key.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self { url: format!("http://{address}"), api_key: self.api_key.clone() }
    }

    /// Connects, and does something with the connection.
    pub(crate) fn with<T, F>(&self, work: impl FnOnce(Client) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        // Most likely a variable that was meant to have a value; the server would only say that it
        // needs a key.
        if self.api_key.as_deref().is_some_and(|key| key.trim().is_empty()) {
            return Err(Failure::Usage(
                "the API key is empty; give the server's key with --api-key or TENURE_API_KEY, or \
                 unset the variable if the server has none"
                    .to_owned(),
            ));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(Failure::NoRuntime)?;
        let done = runtime.block_on(async { work(self.connect().await?).await });
        // Whoever still reads standard input must not hold up the end.
        runtime.shutdown_background();
        done.map_err(|failure| self.named(failure))
    }

    /// A connection of its own.
    pub(crate) async fn connect(&self) -> Result<Client, Error> {
        let mut options = ConnectOptions::new(self.url.as_str());
        if let Some(key) = &self.api_key {
            options = options.api_key(key.as_str());
        }
        options.connect().await
    }

    /// The address of the server.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The host and the port, for verbs that speak HTTP without the SDK.
    pub(crate) fn authority(&self) -> Result<String, Error> {
        let wrong = || Error::unavailable("only an address like http://127.0.0.1:7070 will do");
        let rest = self.url.strip_prefix("http://").ok_or_else(wrong)?;
        let authority = rest.split('/').next().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let has_port =
            authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Ok(if has_port { authority.to_owned() } else { format!("{authority}:80") })
    }

    /// Tells a server that said no from one that said nothing.
    fn named(&self, failure: Failure) -> Failure {
        if let Failure::HalfDone { cause, said, told } = failure {
            return Failure::HalfDone { cause: Box::new(self.named(*cause)), said, told };
        }
        if let Failure::Refused(error) = &failure
            && *error.code() == Code::Unavailable
        {
            return Failure::Unreachable { url: self.url.clone(), error: error.clone() };
        }
        failure
    }
}

/// An address with or without `http://`.
fn parse_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").unwrap_or(text);
    if rest.is_empty() || rest.contains("://") {
        return Err("an address is like http://127.0.0.1:7070".to_owned());
    }
    Ok(format!("http://{rest}"))
}

//! A definition to register, a run to start and a signal to send.

use bytes::Bytes;
use tenure_api::{DefinitionFormat, Payload, SignalStart};

#[cfg(feature = "json")]
use crate::error::Error;

/// The definition of a workflow, as text.
///
/// ```
/// use tenure_sdk::Definition;
///
/// let definition = Definition::yaml(
///     "workflow: hello\ninitial_node: greet\nnodes:\n  - {ref: greet, kind: pass}\n",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Definition {
    pub(crate) definition: tenure_api::Definition,
}

impl Definition {
    /// A definition in YAML.
    pub fn yaml(text: impl Into<Bytes>) -> Self {
        Self::written(text.into(), DefinitionFormat::Yaml)
    }

    /// A definition in JSON.
    pub fn json(text: impl Into<Bytes>) -> Self {
        Self::written(text.into(), DefinitionFormat::Json)
    }

    fn written(text: Bytes, format: DefinitionFormat) -> Self {
        Self { definition: tenure_api::Definition { name: None, text, format } }
    }

    /// Sets the name that the definition must have; the server rejects another one.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.definition.name = Some(name.into());
        self
    }
}

/// A run to start.
///
/// ```
/// use tenure_sdk::NewRun;
///
/// let run = NewRun::of("tender_review").input(r#"{"bids": []}"#).key("tender/7").tag("year", "2026");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct NewRun {
    pub(crate) workflow: String,
    pub(crate) run: tenure_api::NewRun,
}

impl NewRun {
    /// A run of the newest version of a workflow, with the input `{}`.
    pub fn of(workflow: impl Into<String>) -> Self {
        Self { workflow: workflow.into(), run: tenure_api::NewRun::default() }
    }

    /// Sets the input, which is JSON text.
    pub fn input(mut self, json: impl Into<Payload>) -> Self {
        self.run.input = json.into();
        self
    }

    /// Sets the input to a value.
    #[cfg(feature = "json")]
    pub fn input_json<T: serde::Serialize + ?Sized>(self, value: &T) -> Result<Self, Error> {
        Ok(self.input(crate::json::payload("input", value)?))
    }

    /// Sets the idempotency key: starting a run with an equal input under the same key returns the
    /// existing run.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.run.key = Some(key.into());
        self
    }

    /// Sets the version of the workflow, instead of the newest.
    pub fn version(mut self, version: u32) -> Self {
        self.run.version = Some(version);
        self
    }

    /// Adds a tag, for people and for filters.
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.run.tags.insert(key.into(), value.into());
        self
    }
}

/// A signal for a run.
///
/// ```
/// use tenure_sdk::Signal;
///
/// let signal = Signal::new("approval").payload(r#"{"approved": true}"#).id("click/4711");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Signal {
    pub(crate) name: String,
    pub(crate) signal: tenure_api::Signal,
}

impl Signal {
    /// A signal of this name, with the payload `null`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), signal: tenure_api::Signal::default() }
    }

    /// Sets the payload, which is JSON text.
    pub fn payload(mut self, json: impl Into<Payload>) -> Self {
        self.signal.payload = json.into();
        self
    }

    /// Sets the payload to a value.
    #[cfg(feature = "json")]
    pub fn payload_json<T: serde::Serialize + ?Sized>(self, value: &T) -> Result<Self, Error> {
        Ok(self.payload(crate::json::payload("payload", value)?))
    }

    /// Sets the correlation, which tells the signal from others of its name.
    pub fn correlation(mut self, correlation: impl Into<String>) -> Self {
        self.signal.correlation = Some(correlation.into());
        self
    }

    /// Sets the run that the signal starts if it is for a run by key and there is none. The input, the
    /// version and the tags of the run count; the workflow and the key are those of the signal.
    pub fn or_start(mut self, run: NewRun) -> Self {
        let tenure_api::NewRun { input, version, tags, key: _ } = run.run;
        self.signal.start = Some(SignalStart { input, version, tags });
        self
    }

    /// Sets the id of the signal: an equal signal with the same id counts once, so that it is safe to
    /// send it again.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.signal.signal_id = Some(id.into());
        self
    }
}

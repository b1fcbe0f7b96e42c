//! A run to start and a signal to send, with what differs from the defaults.

use std::sync::Arc;

use tenure_core::command::{SignalByKey, SignalRun, SignalStart, StartRun};
use tenure_record::id::RunId;
use tenure_record::name::{SignalText, TaskKey};

use crate::error::Error;
use crate::terms;

/// A run to start.
///
/// ```
/// use tenure::NewRun;
///
/// let run = NewRun::of("tender_review").input(r#"{"bids": []}"#).key("tender/7").tag("year", "2026");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct NewRun {
    workflow: String,
    version: Option<u32>,
    input: Vec<u8>,
    key: Option<String>,
    tags: Vec<(String, String)>,
}

impl NewRun {
    /// A run of the newest version of a workflow, with the input `{}`.
    pub fn of(workflow: impl Into<String>) -> Self {
        let (workflow, input) = (workflow.into(), b"{}".to_vec());
        Self { workflow, version: None, input, key: None, tags: Vec::new() }
    }

    /// The input, as JSON text.
    pub fn input(self, json: impl Into<Vec<u8>>) -> Self {
        Self { input: json.into(), ..self }
    }

    /// The input as a value of serde.
    ///
    /// # Errors
    /// The value has no JSON form, such as a map whose keys are not text.
    #[cfg(feature = "json")]
    pub fn json(self, input: &impl serde::Serialize) -> Result<Self, Error> {
        Ok(Self { input: terms::json("input", input)?, ..self })
    }

    /// The idempotency key: while a run with this key exists, an equal start returns that run.
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// A version of the workflow, instead of the newest.
    pub fn version(self, version: u32) -> Self {
        Self { version: Some(version), ..self }
    }

    /// Adds a tag, by which lists can be filtered.
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.push((key.into(), value.into()));
        self
    }

    pub(crate) fn parse(self) -> Result<StartRun, Error> {
        Ok(StartRun {
            workflow: self.workflow.into(),
            version: self.version,
            input: terms::value("input", &self.input)?,
            key: self.key.as_deref().map(TaskKey::parse).transpose()?,
            tags: terms::tags(self.tags)?,
        })
    }
}

/// A signal to a run.
///
/// ```
/// use tenure::Signal;
///
/// let signal = Signal::new("approval").payload(r#"{"approved": true}"#).id("click/4711");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Signal {
    name: String,
    payload: Vec<u8>,
    correlation: String,
    id: Option<String>,
    start: Option<NewRun>,
}

impl Signal {
    /// A signal of this name with the payload `null`.
    pub fn new(name: impl Into<String>) -> Self {
        let (name, payload) = (name.into(), b"null".to_vec());
        Self { name, payload, correlation: String::new(), id: None, start: None }
    }

    /// The payload, as JSON text.
    pub fn payload(self, json: impl Into<Vec<u8>>) -> Self {
        Self { payload: json.into(), ..self }
    }

    /// The payload as a value of serde.
    ///
    /// # Errors
    /// The value has no JSON form, such as a map whose keys are not text.
    #[cfg(feature = "json")]
    pub fn json(self, payload: &impl serde::Serialize) -> Result<Self, Error> {
        Ok(Self { payload: terms::json("payload", payload)?, ..self })
    }

    /// The correlation, which tells signals of one name apart.
    pub fn correlation(self, correlation: impl Into<String>) -> Self {
        Self { correlation: correlation.into(), ..self }
    }

    /// The id of the signal: signals with the same id count once.
    pub fn id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// How to start the run if the signal is sent by key and there is no such run. The run's input,
    /// version and tags count; its workflow and key are those of the signal.
    pub fn or_start(self, run: NewRun) -> Self {
        Self { start: Some(run), ..self }
    }

    pub(crate) fn parse(self, run_id: RunId) -> Result<SignalRun, Error> {
        if self.id.as_ref().is_some_and(String::is_empty) {
            return Err(Error::invalid(
                "the id of the signal is empty; leave it out, or set a text",
            ));
        }
        Ok(SignalRun {
            run_id,
            name: self.name.into(),
            payload: terms::value("payload", &self.payload)?,
            correlation: SignalText::parse(&self.correlation)?,
            signal_id: self.id.as_deref().map(SignalText::parse).transpose()?,
        })
    }

    pub(crate) fn parse_by_key(mut self, workflow: &str, key: &str) -> Result<SignalByKey, Error> {
        let start = self.start.take().map(NewRun::parse).transpose()?;
        Ok(SignalByKey {
            workflow: Arc::from(workflow),
            key: TaskKey::parse(key)?,
            signal: self.parse(RunId::NONE)?,
            start: start.map(|StartRun { version, input, tags, .. }| SignalStart {
                version,
                input,
                tags,
            }),
        })
    }
}

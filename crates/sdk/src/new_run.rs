//! A workflow to register, a run to begin and a signal to send, with what should be different from
//! the defaults.

use tenure_proto::v1;

/// A definition of a workflow, as text.
///
/// ```
/// use tenure_sdk::Definition;
///
/// let definition = Definition::yaml(
///     "workflow: hello\ninitial_node: greet\nnodes:\n  - {ref: greet, kind: pass}\n",
/// );
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Definition {
    pub(crate) wire: v1::PutWorkflowRequest,
}

impl Definition {
    /// Written as YAML.
    pub fn yaml(text: impl Into<Vec<u8>>) -> Self {
        Self::written(text.into(), v1::DefinitionFormat::Yaml)
    }

    /// Written as JSON.
    pub fn json(text: impl Into<Vec<u8>>) -> Self {
        Self::written(text.into(), v1::DefinitionFormat::Json)
    }

    fn written(definition: Vec<u8>, format: v1::DefinitionFormat) -> Self {
        let name = String::new();
        Self { wire: v1::PutWorkflowRequest { name, definition, format: format.into() } }
    }

    /// Refuse it unless this is the name that it has.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.wire.name = name.into();
        self
    }
}

/// A run to begin.
///
/// ```
/// use tenure_sdk::NewRun;
///
/// let run = NewRun::of("tender_review").input(r#"{"bids": []}"#).key("tender/7").tag("year", "2026");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct NewRun {
    pub(crate) wire: v1::StartRunRequest,
}

impl NewRun {
    /// A run of the newest version of a workflow, with the input `{}`.
    pub fn of(workflow: impl Into<String>) -> Self {
        let workflow = workflow.into();
        Self { wire: v1::StartRunRequest { workflow, ..v1::StartRunRequest::default() } }
    }

    /// What it is given, as JSON.
    pub fn input(mut self, json: impl Into<Vec<u8>>) -> Self {
        self.wire.input = json.into();
        self
    }

    /// The same start under the same key gives the same run.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.wire.key = Some(key.into());
        self
    }

    /// Not the newest version, but this one.
    pub fn version(mut self, version: u32) -> Self {
        self.wire.version = Some(version);
        self
    }

    /// A label for people.
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.wire.tags.insert(key.into(), value.into());
        self
    }
}

/// Which run: by its number, or the run of a workflow that holds a key.
///
/// ```
/// use tenure_sdk::RunRef;
///
/// let (by_number, by_key) = (RunRef::from(17), RunRef::key("order", "A-1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunRef {
    /// By its number.
    Id(u64),
    /// By its key.
    Key {
        /// The workflow's name.
        workflow: String,
        /// The key.
        key: String,
    },
}

impl RunRef {
    /// The run of a workflow that holds a key.
    pub fn key(workflow: impl Into<String>, key: impl Into<String>) -> Self {
        Self::Key { workflow: workflow.into(), key: key.into() }
    }

    /// The number, zero for none, and the key.
    #[must_use]
    pub fn into_wire(self) -> (u64, Option<v1::RunKey>) {
        match self {
            RunRef::Id(run_id) => (run_id, None),
            RunRef::Key { workflow, key } => (0, Some(v1::RunKey { workflow, key })),
        }
    }
}

impl From<u64> for RunRef {
    fn from(run_id: u64) -> Self {
        Self::Id(run_id)
    }
}

/// News from outside for a run.
///
/// ```
/// use tenure_sdk::Signal;
///
/// let signal = Signal::new("approval").payload(r#"{"approved": true}"#).id("click/4711");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Signal {
    pub(crate) wire: v1::SignalRequest,
}

impl Signal {
    /// A signal of that name, which says null.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { wire: v1::SignalRequest { name, ..v1::SignalRequest::default() } }
    }

    /// What it says, as JSON.
    pub fn payload(mut self, json: impl Into<Vec<u8>>) -> Self {
        self.wire.payload = json.into();
        self
    }

    /// What tells it from others of the name.
    pub fn correlation(mut self, correlation: impl Into<String>) -> Self {
        self.wire.correlation = Some(correlation.into());
        self
    }

    /// How to begin the run if the signal is for a run by key and there is none: the run's input,
    /// version and tags count, its workflow and key are those of the signal.
    pub fn or_start(mut self, run: NewRun) -> Self {
        let v1::StartRunRequest { version, input, tags, .. } = run.wire;
        self.wire.start = Some(v1::SignalStart { version, input, tags });
        self
    }

    /// The same signal under the same id counts once, so it is safe to send it again.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.wire.signal_id = Some(id.into());
        self
    }
}

//! A version of a workflow: its source and outline, which the log gives, and the definition that it
//! compiles to.
//!
//! `apply` needs the outline only. A source is compiled when the state begins to serve, by parsers that
//! may be stricter than those that it was registered with. A version that no longer compiles is
//! *broken*: no run of it begins, and the runs that it has stand still.

use std::sync::{Arc, OnceLock};

use tenure_flow::{Definition, Fault, FaultCode};
use tenure_record::time::Timestamp;
use tenure_value::Value;

/// A version of a workflow.
#[derive(Clone, Debug)]
pub(crate) struct Workflow {
    pub name: Arc<str>,
    pub version: u32,
    /// By the wall clock.
    pub registered_at: Timestamp,
    pub source: Value,
    pub hash: [u8; 32],
    /// The names of its nodes, by their place.
    pub nodes: Arc<[Arc<str>]>,
    pub transitions: u32,
    pub groups: u32,
    compiled: OnceLock<Compiled>,
}

#[derive(Clone, Debug)]
struct Compiled {
    /// One that does nothing where there are faults.
    definition: Arc<Definition>,
    faults: Arc<[Fault]>,
}

/// What the log says of a version.
pub(crate) struct Outline {
    pub name: Arc<str>,
    pub version: u32,
    pub registered_at: Timestamp,
    pub source: Value,
    pub nodes: Vec<Arc<str>>,
    pub transitions: u32,
    pub groups: u32,
}

impl Workflow {
    /// A version as the log has it, and its definition if that was compiled a moment ago.
    pub(crate) fn new(outline: Outline, known: Option<&Arc<Definition>>) -> Self {
        let Outline { name, version, registered_at, source, nodes, transitions, groups } = outline;
        let compiled = known.map(|definition| Compiled {
            definition: Arc::clone(definition),
            faults: Arc::from([]),
        });
        Self {
            name,
            version,
            registered_at,
            hash: Definition::hash_of(&source),
            source,
            nodes: nodes.into(),
            transitions,
            groups,
            compiled: compiled.map_or_else(OnceLock::new, OnceLock::from),
        }
    }

    /// What it compiles to; a definition that does nothing if it is broken.
    pub(crate) fn definition(&self) -> &Arc<Definition> {
        &self.compiled().definition
    }

    /// Why it no longer compiles; empty if it does.
    pub(crate) fn faults(&self) -> &Arc<[Fault]> {
        &self.compiled().faults
    }

    /// Whether it was compiled and has faults. Compiles nothing.
    pub(crate) fn is_broken(&self) -> bool {
        self.compiled.get().is_some_and(|compiled| !compiled.faults.is_empty())
    }

    /// Bytes of memory that it takes, about: its source, copies of its texts, and what was compiled
    /// from it. A compiled schema takes about five times what the structure of its source takes
    /// beside the texts, as measured with schemas of thousands of properties.
    pub(crate) fn bytes(&self) -> u64 {
        let (held, text) = (self.source.held_bytes(), self.source.bytes());
        (size_of::<Definition>() + held + 2 * text + 5 * held.saturating_sub(text)) as u64
    }

    fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| {
            let faults = match Definition::compile(&self.source) {
                Ok(definition) if self.outlines(&definition) => {
                    let definition = Arc::new(definition);
                    return Compiled { definition, faults: Arc::from([]) };
                }
                Ok(_) => vec![Fault::new(
                    "",
                    FaultCode::BadValue,
                    "it has other nodes, transitions or groups than when it was registered; \
                     register it again, as a new version",
                )],
                Err(faults) => faults,
            };
            let inert = Definition::inert(&self.name, &self.source, &self.nodes);
            Compiled { definition: Arc::new(inert), faults: faults.into() }
        })
    }

    /// Decisions in the log name nodes, transitions and groups by their place.
    fn outlines(&self, definition: &Definition) -> bool {
        let names = definition.nodes.iter().map(|node| &node.name);
        definition.name == self.name
            && names.eq(self.nodes.iter())
            && definition.transitions.len() == self.transitions as usize
            && definition.groups.len() == self.groups as usize
    }
}

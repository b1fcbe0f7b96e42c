//! Workflows: definitions, by name and version.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Payload, Timestamp};

/// A version of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Workflow {
    /// The workflow's name.
    pub name: String,
    /// The version, 1 for the first.
    pub version: u32,
    /// When the version was registered.
    pub registered_at: Timestamp,
    /// The number of nodes.
    pub nodes: u32,
    /// The number of transitions.
    pub transitions: u32,
    /// Why the definition no longer compiles, so that no run of it can start; empty if it compiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// The definition as JSON; empty in lists.
    #[serde(default, skip_serializing_if = "Payload::is_empty")]
    pub definition: Payload,
}

/// One fault of a definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Fault {
    /// The place as a JSON pointer; empty for the whole definition.
    pub pointer: String,
    /// The kind of fault, for programs.
    pub code: String,
    /// What is wrong and what to do, for people.
    pub message: String,
    /// The line in the text, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The character in that line, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// `LINE:COLUMN: POINTER: message [code]`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "{line}:{column}: ")?;
        }
        let pointer = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(f, "{pointer}: {} [{}]", self.message, self.code)
    }
}

/// The outcome of registering a definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Registered {
    /// The workflow's name.
    pub name: String,
    /// The version that the definition has.
    pub version: u32,
    /// Whether the newest version had an equal definition, so that no version was added.
    pub existed: bool,
}

/// A definition to register. Over HTTP its text is the body, and the content type is its format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// The name that the definition must have, if one is given.
    pub name: Option<String>,
    /// The text.
    pub text: Bytes,
    /// The format of the text.
    pub format: DefinitionFormat,
}

/// How a definition is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefinitionFormat {
    /// JSON.
    #[default]
    Json,
    /// YAML.
    Yaml,
}

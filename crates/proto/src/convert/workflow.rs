//! Workflows: definitions, by name and version.

use tenure_api::{
    Definition, DefinitionFormat, Fault, Page, PageQuery, Registered, Timestamp, Workflow,
};

use super::{Malformed, all, given};
use crate::v1;

impl From<Definition> for v1::PutWorkflowRequest {
    fn from(Definition { name, text, format }: Definition) -> Self {
        let format = match format {
            DefinitionFormat::Json => v1::DefinitionFormat::Json,
            DefinitionFormat::Yaml => v1::DefinitionFormat::Yaml,
        };
        let (name, definition) = (name.unwrap_or_default(), text.into());
        Self { name, definition, format: format.into() }
    }
}

impl TryFrom<v1::PutWorkflowRequest> for Definition {
    type Error = Malformed;

    fn try_from(put: v1::PutWorkflowRequest) -> Result<Self, Malformed> {
        let v1::PutWorkflowRequest { name, definition, format } = put;
        let format = match v1::DefinitionFormat::try_from(format) {
            Ok(v1::DefinitionFormat::Unspecified | v1::DefinitionFormat::Json) => {
                DefinitionFormat::Json
            }
            Ok(v1::DefinitionFormat::Yaml) => DefinitionFormat::Yaml,
            Err(_) => {
                let detail = format!("format is {format}; it must be 1 for JSON or 2 for YAML");
                return Err(Malformed(detail));
            }
        };
        Ok(Self { name: given(name), text: definition.into(), format })
    }
}

impl From<Registered> for v1::PutWorkflowResponse {
    fn from(Registered { name, version, existed }: Registered) -> Self {
        Self { name, version, existed }
    }
}

impl From<v1::PutWorkflowResponse> for Registered {
    fn from(v1::PutWorkflowResponse { name, version, existed }: v1::PutWorkflowResponse) -> Self {
        Self { name, version, existed }
    }
}

impl From<Fault> for v1::Fault {
    fn from(Fault { pointer, code, message, line, column }: Fault) -> Self {
        Self { pointer, code, message, line, column }
    }
}

impl From<v1::Fault> for Fault {
    fn from(v1::Fault { pointer, code, message, line, column }: v1::Fault) -> Self {
        Self { pointer, code, message, line, column }
    }
}

impl From<Workflow> for v1::Workflow {
    fn from(workflow: Workflow) -> Self {
        let Workflow { name, version, registered_at, nodes, transitions, faults, definition } =
            workflow;
        Self {
            name,
            version,
            registered_at: registered_at.as_ms(),
            definition: definition.into(),
            nodes,
            transitions,
            faults: all(faults),
        }
    }
}

impl From<v1::Workflow> for Workflow {
    fn from(workflow: v1::Workflow) -> Self {
        let v1::Workflow { name, version, registered_at, definition, nodes, transitions, faults } =
            workflow;
        Self {
            name,
            version,
            registered_at: Timestamp(registered_at),
            nodes,
            transitions,
            faults: all(faults),
            definition: definition.into(),
        }
    }
}

impl From<PageQuery> for v1::ListWorkflowsRequest {
    fn from(PageQuery { limit, cursor }: PageQuery) -> Self {
        Self { limit, cursor: cursor.unwrap_or_default() }
    }
}

impl From<v1::ListWorkflowsRequest> for PageQuery {
    fn from(v1::ListWorkflowsRequest { limit, cursor }: v1::ListWorkflowsRequest) -> Self {
        Self { limit, cursor: given(cursor) }
    }
}

impl From<Page<Workflow>> for v1::ListWorkflowsResponse {
    fn from(Page { items, next_cursor }: Page<Workflow>) -> Self {
        Self { workflows: all(items), next_cursor: next_cursor.unwrap_or_default() }
    }
}

impl From<v1::ListWorkflowsResponse> for Page<Workflow> {
    fn from(page: v1::ListWorkflowsResponse) -> Self {
        let v1::ListWorkflowsResponse { workflows, next_cursor } = page;
        Self { items: all(workflows), next_cursor: given(next_cursor) }
    }
}

//! The verbs of workflows: definitions and their versions.

use std::sync::Arc;

use tenure_coordinator::request::{GetWorkflow, ListWorkflows};
use tenure_coordinator::{NameRange, WorkflowInfo};
use tenure_core::command::{DeleteWorkflow, RegisterWorkflow, Registered};
use tenure_flow::{Definition, Fault};

use crate::call::Call;
use crate::error::Error;
use crate::handle::Tenure;

/// The workflows of an open data folder; see [`Tenure::workflows`].
#[derive(Clone, Copy, Debug)]
pub struct Workflows<'a>(&'a Tenure);

impl<'a> Workflows<'a> {
    pub(crate) fn new(tenure: &'a Tenure) -> Self {
        Self(tenure)
    }

    /// Registers a definition written as YAML. It becomes a new version, unless it equals the newest.
    pub fn put_yaml(self, text: &str) -> Call<Registered> {
        self.put(Definition::from_yaml(text))
    }

    /// Registers a definition written as JSON. It becomes a new version, unless it equals the newest.
    pub fn put_json(self, text: impl AsRef<[u8]>) -> Call<Registered> {
        self.put(Definition::from_json(text.as_ref()))
    }

    fn put(self, compiled: Result<Definition, Vec<Fault>>) -> Call<Registered> {
        let compiled = compiled.map_err(|faults| Error::faulty(&faults));
        let request =
            compiled.map(|definition| RegisterWorkflow { definition: Arc::new(definition) });
        self.0.call(request, |registered| registered)
    }

    /// The newest version of a workflow.
    pub fn get(self, name: &str) -> Call<WorkflowInfo> {
        let request = GetWorkflow { name: Arc::from(name), version: None };
        self.0.call(Ok(request), |workflow| *workflow)
    }

    /// A version of a workflow.
    pub fn get_version(self, name: &str, version: u32) -> Call<WorkflowInfo> {
        let request = GetWorkflow { name: Arc::from(name), version: Some(version) };
        self.0.call(Ok(request), |workflow| *workflow)
    }

    /// The newest version of every workflow, by name.
    pub fn list(self) -> Call<Vec<WorkflowInfo>> {
        let engine = self.0.engine().clone();
        let mut pending = engine.ask(ListWorkflows(NameRange::default()));
        Call::new(async move {
            let mut workflows = Vec::new();
            loop {
                let page = pending.await?;
                workflows.extend(page.workflows);
                let Some(next) = page.next else { return Ok(workflows) };
                let range = NameRange { after: Some(next), ..NameRange::default() };
                pending = engine.ask(ListWorkflows(range));
            }
        })
    }

    /// Deletes a workflow with all its versions. It is refused while runs or other workflows need one.
    pub fn delete(self, name: &str) -> Call<()> {
        self.0.call(Ok(DeleteWorkflow { name: Arc::from(name), version: None }), |()| ())
    }

    /// Deletes one version of a workflow. It is refused while runs or other workflows need it.
    pub fn delete_version(self, name: &str, version: u32) -> Call<()> {
        self.0.call(Ok(DeleteWorkflow { name: Arc::from(name), version: Some(version) }), |()| ())
    }
}

//! `tenure workflow get`: a definition, as a graph or as JSON.

use clap::Args;
use tenure_graph::Graph;
use tenure_sdk::Workflow;

use super::put::fault_line;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::run::graph::Picture;
use crate::ui::json;
use crate::ui::output::Lines;

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure workflow get order
  tenure workflow get order --version 2
  tenure workflow get order --svg > order.svg
  tenure workflow get order -o json | jq .definition";

#[derive(Debug, Args)]
pub(super) struct Get {
    /// The workflow's name.
    name: String,

    /// Its version; the newest if not given.
    #[arg(long, value_name = "N")]
    version: Option<u32>,

    #[command(flatten)]
    picture: Picture,
}

pub(super) fn run(get: &Get, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let workflow = client.workflows().get(&get.name, get.version).await?;
        let mut out = Lines::new();
        match format {
            Format::Json => json::print(&mut out, &workflow),
            Format::Table if !workflow.faults.is_empty() => {
                let Workflow { name, version, faults, .. } = &workflow;
                out.print(format_args!(
                    "{name} {version} no longer compiles; no run of it can begin:"
                ));
                faults.iter().for_each(|fault| out.print(format_args!("  {}", fault_line(fault))));
            }
            Format::Table => {
                let definition = crate::run::graph::definition(&workflow)?;
                get.picture.print(&mut out, &Graph::of(definition, title(&workflow)));
            }
        }
        out.finish();
        Ok(())
    })
}

fn title(workflow: &Workflow) -> Vec<String> {
    vec![format!("{} {}", workflow.name, workflow.version)]
}

//! `tenure workflow put`: a server learns a definition.

use std::path::PathBuf;

use clap::Args;
use tenure_sdk::{Definition, Fault};

use super::check;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::output::Lines;
use crate::ui::plain;

pub(super) const EXAMPLES: &str = "\
The same definition again is no new version. One with faults is refused, and all of them are printed
as `tenure workflow check` does. Runs that have begun keep the version that they began with.

Examples:
  tenure workflow put order.yaml
  tenure workflow put order.yaml -o json | jq .version
  generate | tenure workflow put -";

#[derive(Debug, Args)]
pub(super) struct Put {
    /// The definition, YAML or JSON; - for stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(put: &Put, server: &Server, format: Format) -> Result<(), Failure> {
    let bytes = check::read(&put.file)
        .map_err(|cause| Failure::Unreadable { file: put.file.clone(), cause })?;
    let definition = match check::is_json(&put.file) {
        true => Definition::json(bytes),
        false => Definition::yaml(bytes),
    };
    server.with(|client| async move {
        let registered =
            client.workflows().put(definition).await.map_err(|error| match error.faults() {
                [] => Failure::Refused(error),
                faults => {
                    print_faults(put, faults);
                    Failure::Faulty { faults: faults.len() }
                }
            })?;
        let mut out = Lines::new();
        match format {
            Format::Json => json::print(&mut out, &registered),
            Format::Table => {
                let (name, version) = (plain::line(&registered.name), registered.version);
                let news = if registered.existed { "is, as before," } else { "is now" };
                out.print(format_args!("{name} {news} version {version}"));
            }
        }
        out.finish();
        Ok(())
    })
}

/// As `tenure workflow check` prints them.
fn print_faults(put: &Put, faults: &[Fault]) {
    let mut out = Lines::new();
    let file = put.file.display();
    for fault in faults {
        let place = match (fault.line, fault.column) {
            (Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
            _ => format!("{file}: "),
        };
        out.print(format_args!("{place}{}", fault_line(fault)));
    }
    out.finish();
}

/// A fault with its pointer and its code, without the file.
pub(super) fn fault_line(fault: &Fault) -> String {
    let (pointer, message) = (plain::line(&fault.pointer), plain::line(&fault.message));
    let pointer = if pointer.is_empty() { pointer } else { format!("{pointer}: ") };
    format!("{pointer}{message} [{}]", plain::line(&fault.code))
}

//! `tenure workflow check`: a definition in a file, checked as a server would, without one.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tenure_flow::limits::DEFINITION_BYTES_MAX;
use tenure_flow::{Definition, Fault, FaultCode};

use crate::Format;
use crate::failure::Failure;
use crate::ui::output::Lines;

pub(super) const EXAMPLES: &str = "\
Each fault is printed as FILE:LINE:COLUMN, its JSON pointer, a sentence and a code. With -o json the
answer is one object. A file whose name ends in .json is read as JSON, any other as YAML; - is stdin.

Examples:
  tenure workflow check review.yaml
  tenure workflow check -o json review.yaml
  generate | tenure workflow check -

Exit codes:
  0  it has no fault
  1  it has
  2  there is no such file, or it cannot be read";

#[derive(Debug, Args)]
pub(super) struct Check {
    /// The definition, YAML or JSON; - for stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(check: &Check, format: Format) -> Result<(), Failure> {
    let bytes = read(&check.file)
        .map_err(|cause| Failure::Unreadable { file: check.file.clone(), cause })?;
    let checked = compile(&check.file, &bytes);
    let mut lines = Lines::new();
    match format {
        Format::Table => print(&mut lines, &check.file, &checked),
        Format::Json => lines.print(answer(&checked)),
    }
    lines.finish();
    match checked {
        Ok(_) => Ok(()),
        Err(faults) => Err(Failure::Faulty { faults: faults.len() }),
    }
}

/// No more than a definition may have, and one byte that says that there was more.
pub(super) fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = DEFINITION_BYTES_MAX as u64 + 1;
    if file.as_os_str() == "-" {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        File::open(file)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Whether a file is read as JSON.
pub(super) fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "json")
}

fn compile(file: &Path, bytes: &[u8]) -> Result<Definition, Vec<Fault>> {
    if is_json(file) {
        return Definition::from_json(bytes);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Definition::from_yaml(text),
        Err(error) => {
            let at = error.valid_up_to();
            let message = format!("the text is no UTF-8 from byte {at} on; save it as UTF-8");
            Err(vec![Fault::new("", FaultCode::Syntax, message)])
        }
    }
}

fn print(lines: &mut Lines, file: &Path, checked: &Result<Definition, Vec<Fault>>) {
    match checked {
        Ok(definition) => {
            let (nodes, transitions) = (definition.nodes.len(), definition.transitions.len());
            let name = &definition.name;
            lines.print(format!("`{name}` has no fault: {nodes} nodes, {transitions} transitions"));
        }
        Err(faults) => {
            for fault in faults {
                // A fault without a place begins with its pointer.
                let separator = if fault.place.is_some() { ":" } else { ": " };
                lines.print(format!("{}{separator}{fault}", file.display()));
            }
        }
    }
}

fn answer(checked: &Result<Definition, Vec<Fault>>) -> Value {
    let fault = |fault: &Fault| {
        json!({
            "pointer": fault.pointer,
            "code": fault.code.as_str(),
            "message": fault.message,
            "line": fault.place.map(|place| place.line),
            "column": fault.place.map(|place| place.column),
        })
    };
    let faults = checked.as_ref().err().map_or(&[][..], Vec::as_slice);
    json!({
        "workflow": checked.as_ref().ok().map(|definition| &*definition.name),
        "faults": faults.iter().map(fault).collect::<Vec<_>>(),
    })
}

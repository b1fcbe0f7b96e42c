//! Sample workflows: their files are put into a folder, the server learns them, and a run of each
//! begins. Keys keep the runs from beginning twice.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use tenure_sdk::{Client, Definition, NewRun};

use crate::failure::Failure;
use crate::ui::output;

/// The files of `examples/workflows`, which this binary has with it.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../examples/workflows/", $name)))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "order.yaml",
    "order.sh",
    "invoices.yaml",
    "invoices.sh",
    "invoices/january.txt",
    "invoices/february.txt",
    "invoices/march.txt",
    "invoices/april.txt",
    "invoices/may.txt",
    "race.yaml",
    "race.sh",
    "agent.yaml",
    "agent.sh",
];

/// The workflows, and what their first runs are given.
const RUNS: [(&str, &str); 4] = [
    ("order", r#"{"order": "A-1001", "amount": 1200, "to": "Lisbon"}"#),
    ("invoices", r#"{"folder": "invoices"}"#),
    ("race", r#"{"key": "capital-of-france"}"#),
    ("agent", r#"{"goal": "a short title for our report on owls", "max": 24}"#),
];

/// Puts the files into a folder. What is there stays: somebody may have changed it.
pub(super) fn unpack(folder: &Path) -> Result<(), Failure> {
    for (name, text) in FILES {
        write_new(&folder.join(name), text).map_err(|error| {
            let folder = folder.display();
            Failure::Usage(format!(
                "the sample {name} cannot be written to {folder}: {error}; give a folder with \
                 --data that can be written to"
            ))
        })?;
    }
    Ok(())
}

fn write_new(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::File::create_new(file) {
        Ok(mut created) => created.write_all(text.as_bytes()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// A run that has begun, of the workflow of this name.
pub(super) struct Begun {
    pub(super) name: &'static str,
    pub(super) run_id: u64,
}

/// Registers the workflows in the folder, and begins a run of each.
pub(super) async fn begin(client: &Client, folder: &Path) -> Result<Vec<Begun>, Failure> {
    let mut begun = Vec::new();
    for (name, input) in RUNS {
        let file = folder.join(format!("{name}.yaml"));
        let text = fs::read(&file).map_err(|cause| Failure::Unreadable { file, cause })?;
        if let Err(error) = client.workflows().put(Definition::yaml(text).named(name)).await {
            if error.faults().is_empty() {
                return Err(error.into());
            }
            // Somebody is working on it; what was registered before still runs.
            let file = folder.join(format!("{name}.yaml"));
            let file = file.display();
            output::complain(&format!("{error}; look with `tenure workflow check {file}`"));
        }
        let run = NewRun::of(name).input(input).key(format!("sample/{name}")).tag("sample", name);
        let run_id = client.runs().start(run).await?.id;
        begun.push(Begun { name, run_id });
    }
    Ok(begun)
}

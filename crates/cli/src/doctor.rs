//! `tenure doctor`: is a data folder well, and if not, what is wrong and what can be done.

use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::json;
use tenure_log::Fault;
use tenure_server::{BlobsSeen, is_data_file, look_at_blobs};
use tenure_wal::disk::read_only::ReadOnlyDisk;
use tenure_wal::disk::real::is_locked;
use tenure_wal::disk::{Disk, access};
use tenure_wal::{Options, snapshot};

use crate::Format;
use crate::failure::Failure;
use crate::ui::output::Lines;
use crate::ui::style::Paint;
use crate::wal::{self, Proof};

const EXAMPLES: &str = "\
Looks at everything in a data folder or a backup, and changes nothing: who has it, how much room is
left, whether each snapshot can be read, whether the log keeps every law, and what does not belong
there. A server may be running on it. The exit code is 0 unless something is bad.

Examples:
  tenure doctor --data ./data
  tenure doctor --data ./backup-monday
  tenure doctor --data ./data -o json | jq '.checks[] | select(.result != \"ok\")'";

/// Say what is wrong with a data folder, in plain words.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    /// The data folder. It is only read.
    #[arg(long = "data", value_name = "DIR")]
    folder: PathBuf,
}

/// How something looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Ok,
    /// Worth knowing; nothing is lost.
    Note,
    Bad,
}

impl Look {
    fn as_str(self) -> &'static str {
        match self {
            Look::Ok => "ok",
            Look::Note => "note",
            Look::Bad => "bad",
        }
    }

    fn style(self) -> Style {
        Style::new().fg_color(Some(match self {
            Look::Ok => AnsiColor::Green.into(),
            Look::Note => AnsiColor::Yellow.into(),
            Look::Bad => AnsiColor::Red.into(),
        }))
    }
}

/// One thing that was looked at.
struct Finding {
    check: &'static str,
    look: Look,
    message: String,
}

/// All that was found, as it is found.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn is_well(&self) -> bool {
        self.0.iter().all(|finding| finding.look != Look::Bad)
    }

    fn add(&mut self, check: &'static str, look: Look, message: impl Into<String>) {
        self.0.push(Finding { check, look, message: message.into() });
    }
}

pub(crate) fn run(doctor: &Doctor, format: Format) -> Result<(), Failure> {
    let folder = doctor.folder.as_path();
    let disk = ReadOnlyDisk::open(folder)?;
    let mut findings = Findings::default();
    look_at_owner(folder, &mut findings);
    look_at_room(&disk, &mut findings);
    look_at_files(&disk, &mut findings)?;
    look_at_artifacts(folder, &mut findings);
    let proof = wal::proof(folder);
    look_at_snapshots(&disk, proof.as_ref().ok(), &mut findings)?;
    let failure = look_at_log(proof, &mut findings);
    print(folder, &findings, format);
    match failure {
        Some(failure) => Err(failure),
        None if findings.is_well() => Ok(()),
        None => Err(Failure::Ill { folder: folder.to_owned() }),
    }
}

fn look_at_owner(folder: &Path, findings: &mut Findings) {
    match is_locked(folder) {
        _ if access::is_backup(folder).unwrap_or(false) => {
            let message = "it is a backup; `tenure restore` makes a data folder of it";
            findings.add("owner", Look::Ok, message);
        }
        Ok(true) => findings.add("owner", Look::Ok, "a server is running on it"),
        Ok(false) => findings.add("owner", Look::Ok, "no server is running on it"),
        Err(error) => {
            findings.add("owner", Look::Note, format!("it is not known who uses it: {error}"));
        }
    }
    if let Err(fault) = access::check_mode(folder) {
        findings.add("owner", Look::Bad, fault.to_string());
    }
}

fn look_at_room(disk: &ReadOnlyDisk, findings: &mut Findings) {
    let low = Options::new(0).low_water_bytes;
    match disk.free_bytes() {
        Ok(free) if free < low => findings.add(
            "room",
            Look::Bad,
            format!(
                "only {free} bytes are free; below {low} a server refuses new work: make room, or \
                 keep less with --log-keep and --retention"
            ),
        ),
        Ok(free) => findings.add("room", Look::Ok, format!("{free} bytes are free")),
        Err(error) => findings.add("room", Look::Note, format!("nobody can say: {error}")),
    }
}

/// Files that no Tenure has made.
fn look_at_files(disk: &ReadOnlyDisk, findings: &mut Findings) -> Result<(), Failure> {
    let names = disk.list().map_err(|cause| Fault::NoFolder { folder: disk.name(), cause })?;
    for name in names.iter().filter(|name| name.ends_with(".snap.bad")) {
        let message = format!(
            "{name} could not be read once and was set aside; an older snapshot was used, and \
             nothing is lost; the next good snapshot removes it; look after the disk"
        );
        findings.add("files", Look::Note, message);
    }
    let mut strange: Vec<_> = names.into_iter().filter(|name| !is_data_file(name)).collect();
    strange.sort();
    match strange.as_slice() {
        [] => findings.add("files", Look::Ok, "every file belongs here"),
        _ => findings.add(
            "files",
            Look::Note,
            format!("not from Tenure, and left alone: {}", strange.join(", ")),
        ),
    }
    Ok(())
}

fn look_at_snapshots(
    disk: &ReadOnlyDisk,
    proof: Option<&Proof>,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let bad = proof.map(Proof::bad_snapshots).unwrap_or_default();
    for (_, found) in bad {
        findings.add("snapshots", Look::Bad, found);
    }
    let mut good = snapshot::list(disk)?;
    good.retain(|lsn| bad.iter().all(|(bad, _)| bad != lsn));
    let message = match good.as_slice() {
        [] => "there is none: a start reads the whole log".to_owned(),
        [newest, older @ ..] => {
            let others = older.len();
            format!("the newest is of LSN {newest}; {others} before it to fall back to")
        }
    };
    findings.add("snapshots", Look::Ok, message);
    Ok(())
}

/// The files that artifacts are made of.
fn look_at_artifacts(folder: &Path, findings: &mut Findings) {
    match look_at_blobs(folder) {
        Ok(BlobsSeen { whole, damaged }) if damaged.is_empty() => {
            findings.add("blobs", Look::Ok, format!("{whole} are there, and all are whole"));
        }
        Ok(BlobsSeen { damaged, .. }) => {
            for blob in damaged {
                let message =
                    format!("{blob} is not what its name says: bring it back from a backup");
                findings.add("blobs", Look::Bad, message);
            }
        }
        Err(error) => findings.add("blobs", Look::Bad, format!("they cannot be read: {error}")),
    }
}

/// Every byte that counts was read, and every law was checked.
fn look_at_log(proof: Result<Proof, Failure>, findings: &mut Findings) -> Option<Failure> {
    match proof {
        Ok(proof) => {
            for note in proof.notes() {
                findings.add("log", Look::Note, note);
            }
            let (last, hash) = (proof.last_lsn(), proof.hash());
            let message = format!("sound up to LSN {last}; its state has hash {hash}");
            findings.add("log", Look::Ok, message);
            None
        }
        Err(failure) => {
            findings.add("log", Look::Bad, failure.to_string());
            Some(failure)
        }
    }
}

fn print(folder: &Path, findings: &Findings, format: Format) {
    let is_well = findings.is_well();
    let mut lines = Lines::new();
    match format {
        Format::Json => {
            let checks = findings.0.iter().map(|finding| {
                json!({
                    "check": finding.check,
                    "result": finding.look.as_str(),
                    "message": finding.message,
                })
            });
            lines.print(json!({
                "folder": folder.display().to_string(),
                "well": is_well,
                "checks": checks.collect::<Vec<_>>(),
            }));
        }
        Format::Table => {
            let paint = Paint::of_stdout();
            for Finding { check, look, message } in &findings.0 {
                let word = paint.draw(look.style(), &format!("{:<5}", look.as_str()));
                lines.print(format_args!("{word} {check:<10} {message}"));
            }
            if is_well {
                lines.print(format_args!("{} is well.", folder.display()));
            }
        }
    }
    lines.finish();
}

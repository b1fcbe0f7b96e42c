//! `tenure wal verify`: proof that a log keeps every law, or the first record that breaks one.

mod base;
mod progress;

use std::ops::ControlFlow;
use std::path::Path;

use clap::Args;
use serde_json::{Map, Value, json};
use tenure_audit::{Audit, Seed, Summary, Violation};
use tenure_core::state::snapshot::each_item;
use tenure_core::state::{Facts, StateHash};
use tenure_core::{State, apply, invariant};
use tenure_log::SnapshotFooter;
use tenure_record::codec;
use tenure_record::id::Lsn;
use tenure_record::state::TaskState;
use tenure_wal::Located;
use tenure_wal::snapshot::file_name;

use self::base::Base;
use self::progress::Progress;
use super::time::{moment, text};
use super::{Data, sentence, walk};
use crate::Format;
use crate::failure::{Failure, RecordLocation};
use crate::ui::output::Lines;

pub(super) const EXAMPLES: &str = "\
Reads the log, from its first record on, or from the oldest snapshot on if what was before it is
gone, and checks every record against the laws: no two
leases of a task overlap, no late report was accepted, every grant ended once, ids and time only
go forward, and so on. Then it applies all records, checks the state and prints its hash. Each
snapshot must be whole, and give the state that the records give.

The first record that breaks a law is named with its LSN, file and offset; the exit code is then 65,
as for a corrupt log.

Examples:
  tenure wal verify --data ./data
  tenure wal verify --data ./data -o json | jq -r .state_hash";

/// A log that changes while it is read is read again so often.
const TRIES_MAX: u32 = 5;

#[derive(Debug, Args)]
pub(super) struct Verify {
    #[command(flatten)]
    data: Data,
}

pub(super) fn run(verify: &Verify, format: Format) -> Result<(), Failure> {
    let outcome = prove(&verify.data.folder);
    let folder = verify.data.folder.display().to_string();
    let mut lines = Lines::new();
    match (&outcome, format) {
        (Ok(proof), Format::Json) => lines.print(proof.json(&folder)),
        (Ok(proof), Format::Table) => proof.table(&folder, &mut lines),
        (Err(failure), Format::Json) => {
            if let Some(violation) = failure.violation() {
                lines.print(json!({ "folder": folder, "sound": false, "violation": violation }));
            }
        }
        (Err(_), Format::Table) => {}
    }
    lines.finish();
    outcome.map(|_| ())
}

/// What was proved.
pub(crate) struct Proof {
    summary: Summary,
    hash: StateHash,
    bad_snapshots: Vec<(tenure_log::Lsn, String)>,
    notes: Vec<String>,
}

/// Proves that a folder's log keeps every law.
pub(super) fn prove(folder: &Path) -> Result<Proof, Failure> {
    let mut tries = 1;
    loop {
        match prove_once(folder) {
            Err(Failure::InMotion) if tries < TRIES_MAX => tries += 1,
            outcome => return outcome,
        }
    }
}

fn prove_once(folder: &Path) -> Result<Proof, Failure> {
    let Base { beginning, state, snapshots, bad_snapshots } = base::find(folder)?;
    let mut verifier = Verifier::new(state, snapshots);
    let inspection = walk(folder, beginning, |at| verifier.frame(at).map(ControlFlow::Continue));
    verifier.progress.end();
    let notes = inspection?.recovered.notes.iter().map(sentence).collect();
    verifier.finish(bad_snapshots, notes)
}

/// The audit goes first: a record that it refuses is never applied.
struct Verifier {
    audit: Audit,
    state: State,
    progress: Progress,
    /// The last frame that was read, for what is only known at the end.
    last: RecordLocation,
    /// Snapshots that are still to come, the next one last.
    snapshots: Vec<SnapshotFooter>,
}

impl Verifier {
    fn new(state: State, snapshots: Vec<SnapshotFooter>) -> Self {
        let (audit, progress) = (seeded(state.facts()), Progress::new());
        Self { audit, state, progress, last: RecordLocation::default(), snapshots }
    }

    fn frame(&mut self, at: &Located<'_>) -> Result<(), Failure> {
        if self.last.file != at.segment.file {
            self.last.file.clone_from(&at.segment.file);
        }
        self.last.offset = at.offset;
        for (lsn, bytes) in at.frame.records() {
            self.last.lsn = lsn;
            self.record(bytes)?;
        }
        let records = at.frame.header.end_lsn().before().0;
        self.progress.tell(records, &at.segment.file);
        Ok(())
    }

    fn record(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let record = codec::decode(bytes).map_err(|malformed| Failure::Record {
            at: self.last.clone(),
            found: malformed.to_string(),
        })?;
        self.audit.read(&record, bytes).map_err(|violation| self.unsound(&violation))?;
        apply(&mut self.state, &record);
        self.compare_snapshot()
    }

    /// A snapshot must give the state that the records up to it give.
    fn compare_snapshot(&mut self) -> Result<(), Failure> {
        let facts = self.state.facts();
        let Some(footer) = self.snapshots.pop_if(|next| next.lsn.0 <= facts.last_lsn().0) else {
            return Ok(());
        };
        let (stored, found) = (StateHash(footer.state_hash), facts.hash());
        match stored == found {
            true => Ok(()),
            false => Err(Failure::Unsound {
                at: RecordLocation { file: file_name(footer.lsn), offset: 0, lsn: footer.lsn },
                law: "SnapshotsFollowTheLog".to_owned(),
                found: format!("its state has hash {stored}, and by the records {found}"),
            }),
        }
    }

    fn finish(
        self,
        bad_snapshots: Vec<(tenure_log::Lsn, String)>,
        notes: Vec<String>,
    ) -> Result<Proof, Failure> {
        let summary = self.audit.finish().map_err(|violation| self.unsound(&violation))?;
        let facts = self.state.facts();
        self.audit.compare(&seeded(facts)).map_err(|violation| self.unsound(&violation))?;
        invariant::check(&self.state).map_err(|violation| {
            let law = format!("{:?}", violation.law);
            Failure::Unsound { at: self.last.clone(), law, found: violation.found }
        })?;
        let hash = facts.hash();
        Ok(Proof { summary, hash, bad_snapshots, notes })
    }

    fn unsound(&self, violation: &Violation) -> Failure {
        let law = format!("{:?}", violation.law);
        Failure::Unsound { at: self.last.clone(), law, found: violation.found.clone() }
    }
}

/// An audit that begins after these facts.
fn seeded(facts: &Facts) -> Audit {
    let mut seed = Seed::new();
    let seeded = each_item(facts, |item| seed.item(&item));
    seeded.expect("the items of a state name its own queues, workers and runs");
    seed.finish()
}

impl Proof {
    /// What people should hear of, though the log is sound.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The snapshots that cannot be read, and what is wrong with each. The state was made without
    /// them.
    pub(crate) fn bad_snapshots(&self) -> &[(tenure_log::Lsn, String)] {
        &self.bad_snapshots
    }

    /// All of that.
    pub(crate) fn all_notes(&self) -> impl Iterator<Item = &String> {
        self.bad_snapshots.iter().map(|(_, bad)| bad).chain(&self.notes)
    }

    /// The hash of the state.
    pub(crate) fn hash(&self) -> StateHash {
        self.hash
    }

    /// The last record.
    pub(crate) fn last_lsn(&self) -> Lsn {
        Lsn(self.summary.after.0 + self.summary.records)
    }

    fn json(&self, folder: &str) -> Value {
        let summary = &self.summary;
        let counts = |counts: &[(&'static str, u64)]| -> Map<String, Value> {
            counts.iter().map(|(name, count)| ((*name).to_owned(), (*count).into())).collect()
        };
        let mut tasks = counts(&[
            ("known", summary.known),
            ("created", summary.created),
            ("purged", summary.purged),
        ]);
        tasks.extend(counts(&self.by_state()));
        let mut grants = counts(&[("given", summary.grants)]);
        grants.extend(counts(&summary.ends.named()));
        grants.extend(counts(&[("open", summary.open())]));
        json!({
            "folder": folder,
            "sound": true,
            "after_lsn": summary.after.0,
            "records": summary.records,
            "first_at": summary.times.map(|(first, _)| moment(first)),
            "last_at": summary.times.map(|(_, last)| moment(last)),
            "tasks": tasks,
            "grants": grants,
            "heartbeats": summary.heartbeats,
            "stale_reports": summary.stale_reports,
            "state_hash": self.hash.to_string(),
            "notes": self.all_notes().collect::<Vec<_>>(),
        })
    }

    fn by_state(&self) -> [(&'static str, u64); 6] {
        let mut counts = self.summary.by_state.iter();
        TaskState::ALL.map(|state| (state.as_str(), counts.next().copied().unwrap_or_default()))
    }

    fn table(&self, folder: &str, lines: &mut Lines) {
        let summary = &self.summary;
        lines.print(format_args!("folder    {folder}"));
        match summary.times {
            None => lines.print("records   0"),
            Some((first, last)) => {
                let (records, after) = (summary.records, summary.after.0);
                lines.print(format_args!(
                    "records   {records}, LSN {} to {}",
                    after + 1,
                    after + records
                ));
                lines.print(format_args!("time      {} to {}", text(first), text(last)));
            }
        }
        if summary.after.is_some() {
            lines.print(format_args!(
                "before    {} tasks, from the snapshot at LSN {}; older records are gone",
                summary.known, summary.after
            ));
        }
        lines.print(format_args!(
            "tasks     {} created, {} purged, {} left{}",
            summary.created,
            summary.purged,
            summary.left(),
            in_words(&self.by_state())
        ));
        let mut ends = summary.ends.named().to_vec();
        ends.push(("open", summary.open()));
        lines.print(format_args!("grants    {}{}", summary.grants, in_words(&ends)));
        lines.print(format_args!(
            "reports   heartbeats that moved a lease's end: {}, too late: {}",
            summary.heartbeats, summary.stale_reports
        ));
        lines.print(format_args!("state     {}", self.hash));
        let from = match summary.after.is_some() {
            true => format!(" from LSN {} on", summary.after.0 + 1),
            false => String::new(),
        };
        lines.print(format_args!("The log is sound{from}."));
        for note in self.all_notes() {
            lines.print(format_args!("\nnote: {note}"));
        }
    }
}

/// The counts that are not zero, after a colon.
fn in_words(counts: &[(&'static str, u64)]) -> String {
    let some = counts.iter().filter(|(_, count)| *count > 0);
    let words: Vec<_> =
        some.map(|(name, count)| format!("{count} {}", name.replace('_', " "))).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) }
}

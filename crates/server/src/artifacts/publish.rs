//! Publication: what a run has committed becomes files under `artifacts/<run>/<name>`. One thread
//! follows the log for runs that end and runs that are forgotten. It writes nothing into the log:
//! whether a file is there is asked of the folder, and what a crash cut off is done at the next
//! start.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use tenure_coordinator::request::{GetFacts, ListArtifacts};
use tenure_coordinator::{ArtifactInfo, Engine, Followed, Position, private};
use tenure_core::state::{ArtifactState, Facts};
use tenure_record::event::{Event, Record, Step};
use tenure_record::id::RunId;

use crate::artifacts::blobs::{Blobs, sync_folder};

/// After it was woken it sleeps on for so long, so that a busy log does not wake it all the time.
const NAP: Duration = Duration::from_millis(20);
/// What could not be done is tried again after so long.
const RETRY: Duration = Duration::from_secs(30);

/// What is being copied is in here; runs have numbers.
const UNFINISHED: &str = "unfinished";

/// The store: where committed artifacts are published.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(crate) fn new(data: &Path) -> Self {
        Self { folder: data.join("artifacts") }
    }

    /// Where an artifact of a run is published. Its name was checked when it was handed in.
    pub(crate) fn path(&self, run: RunId, name: &str) -> PathBuf {
        self.folder.join(run.to_string()).join(name)
    }

    /// Whether an artifact is published.
    pub(crate) fn has(&self, run: RunId, artifact: &ArtifactInfo) -> bool {
        let published = fs::metadata(self.path(run, &artifact.name));
        published.is_ok_and(|found| found.len() == artifact.bytes)
    }

    /// Publishes one; nothing happens if it is there.
    fn publish(&self, blobs: &Blobs, run: RunId, artifact: &ArtifactInfo) -> io::Result<()> {
        if self.has(run, artifact) {
            return Ok(());
        }
        let path = self.path(run, &artifact.name);
        let folder = path.parent().unwrap_or(&self.folder);
        private::create_folders(folder)?;
        // One file at a time, in a folder that no run can have.
        let unfinished = self.folder.join(UNFINISHED);
        private::create_folders(&unfinished)?;
        let unfinished = unfinished.join("file");
        // A copy: whoever changes a published file must not change what it came from.
        private::copy(&blobs.path(artifact.sha256), &unfinished)?;
        fs::File::open(&unfinished)?.sync_all()?;
        fs::rename(&unfinished, &path)?;
        sync_folder(folder)
    }

    /// Removes what was published of runs that are gone.
    fn forget(&self, is_gone: impl Fn(RunId) -> bool) -> io::Result<()> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let run = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if run.is_some_and(|run| is_gone(RunId(run))) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Begins to publish, on a thread of its own.
pub(crate) fn start(tenure: Engine, blobs: Arc<Blobs>, store: Arc<Store>) -> io::Result<()> {
    let publisher = Publisher { tenure, blobs, store, due: BTreeSet::new(), sweeps: Sweeps::Due };
    std::thread::Builder::new().name("artifacts".to_owned()).spawn(move || publisher.run())?;
    Ok(())
}

struct Publisher {
    tenure: Engine,
    blobs: Arc<Blobs>,
    store: Arc<Store>,
    /// Runs that have something to publish.
    due: BTreeSet<RunId>,
    sweeps: Sweeps,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sweeps {
    Done,
    /// Runs were forgotten, or the server has just begun.
    Due,
}

impl Publisher {
    fn run(mut self) {
        let mut follower = self.tenure.follow(Position::after(self.tenure.last_lsn()));
        if self.blobs.is_used() {
            self.look_at_all();
        }
        loop {
            let blobs = Arc::clone(&self.blobs);
            let found = follower.next_record(
                // Where there never was an artifact, nothing needs to be decoded.
                |_| blobs.is_used(),
                |record| self.look(record),
            );
            match found {
                Ok(Followed::Frame) => {}
                Ok(Followed::Closed) => return,
                // It was overtaken; what is due is found in the state.
                Ok(Followed::Trimmed(_)) | Err(_) => {
                    follower.skip();
                    self.look_at_all();
                }
                Ok(Followed::UpToDate) => {
                    let rest = self.work();
                    follower.wait(rest);
                    std::thread::sleep(NAP);
                }
            }
        }
    }

    fn look_at_all(&mut self) {
        self.sweeps = Sweeps::Due;
        if let Ok(facts) = self.tenure.ask(GetFacts).wait() {
            self.due.extend(facts.runs_with_artifacts());
        }
    }

    fn look(&mut self, record: &Record<'_>) {
        if let Event::TasksPurged(purged) = &record.event
            && !purged.runs.is_empty()
        {
            self.sweeps = Sweeps::Due;
        }
        record.event.each_cascade(|cascade| {
            for decision in cascade {
                if let Step::FinishRun(finish) = &decision.step
                    && !finish.artifacts.is_empty()
                {
                    self.due.insert(decision.run_id);
                }
            }
        });
    }

    /// Does what is due, and says how long to rest if nothing happens.
    fn work(&mut self) -> Duration {
        if !self.blobs.is_used() {
            return Duration::from_secs(3_600);
        }
        let mut rest = Duration::from_secs(3_600);
        let mut failed = BTreeSet::new();
        for run in std::mem::take(&mut self.due) {
            if let Err(error) = self.publish(run) {
                tracing::warn!(
                    "artifacts of run {run} could not be published: {error}; the next try is in \
                     {} s",
                    RETRY.as_secs()
                );
                failed.insert(run);
                rest = RETRY;
            }
        }
        self.due = failed;
        if self.sweeps == Sweeps::Due {
            match self.sweep() {
                Ok(()) => self.sweeps = Sweeps::Done,
                Err(error) => {
                    tracing::warn!("artifacts that nobody needs could not be removed: {error}");
                    rest = RETRY;
                }
            }
        }
        rest
    }

    fn publish(&self, run: RunId) -> io::Result<()> {
        // A run that is gone needs nothing.
        let Ok(artifacts) = self.tenure.ask(ListArtifacts(run)).wait() else { return Ok(()) };
        let committed = artifacts.iter().filter(|it| it.state == ArtifactState::Committed);
        committed.into_iter().try_for_each(|it| self.store.publish(&self.blobs, run, it))
    }

    fn sweep(&self) -> io::Result<()> {
        let Ok(facts) = self.tenure.ask(GetFacts).wait() else {
            return Ok(());
        };
        let facts: &Facts = &facts;
        self.store.forget(|run| facts.run(run).is_none())?;
        let removed = self.blobs.sweep(&facts.named_blobs())?;
        if removed > 0 {
            tracing::info!("{removed} blobs that no run names were removed");
        }
        Ok(())
    }
}

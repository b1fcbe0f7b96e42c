//! The archive: finished tasks and runs are written to files before they are forgotten. One thread
//! asks what is due, writes it with its history, syncs, and only then names it to the coordinator,
//! which forgets exactly that. Whoever waits for an answer never waits for this thread.

mod cabinet;
mod line;
mod read;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use tenure_api::Timestamp;
use tenure_coordinator::request::{ListDue, ListRunTasks, PurgeArchived};
use tenure_coordinator::{DueItems, Engine, Error, Refusal, RunTasks, TaskInfo};
use tenure_core::command::{Archived, Rest, Swept};
use tenure_core::limits::LIST_ITEMS_MAX;
use tenure_record::id::{Lsn, TokenId};

pub(crate) use self::cabinet::Cabinet;
use self::cabinet::CabinetError;
pub use self::cabinet::NoArchive;
pub use self::read::{ArchiveFile, ArchiveFrames, Kind, Piece, archive_files, archive_lines};
use crate::limits::{ARCHIVE_EVERY, ARCHIVE_RETRY, ARCHIVE_SAY_EVERY};
use crate::show::time;

/// How the archive stands, for those who ask.
#[derive(Debug)]
pub(crate) struct ArchiveNews {
    pub(crate) folder: String,
    pub(crate) archived: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) failures: AtomicU64,
    failing: Mutex<Option<Failing>>,
}

/// Why nothing can be archived, and since when.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    pub(crate) why: String,
    pub(crate) since: Instant,
    said_at: Instant,
}

impl ArchiveNews {
    fn new(folder: &Path) -> Self {
        Self {
            folder: folder.display().to_string(),
            archived: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            failing: Mutex::new(None),
        }
    }

    /// Why nothing can be archived just now; none if all is well.
    pub(crate) fn failing(&self) -> Option<Failing> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn failed(&self, trouble: &Trouble) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = failing.take();
        let is_news = before.as_ref().is_none_or(|it| it.said_at + ARCHIVE_SAY_EVERY <= now);
        if is_news {
            tracing::warn!(
                "nothing can be archived: {trouble}; finished tasks and runs are kept until it can, \
                 and take memory; the next try is in {} s",
                ARCHIVE_RETRY.as_secs()
            );
        }
        *failing = Some(Failing {
            why: trouble.to_string(),
            since: before.as_ref().map_or(now, |it| it.since),
            said_at: before.filter(|_| !is_news).map_or(now, |it| it.said_at),
        });
    }

    fn is_well(&self) {
        let failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(failing) = failing {
            let seconds = failing.since.elapsed().as_secs();
            tracing::info!("the archive can be written again, after {seconds} s");
        }
    }
}

/// Begins to archive, on a thread of its own.
pub(crate) fn start(tenure: Engine, cabinet: Cabinet) -> io::Result<Arc<ArchiveNews>> {
    let news = Arc::new(ArchiveNews::new(cabinet.folder()));
    let archivist = Archivist { tenure, cabinet, news: Arc::clone(&news) };
    std::thread::Builder::new().name("archive".to_owned()).spawn(move || archivist.run())?;
    Ok(news)
}

struct Archivist {
    tenure: Engine,
    cabinet: Cabinet,
    news: Arc<ArchiveNews>,
}

/// What came of one round.
enum Round {
    /// There is more to do at once.
    More,
    /// Nothing is due before this moment unless something happens after this record.
    Rest { seen: Lsn, until: Option<Instant> },
    /// The coordinator has ended.
    Over,
}

/// Why a round was cut off. Nothing was forgotten that is not in the archive.
enum Trouble {
    Cabinet(CabinetError),
    Engine(Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Cabinet(CabinetError { path, cause }) => {
                write!(f, "{}: {cause}", path.display())
            }
            Trouble::Engine(error) => write!(f, "its history cannot be read: {error}"),
        }
    }
}

impl From<CabinetError> for Trouble {
    fn from(error: CabinetError) -> Self {
        Trouble::Cabinet(error)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Engine(error)
    }
}

impl Archivist {
    fn run(mut self) {
        loop {
            match self.round() {
                Ok(Round::More) => {}
                Ok(Round::Over) => return,
                Ok(Round::Rest { seen, until }) => self.rest(seen, until),
                Err(Trouble::Engine(Error::Refused(Refusal::Unavailable(_)))) => return,
                // There is too much to do: later.
                Err(Trouble::Engine(Error::Refused(_))) => {
                    self.cabinet.drop_unsynced();
                    std::thread::sleep(ARCHIVE_EVERY);
                }
                Err(trouble) => {
                    self.cabinet.drop_unsynced();
                    self.news.failed(&trouble);
                    std::thread::sleep(ARCHIVE_RETRY);
                }
            }
        }
    }

    /// Waits until something may be due. What is due waits for company, so that frames are long.
    fn rest(&self, seen: Lsn, until: Option<Instant>) {
        loop {
            std::thread::sleep(ARCHIVE_EVERY);
            let is_time = until.is_some_and(|until| until <= Instant::now());
            if is_time || self.tenure.last_lsn() != seen {
                return;
            }
        }
    }

    /// Archives some of what is due, and has it forgotten.
    fn round(&mut self) -> Result<Round, Trouble> {
        // What is written from here on may make something due.
        let seen = self.tenure.last_lsn();
        let due = match self.tenure.ask(ListDue).wait() {
            Ok(due) => due,
            Err(Refusal::Unavailable(_)) => return Ok(Round::Over),
            // There is too much to do: later.
            Err(_) => return Ok(Round::Rest { seen, until: Some(Instant::now()) }),
        };
        if due.tasks.is_empty() && due.runs.is_empty() {
            let wait = due.next_at.map(|at| Duration::from_millis(at.0.saturating_sub(due.now.0)));
            // A failure is over only when something was written.
            return Ok(Round::Rest { seen, until: wait.map(|wait| Instant::now() + wait) });
        }
        self.cabinet.begin()?;
        let written = self.write(&due)?;
        let bytes = self.cabinet.sync()?;
        self.news.archived.fetch_add(written, Ordering::Relaxed);
        self.news.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.news.is_well();
        self.forget(&due, seen)
    }

    /// Puts all that is due on the cabinet, and says how many tasks and runs that are.
    fn write(&mut self, due: &DueItems) -> Result<u64, Trouble> {
        let archived_at = time(due.wall);
        self.put_tasks(&due.tasks, archived_at)?;
        let mut written = due.tasks.len() as u64;
        for run in &due.runs {
            let mut after = TokenId::NONE;
            loop {
                let page = ListRunTasks { run_id: run.id, after, limit: LIST_ITEMS_MAX };
                let page = self.tenure.ask(page).wait().map_err(Error::from)?;
                let RunTasks { tasks, next } = page;
                self.put_tasks(&tasks, archived_at)?;
                written += tasks.len() as u64;
                let Some(next) = next else { break };
                after = next;
            }
            let history = self.tenure.run_history(run.id)?;
            let line = line::of_run(run, &history, archived_at);
            let bytes = self.cabinet.put(Kind::Runs, &line)?;
            self.news.bytes.fetch_add(bytes, Ordering::Relaxed);
            written += 1;
        }
        Ok(written)
    }

    fn put_tasks(&mut self, tasks: &[TaskInfo], archived_at: Timestamp) -> Result<(), Trouble> {
        let wanted: Vec<_> = tasks.iter().map(|task| (task.id, task.last_lsn)).collect();
        let Some(histories) = self.tenure.histories(&wanted)? else {
            // Too much to hold at once.
            let (some, others) = tasks.split_at(tasks.len() / 2);
            self.put_tasks(some, archived_at)?;
            return self.put_tasks(others, archived_at);
        };
        for (task, history) in tasks.iter().zip(&histories) {
            let line = line::of_task(task, history, archived_at);
            let bytes = self.cabinet.put(Kind::Tasks, &line)?;
            self.news.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Has what is durable in the archive forgotten, as many records as that takes.
    fn forget(&self, due: &DueItems, seen: Lsn) -> Result<Round, Trouble> {
        let archived = Archived {
            tasks: due.tasks.iter().map(|task| task.id).collect(),
            runs: due.runs.iter().map(|run| run.id).collect(),
            as_of: due.as_of,
        };
        let mut forgotten = 0;
        loop {
            let purge = PurgeArchived(archived.clone());
            let Swept { items, rest } = self.tenure.ask(purge).wait().map_err(Error::from)?;
            forgotten += items;
            if rest == Rest::Nothing || items == 0 {
                break;
            }
        }
        // What could not be forgotten, because something happened to it, is not tried again at once.
        Ok(match due.rest {
            Rest::More if forgotten > 0 => Round::More,
            Rest::More | Rest::Nothing => Round::Rest { seen, until: None },
        })
    }
}

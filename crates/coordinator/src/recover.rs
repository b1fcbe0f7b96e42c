//! Starting: the newest good snapshot is read, every record that follows it is applied again, in
//! order, and the laws are checked before anybody is served.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

use tenure_core::invariant::{self, Violation};
use tenure_core::shelf::Shelf;
use tenure_core::state::StateHash;
use tenure_core::state::snapshot::Decoder;
use tenure_core::{State, apply};
use tenure_log::SnapshotFooter;
use tenure_log::{Base, Fault, Frame, Note, OpenLog, Recovered};
use tenure_record::codec::{self, Malformed};
use tenure_record::id::Lsn;
use tenure_record::time::Timestamp;

use crate::planted::{self, Bug};
use crate::shelf::shelf_fault;
use crate::snapshot::{Kept, SnapshotInfo};

/// So many blocks of a snapshot are read and checked before they are understood.
const BLOCKS_AHEAD: usize = 4;
/// Progress is told after about so many records.
const PROGRESS_RECORDS: u64 = 1 << 20;

/// What a log turned out to be.
#[derive(Debug)]
pub struct Recovery<L> {
    /// All that it says.
    pub state: State,
    /// The log, ready to go on.
    pub log: L,
    /// What people should hear of.
    pub notes: Vec<Note>,
    /// How many records were applied.
    pub records: u64,
    /// Log time of the last frame, which may be a mark.
    pub at: Timestamp,
    /// Whether acknowledged records may be missing.
    pub may_lack: bool,
    /// The snapshots, and how much of the log follows the newest.
    pub kept: Kept,
}

impl<L> Recovery<L> {
    /// Converts the log and keeps the rest.
    pub fn map_log<M, E>(self, map: impl FnOnce(L) -> Result<M, E>) -> Result<Recovery<M>, E> {
        let Self { state, log, notes, records, at, may_lack, kept } = self;
        Ok(Recovery { state, log: map(log)?, notes, records, at, may_lack, kept })
    }
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Records so far.
    pub records: u64,
    /// Log time of the last of them.
    pub at: Timestamp,
}

/// Why a log cannot be served.
#[derive(Debug)]
pub enum Failure {
    /// It cannot be read.
    Log(Fault),
    /// A record is whole, but this binary does not understand it.
    Record {
        /// Which record.
        lsn: Lsn,
        /// What is strange about it.
        malformed: Malformed,
    },
    /// A snapshot is whole, but this binary does not understand it.
    Snapshot {
        /// Which snapshot.
        lsn: Lsn,
        /// What is strange about it.
        malformed: Malformed,
    },
    /// A snapshot is whole, but it does not give the state that it was taken from.
    Hash {
        /// Which snapshot.
        lsn: Lsn,
        /// The hash that it should have.
        expected: StateHash,
        /// The hash that it has.
        found: StateHash,
    },
    /// No snapshot can be read, and without one the log is not whole.
    NoSnapshot {
        /// What is wrong with the newest.
        newest: Box<Fault>,
        /// What is missing in the log.
        log: Box<Fault>,
    },
    /// What it says breaks a law.
    Law(Violation),
    /// The coordinator panicked, which is a bug. What was acknowledged is in the log.
    Panicked,
}

impl Failure {
    /// The exit code of a process that ends because of it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Log(fault) => fault.exit_code(),
            Failure::Record { .. }
            | Failure::Snapshot { .. }
            | Failure::Hash { .. }
            | Failure::NoSnapshot { .. }
            | Failure::Law(_) => 65,
            Failure::Panicked => 70,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Log(fault) => fault.fmt(f),
            Failure::Record { lsn, malformed } => write!(
                f,
                "the log cannot be understood: the record with LSN {lsn}: {malformed}; it was \
                 perhaps written by a newer version, so use that one; nothing was changed"
            ),
            Failure::Snapshot { lsn, malformed } => write!(
                f,
                "the snapshot at LSN {lsn} cannot be understood: {malformed}; it was perhaps written \
                 by a newer version, so use that one; nothing was changed"
            ),
            Failure::Hash { lsn, expected, found } => write!(
                f,
                "the snapshot at LSN {lsn} gives a state with hash {found} and was taken from one \
                 with {expected}, which is a bug in Tenure; nothing was changed; keep a copy of the \
                 folder, use the version that wrote it, and please report it"
            ),
            Failure::NoSnapshot { newest, log } => write!(
                f,
                "no snapshot can be used, and the log does not go back to its first record: {log}; \
                 of the newest snapshot: {newest}"
            ),
            Failure::Law(violation) => write!(
                f,
                "the log breaks a law, which is a bug in Tenure: {violation}; nothing was changed; \
                 look with `tenure wal verify`, and please report it"
            ),
            Failure::Panicked => write!(
                f,
                "the engine broke one of its laws and has stopped, which is a bug in Tenure; nothing \
                 that was acknowledged is lost; please report it"
            ),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // A fault is shown as it is, so its own cause is next.
            Failure::Log(fault) => fault.source(),
            Failure::NoSnapshot { newest, .. } => Some(newest),
            Failure::Record { .. }
            | Failure::Snapshot { .. }
            | Failure::Hash { .. }
            | Failure::Law(_)
            | Failure::Panicked => None,
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure::Log(fault)
    }
}

/// Starts from a log: from its newest good snapshot, or from its first record. `table_seed` is any
/// number that strangers cannot foretell. All of the state is in memory.
pub fn recover<O: OpenLog>(
    log: O,
    table_seed: u64,
    progress: impl FnMut(Progress),
) -> Result<Recovery<O::Log>, Failure> {
    let (recovery, proof) = recover_beside(log, table_seed, None, progress)?;
    proof.check()?;
    Ok(recovery)
}

/// Like [`recover`], but verifies the snapshot's state hash and the laws on background threads, which
/// takes as long as the rest of a start. No request may be served before [`Proof::check`]. What is large lies on the shelf, if there is one.
pub(crate) fn recover_beside<O: OpenLog>(
    mut log: O,
    table_seed: u64,
    shelf: Option<Arc<dyn Shelf>>,
    progress: impl FnMut(Progress),
) -> Result<(Recovery<O::Log>, Proof), Failure> {
    let found = log.snapshots()?;
    let (mut bad, mut loaded) = (Vec::new(), None);
    for lsn in &found {
        match load(&mut log, *lsn, table_seed, shelf.clone())? {
            Ok(good) => {
                loaded = Some(good);
                break;
            }
            Err(fault) => bad.push((*lsn, fault)),
        }
    }
    let Some(Loaded { state, footer, bytes }) = loaded else {
        let kept = Kept { bad: bad.len() as u64, ..Kept::default() };
        let state = State::replaying(table_seed).on_shelf(shelf);
        let recovery = replay(log, state, None, bad, kept, progress)?;
        let laws = Laws::begin(&recovery.state);
        return Ok((recovery, Proof { claimed: None, laws }));
    };
    let newest = Some(SnapshotInfo::of(&footer, bytes, 0));
    let older = found.iter().find(|lsn| **lsn < footer.lsn).map(|lsn| Lsn(lsn.0));
    let kept = Kept { newest, older, bad: bad.len() as u64, ..Kept::default() };
    let claimed = Some(Claimed::begin(&state, &footer));
    let recovery = replay(log, state, Some(footer), bad, kept, progress)?;
    let laws = Laws::begin(&recovery.state);
    Ok((recovery, Proof { claimed, laws }))
}

/// That a snapshot gives the state that it was taken from, and that what follows from it keeps the
/// laws. Both are worked out on threads of their own.
#[derive(Debug)]
#[must_use = "no request may be served before it is checked"]
pub(crate) struct Proof {
    claimed: Option<Claimed>,
    laws: Laws,
}

impl Proof {
    /// Waits for it.
    pub(crate) fn check(self) -> Result<(), Failure> {
        self.claimed.map_or(Ok(()), Claimed::check)?;
        self.laws.check()
    }
}

/// The hash that a snapshot says it has.
#[derive(Debug)]
struct Claimed {
    lsn: Lsn,
    expected: StateHash,
    hashing: JoinHandle<io::Result<StateHash>>,
}

impl Claimed {
    fn begin(state: &State, footer: &SnapshotFooter) -> Self {
        let (lsn, expected) = (Lsn(footer.lsn.0), StateHash(footer.state_hash));
        let view = state.facts().clone();
        Self { lsn, expected, hashing: std::thread::spawn(move || view.try_hash()) }
    }

    fn check(self) -> Result<(), Failure> {
        let Self { lsn, expected, hashing } = self;
        let found = joined(hashing.join()).map_err(shelf_fault)?;
        match found == expected || planted::has(Bug::SnapshotHashUnchecked) {
            true => Ok(()),
            false => Err(Failure::Hash { lsn, expected, found }),
        }
    }
}

/// Whether a state keeps the laws.
#[derive(Debug)]
struct Laws(JoinHandle<Result<(), Violation>>);

impl Laws {
    fn begin(state: &State) -> Self {
        let view = state.facts().clone();
        Self(std::thread::spawn(move || invariant::check_facts(&view)))
    }

    fn check(self) -> Result<(), Failure> {
        joined(self.0.join()).map_err(Failure::Law)
    }
}

/// What a thread found; its panic is ours.
fn joined<T>(ended: std::thread::Result<T>) -> T {
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A snapshot that could be read.
struct Loaded {
    state: State,
    footer: SnapshotFooter,
    bytes: u64,
}

/// Reads a snapshot. One that has rotted is given back as a fault, and an older one can be tried;
/// one that is whole and makes no sense is a failure.
fn load<O: OpenLog>(
    log: &mut O,
    lsn: tenure_log::Lsn,
    table_seed: u64,
    shelf: Option<Arc<dyn Shelf>>,
) -> Result<Result<Loaded, Fault>, Failure> {
    let mut bytes = 0;
    let (read, state) = std::thread::scope(|scope| {
        let (pieces, filled) = sync_channel(BLOCKS_AHEAD);
        let (emptied, empty) = channel::<Vec<u8>>();
        let decoder = Decoder::new(table_seed).on_shelf(shelf);
        let decoding = scope.spawn(move || decode(decoder, &filled, &emptied));
        let read = log.load(lsn, &mut |piece| {
            bytes += piece.len() as u64;
            let mut buffer = empty.try_recv().unwrap_or_default();
            buffer.clear();
            buffer.extend_from_slice(piece);
            // If it has made no sense of an earlier one, it says so at the end.
            let _ = pieces.send(buffer);
        });
        drop(pieces);
        (read, joined(decoding.join()))
    });
    let footer = match read {
        Ok(footer) => footer,
        Err(fault @ (Fault::Corrupt(_) | Fault::Io { .. })) => return Ok(Err(fault)),
        Err(fault) => return Err(fault.into()),
    };
    let at = Lsn(lsn.0);
    let state = state.map_err(|malformed| Failure::Snapshot { lsn: at, malformed })?;
    let same = (state.last_lsn(), state.facts().task_count()) == (at, footer.items);
    if !same && !planted::has(Bug::SnapshotHashUnchecked) {
        let expected = StateHash(footer.state_hash);
        let found = state.facts().try_hash().map_err(shelf_fault)?;
        return Err(Failure::Hash { lsn: at, expected, found });
    }
    Ok(Ok(Loaded { state, footer, bytes }))
}

/// Makes a state of blocks as they come, and gives their memory back.
fn decode(
    mut decoder: Decoder,
    filled: &Receiver<Vec<u8>>,
    emptied: &Sender<Vec<u8>>,
) -> Result<State, Malformed> {
    for piece in filled {
        decoder.feed(&piece)?;
        // At the end nobody needs it any more.
        let _ = emptied.send(piece);
    }
    decoder.finish()
}

/// Opens the log, and applies what follows the snapshot.
fn replay<O: OpenLog>(
    log: O,
    mut state: State,
    snapshot: Option<SnapshotFooter>,
    bad: Vec<(tenure_log::Lsn, Fault)>,
    mut kept: Kept,
    mut progress: impl FnMut(Progress),
) -> Result<Recovery<O::Log>, Failure> {
    let mut failed = None;
    let (mut records, mut told) = (0, 0);
    let mut replay = |frame: &Frame<'_>| {
        for (lsn, bytes) in frame.records() {
            match codec::decode(bytes) {
                _ if failed.is_some() => return,
                Ok(record) => apply(&mut state, &record),
                Err(malformed) => failed = Some((Lsn(lsn.0), malformed)),
            }
            records += 1;
        }
        if records >= told + PROGRESS_RECORDS {
            told = records;
            progress(Progress { records, at: state.facts().last_at() });
        }
    };
    let anchor = snapshot.map(|footer| footer.anchor());
    let base = Base { anchor, bad: bad.iter().map(|(lsn, _)| *lsn).collect() };
    let mut notes: Vec<Note> = Vec::new();
    for (lsn, fault) in &bad {
        notes.push(Note::BadSnapshot { file: log.snapshot_name(*lsn), found: fault.finding() });
    }
    let opened = log.open(&base, &mut replay);
    let (log, recovered) = match (opened, bad.into_iter().next()) {
        (Ok(opened), _) => opened,
        (Err(log @ Fault::Corrupt(_)), Some((_, newest))) if anchor.is_none() => {
            return Err(Failure::NoSnapshot { newest: Box::new(newest), log: Box::new(log) });
        }
        (Err(fault), _) => return Err(fault.into()),
    };
    if let Some((lsn, malformed)) = failed {
        return Err(Failure::Record { lsn, malformed });
    }
    let Recovered { notes: more, at_ms, may_lack, bytes, .. } = recovered;
    kept.log_bytes += bytes;
    notes.extend(more);
    let at = Timestamp(at_ms);
    Ok(Recovery { state, log, notes, records, at, may_lack, kept })
}

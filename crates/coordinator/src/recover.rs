//! Starting: every record of the log is applied again, in order, and the laws are checked before
//! anybody is served.

use std::fmt;

use tenure_core::codec::{self, Malformed};
use tenure_core::id::Lsn;
use tenure_core::invariant::{self, Violation};
use tenure_core::time::Timestamp;
use tenure_core::{State, apply};
use tenure_wal::{Anchor, Fault, Frame, Note, Recovered};

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
    /// Whether records may be missing that somebody was told of.
    pub may_lack: bool,
}

impl<L> Recovery<L> {
    /// The same with the log in another shape.
    pub fn map_log<M, E>(self, map: impl FnOnce(L) -> Result<M, E>) -> Result<Recovery<M>, E> {
        let Self { state, log, notes, records, at, may_lack } = self;
        Ok(Recovery { state, log: map(log)?, notes, records, at, may_lack })
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
    /// What it says breaks a law.
    Law(Violation),
}

impl Failure {
    /// The exit code of a process that ends because of it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Log(fault) => fault.exit_code(),
            Failure::Record { .. } | Failure::Law(_) => 65,
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
            Failure::Law(violation) => write!(
                f,
                "the log breaks a law, which is a bug in Tenure: {violation}; nothing was changed; \
                 look with `tenure wal verify`, and please report it"
            ),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure::Log(fault)
    }
}

/// Replays a log. `open` opens it and hands over its frames; `table_seed` is any number that
/// strangers cannot foretell.
pub fn recover<L>(
    open: impl FnOnce(Option<Anchor>, &mut dyn FnMut(&Frame<'_>)) -> Result<(L, Recovered), Fault>,
    table_seed: u64,
    mut progress: impl FnMut(Progress),
) -> Result<Recovery<L>, Failure> {
    let mut state = State::replaying(table_seed);
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
    let (log, recovered) = open(None, &mut replay)?;
    if let Some((lsn, malformed)) = failed {
        return Err(Failure::Record { lsn, malformed });
    }
    invariant::check_facts(state.facts()).map_err(Failure::Law)?;
    let Recovered { notes, at_ms, may_lack, .. } = recovered;
    Ok(Recovery { state, log, notes, records, at: Timestamp(at_ms), may_lack })
}

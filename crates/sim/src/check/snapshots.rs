//! A snapshot that has rotted is noticed, told of, and not missed.

use tenure_log::{Lsn, Note};
use tenure_wal::snapshot::file_name;

use super::{LawResult, hold};

const LAW: &str = "a snapshot that has rotted is noticed and not missed";

/// A start has gone well. Which snapshot had rotted, and what was told of it.
pub(super) fn fell_back(rotten: Option<Lsn>, notes: &[Note]) -> LawResult {
    let told: Vec<&String> = notes
        .iter()
        .filter_map(|note| match note {
            Note::BadSnapshot { file, .. } => Some(file),
            Note::Torn { .. } | Note::Scar { .. } | Note::OneHeader { .. } => None,
        })
        .collect();
    let is_so = match rotten.map(file_name) {
        Some(file) => told == [&file],
        None => told.is_empty(),
    };
    hold(LAW, is_so, || format!("{rotten:?} had rotted, and {told:?} was told"))
}

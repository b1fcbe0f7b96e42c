//! Nothing that was told is undone: after a crash the log begins with every record that could have
//! been told, byte for byte, or with a snapshot of some and the rest.

use super::{LawResult, hold};

pub(super) const LAW: &str = "nothing that could be told is undone";
const AHEAD: &str = "a snapshot has nothing that is not durable";

/// What a start has found: a snapshot up to a record, and the records after that.
pub(super) fn recovered(tape: &[Vec<u8>], after: usize, found: &[Vec<u8>]) -> LawResult {
    hold(AHEAD, after <= tape.len(), || {
        format!("a snapshot has {after} records, and {} could be told", tape.len())
    })?;
    let last = after + found.len();
    hold(LAW, last >= tape.len(), || format!("records {} to {} are gone", last + 1, tape.len()))?;
    let differs = tape[after..].iter().zip(found).position(|(told, found)| told != found);
    hold(LAW, differs.is_none(), || format!("the record after {differs:?} is another"))
}

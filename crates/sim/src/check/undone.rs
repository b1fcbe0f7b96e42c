//! Nothing that was told is undone: after a crash the log begins with every record that could have
//! been told, byte for byte.

use super::{Held, hold};

pub(super) const LAW: &str = "nothing that could be told is undone";

pub(super) fn recovered(tape: &[Vec<u8>], found: &[Vec<u8>]) -> Held {
    hold(LAW, found.len() >= tape.len(), || {
        format!("records {} to {} are gone", found.len() + 1, tape.len())
    })?;
    let differs = tape.iter().zip(found).position(|(told, found)| told != found);
    hold(LAW, differs.is_none(), || format!("the record after {differs:?} is another"))
}

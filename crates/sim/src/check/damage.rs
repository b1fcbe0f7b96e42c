//! A log that was damaged while nobody looked is refused, or gives just what was told. Only the very
//! last frame, or the last frames that share a bad sector, with nothing written after them, may look
//! torn.

use super::{Broken, hold};

const LAW: &str = "damage is noticed";

/// What became of a start from a damaged copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noticed {
    /// It was refused.
    Refused,
    /// It was where it does no harm.
    Harmless,
    /// It took the end of the log, which looks torn.
    LooksTorn,
}

/// Compares what a damaged copy gave with what was told.
pub(crate) fn read(
    tape: &[Vec<u8>],
    at_risk: usize,
    found: Option<(usize, &[Vec<u8>])>,
    what: &str,
) -> Result<Noticed, Broken> {
    let Some((after, records)) = found else { return Ok(Noticed::Refused) };
    let told = tape.get(after..).unwrap_or_default();
    let differs = told.iter().zip(records).position(|(told, found)| told != found);
    hold(LAW, differs.is_none(), || format!("{what}: the record after {differs:?} is another"))?;
    let lost = told.len().saturating_sub(records.len());
    hold(LAW, lost <= at_risk, || {
        format!("{what}: {lost} records are gone, and the last frames had {at_risk}")
    })?;
    Ok(if lost == 0 { Noticed::Harmless } else { Noticed::LooksTorn })
}

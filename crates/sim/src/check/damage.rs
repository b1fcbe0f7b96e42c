//! A log that was damaged while nobody looked is refused, or gives just what was told. Only the very
//! last frame, with nothing written after it, may look torn.

use super::{Broken, hold};

const LAW: &str = "damage is noticed";

/// What became of a start from a damaged copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noticed {
    /// It was refused.
    Refused,
    /// It was where it does no harm.
    Harmless,
    /// It took the last frame, which looks torn.
    LastFrame,
}

/// Compares what a damaged copy gave with what was told.
pub(crate) fn read(
    tape: &[Vec<u8>],
    last_frame: usize,
    found: Option<(usize, &[Vec<u8>])>,
    what: &str,
) -> Result<Noticed, Broken> {
    let Some((after, records)) = found else { return Ok(Noticed::Refused) };
    let told = tape.get(after..).unwrap_or_default();
    let differs = told.iter().zip(records).position(|(told, found)| told != found);
    hold(LAW, differs.is_none(), || format!("{what}: the record after {differs:?} is another"))?;
    let lost = told.len().saturating_sub(records.len());
    hold(LAW, lost <= last_frame, || {
        format!("{what}: {lost} records are gone, and the last frame had {last_frame}")
    })?;
    Ok(if lost == 0 { Noticed::Harmless } else { Noticed::LastFrame })
}

//! Whether a record may end a task under its worker, seen from the keys of its fields alone. A report
//! of a plain task is looked through in a handful of steps. The numbers come from the declarations of
//! the events.

use super::message::{Field, Message, Numbers, Variant, is_equal, number_of};
use super::wire::{Malformed, Reader, Wire};
use super::{AT, LSN, VERSION, WALL_OFFSET};
use crate::event::{CancelTokens, Event, Report, ReportsApplied, Step};

/// Events that may stop a task whatever is in them.
const ALWAYS: [u32; 7] = [
    variant(Event::VARIANTS, "LeaseExpired").number,
    variant(Event::VARIANTS, "CancelRequested").number,
    variant(Event::VARIANTS, "TimerFired").number,
    variant(Event::VARIANTS, "SignalReceived").number,
    variant(Event::VARIANTS, "RunCancelRequested").number,
    variant(Event::VARIANTS, "RunsStarted").number,
    variant(Event::VARIANTS, "RunStartedBySignal").number,
];
/// By the number of an event: the field that holds its decisions, or zero.
const CASCADES: [u32; VARIANTS_MAX] = cascades(Event::VARIANTS);
/// Reports, the field that holds them, and where each has its decisions.
const REPORTS_APPLIED: u32 = variant(Event::VARIANTS, "ReportsApplied").number;
const REPORTS: u32 = field(ReportsApplied::FIELDS, "reports");
const REPORT_CASCADES: [u32; VARIANTS_MAX] = cascades(Report::VARIANTS);
/// The decision that ends tokens, and in it the tasks that end with them.
const CANCEL_TOKENS: u32 = variant(Step::VARIANTS, "CancelTokens").number;
const STOPPED_TASKS: u32 = field(CancelTokens::FIELDS, "tasks");

/// Numbers of variants are below this.
const VARIANTS_MAX: usize = 64;

/// A variant by its name. A name that is not declared does not compile.
const fn variant(variants: &[Variant], name: &str) -> Variant {
    let mut at = 0;
    loop {
        assert!(at < variants.len(), "no variant has this name");
        if is_equal(variants[at].name.as_bytes(), name.as_bytes()) {
            return variants[at];
        }
        at += 1;
    }
}

/// A field by its name. A name that is not declared does not compile.
const fn field(fields: Numbers, name: &str) -> u32 {
    let number = number_of(fields, name);
    assert!(number > 0, "no field has this name");
    number
}

const fn cascades(variants: &[Variant]) -> [u32; VARIANTS_MAX] {
    let mut cascades = [0; VARIANTS_MAX];
    let mut at = 0;
    while at < variants.len() {
        let Variant { number, fields, .. } = variants[at];
        cascades[number as usize] = number_of(fields, "cascade");
        at += 1;
    }
    cascades
}

pub(super) fn record(bytes: &[u8]) -> Result<bool, Malformed> {
    let mut from = Reader::new(bytes);
    while let Some((tag, wire)) = from.key()? {
        match tag {
            VERSION | LSN | AT | WALL_OFFSET => 0_u64.take(wire, &mut from)?,
            REPORTS_APPLIED => {
                return any(from.bytes()?, REPORTS, |report| cascade(report, &REPORT_CASCADES));
            }
            _ if ALWAYS.contains(&tag) => return Ok(true),
            _ => return item(tag, from.bytes()?, &CASCADES),
        }
    }
    Ok(true)
}

/// A message of which one field is there, which is an item.
fn cascade(message: &[u8], cascades: &[u32; VARIANTS_MAX]) -> Result<bool, Malformed> {
    let mut from = Reader::new(message);
    match from.key()? {
        Some((tag, Wire::Bytes)) => item(tag, from.bytes()?, cascades),
        Some(_) | None => Ok(false),
    }
}

fn item(tag: u32, item: &[u8], cascades: &[u32; VARIANTS_MAX]) -> Result<bool, Malformed> {
    let field = cascades.get(tag as usize).copied().unwrap_or_default();
    if field == 0 {
        return Ok(false);
    }
    any(item, field, |decision| {
        any(decision, CANCEL_TOKENS, |cancel| any(cancel, STOPPED_TASKS, |_| Ok(true)))
    })
}

/// Whether something is so of any of the parts that a message has in one field.
fn any(
    message: &[u8],
    field: u32,
    is_so: impl Fn(&[u8]) -> Result<bool, Malformed>,
) -> Result<bool, Malformed> {
    let mut from = Reader::new(message);
    while let Some((tag, wire)) = from.key()? {
        match wire {
            Wire::Varint => {
                from.varint()?;
            }
            Wire::Bytes => {
                let part = from.bytes()?;
                if tag == field && is_so(part)? {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

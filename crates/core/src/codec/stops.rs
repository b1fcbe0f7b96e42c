//! Whether a record may end a task under its worker, seen from the keys of its fields alone. A report
//! of a plain task is looked through in a handful of steps.

use super::message::Field;
use super::wire::{Malformed, Reader, Wire};
use super::{AT, LSN, VERSION};

/// Events that may stop a task whatever is in them.
const LEASE_EXPIRED: u32 = 7;
const CANCEL_REQUESTED: u32 = 13;
const TIMER_FIRED: u32 = 15;
const SIGNAL_RECEIVED: u32 = 21;
const RUN_CANCEL_REQUESTED: u32 = 22;
/// Events whose decisions say it, and the field that holds these.
const CASCADES: [(u32, u32); 5] = [(8, 5), (9, 5), (10, 9), (20, 2), (23, 1)];
/// Several reports, the field that holds them, and theirs.
const REPORTS_APPLIED: u32 = 12;
const REPORTS: u32 = 1;
const REPORT_CASCADES: [(u32, u32); 3] = [(2, 5), (3, 9), (4, 5)];
/// The decision that ends tokens, and in it the tasks that end with them.
const CANCEL_TOKENS: u32 = 14;
const STOPPED_TASKS: u32 = 2;

pub(super) fn record(bytes: &[u8]) -> Result<bool, Malformed> {
    let mut from = Reader::new(bytes);
    while let Some((tag, wire)) = from.key()? {
        match tag {
            VERSION | LSN | AT => 0_u64.take(wire, &mut from)?,
            LEASE_EXPIRED | CANCEL_REQUESTED | TIMER_FIRED | SIGNAL_RECEIVED
            | RUN_CANCEL_REQUESTED => return Ok(true),
            REPORTS_APPLIED => {
                return any(from.bytes()?, REPORTS, |report| cascade(report, &REPORT_CASCADES));
            }
            _ => return item(tag, from.bytes()?, &CASCADES),
        }
    }
    Ok(true)
}

/// A message of which one field is there, which is an item.
fn cascade(message: &[u8], cascades: &[(u32, u32)]) -> Result<bool, Malformed> {
    let mut from = Reader::new(message);
    match from.key()? {
        Some((tag, Wire::Bytes)) => item(tag, from.bytes()?, cascades),
        Some(_) | None => Ok(false),
    }
}

fn item(tag: u32, item: &[u8], cascades: &[(u32, u32)]) -> Result<bool, Malformed> {
    let Some((_, field)) = cascades.iter().find(|(there, _)| *there == tag) else {
        return Ok(false);
    };
    any(item, *field, |decision| {
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

//! Records as bytes: the protobuf wire format of `proto/tenure/log/v1/record.proto`, written by
//! hand into the frame and read back without copying.
//!
//! This is the one place that knows about versions. Older records are raised to the newest event
//! here, so that `apply` knows one version only; newer ones are refused untouched.

mod message;
mod stops;
mod wire;

pub use wire::Malformed;

pub(crate) use message::{
    Field, Message, Numbers, Variant, message, number_field, one_of, take_number,
};
pub(crate) use wire::{Reader, Wire, put_bytes, put_nested, put_number, put_varint};

use crate::event::{Event, Record};
use crate::id::Lsn;
use crate::time::{Timestamp, WallOffset};

/// The version that is written today.
pub const FORMAT_VERSION: u32 = 1;

const VERSION: u32 = 1;
const LSN: u32 = 2;
const AT: u32 = 3;
const WALL_OFFSET: u32 = 4;

/// Writes a record at the end of `out`.
pub fn encode(record: &Record<'_>, out: &mut Vec<u8>) {
    FORMAT_VERSION.put(VERSION, out);
    record.lsn.put_unless_default(LSN, out);
    record.at.put_unless_default(AT, out);
    record.now().offset().put_unless_default(WALL_OFFSET, out);
    record.event.put_one(out);
}

/// Reads a record; its texts and payloads borrow from `bytes`.
pub fn decode(bytes: &[u8]) -> Result<Record<'_>, Malformed> {
    let mut from = Reader::new(bytes);
    // The version comes first, so that nothing else is judged by the wrong one.
    let Some((VERSION, wire)) = from.key()? else {
        return Err(Malformed::new("a record does not begin with its version"));
    };
    let mut version = 0_u32;
    version.take(wire, &mut from)?;
    raise(version, from)
}

/// Whether a record may be about a leased task that should stop: a cancel, an expiry, a deadline, a
/// signal, the end of a run, or a report whose decisions end tasks of other tokens.
/// Looks at the keys of fields only, so that whoever waits for these need not decode everything.
#[must_use]
pub fn may_stop_a_task(bytes: &[u8]) -> bool {
    // What cannot be read is found by whoever decodes it.
    stops::record(bytes).unwrap_or(true)
}

/// Turns the rest of a record of any version into the newest event.
fn raise(version: u32, from: Reader<'_>) -> Result<Record<'_>, Malformed> {
    match version {
        1 => decode_v1(from),
        _ => Err(Malformed::new(format!(
            "a record has format version {version}; this binary reads up to {FORMAT_VERSION}"
        ))),
    }
}

fn decode_v1(mut from: Reader<'_>) -> Result<Record<'_>, Malformed> {
    let (mut lsn, mut at, mut event) = (Lsn::NONE, Timestamp::ZERO, None);
    let mut offset = WallOffset::ZERO;
    while let Some((tag, wire)) = from.key()? {
        match tag {
            LSN => lsn.take(wire, &mut from)?,
            AT => at.take(wire, &mut from)?,
            WALL_OFFSET => offset.take(wire, &mut from)?,
            _ if event.is_some() => return Err(Malformed::new("a record has more than one event")),
            _ => event = Some(Event::take_one(tag, wire, &mut from)?),
        }
    }
    let event = event.ok_or_else(|| Malformed::new("a record has no event"))?;
    Ok(Record { lsn, at, wall: offset.wall(at), event })
}

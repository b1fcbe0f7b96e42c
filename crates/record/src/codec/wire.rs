//! The protobuf wire format: just enough to write our messages straight into a frame and to read
//! them back without copying.

use std::fmt;

/// Bytes that are not a message of ours, or one from a newer version.
///
/// It is one pointer wide: results that carry it stay in registers, and decoding is all results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(#[allow(clippy::box_collection)] Box<String>);

impl Malformed {
    /// A refusal with that message.
    #[cold]
    pub fn new(message: impl Into<String>) -> Self {
        Self(Box::new(message.into()))
    }

    #[cold]
    pub(crate) fn no_such(number: u64, what: &str) -> Self {
        Self::new(format!("{number} is no {what}"))
    }

    /// A field that this version does not know. Dropping it would drop a fact, so it is refused.
    #[cold]
    pub(crate) fn unknown_field(message: &str, tag: u32) -> Self {
        Self::new(format!("{message} has field {tag}, which this version does not know"))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// How a field's value is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Varint,
    Bytes,
}

impl Wire {
    fn number(self) -> u32 {
        match self {
            Wire::Varint => 0,
            Wire::Bytes => 2,
        }
    }
}

/// A few bytes that are written together: a key and a number are at most 15.
#[derive(Default)]
struct Short {
    bytes: [u8; 16],
    len: usize,
}

impl Short {
    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes[self.len] = low_seven(value) | 0x80;
            value >>= 7;
            self.len += 1;
        }
        self.bytes[self.len] = low_seven(value);
        self.len += 1;
    }

    /// Copies all sixteen and takes back what is too much: a copy whose length is known is one
    /// instruction, any other is a call.
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        let end = out.len() + self.len;
        out.extend_from_slice(&self.bytes);
        out.truncate(end);
    }
}

#[inline]
fn key(tag: u32, wire: Wire) -> u64 {
    u64::from(tag << 3 | wire.number())
}

pub(crate) fn put_varint(value: u64, out: &mut Vec<u8>) {
    let mut short = Short::default();
    short.varint(value);
    short.put(out);
}

#[inline]
pub(crate) fn put_number(tag: u32, value: u64, out: &mut Vec<u8>) {
    let mut short = Short::default();
    short.varint(key(tag, Wire::Varint));
    short.varint(value);
    short.put(out);
}

#[inline]
pub(crate) fn put_bytes(tag: u32, bytes: &[u8], out: &mut Vec<u8>) {
    let mut short = Short::default();
    short.varint(key(tag, Wire::Bytes));
    short.varint(bytes.len() as u64);
    short.put(out);
    out.extend_from_slice(bytes);
}

/// Writes what `fill` writes, with its length in front.
pub(crate) fn put_nested(tag: u32, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    put_varint(key(tag, Wire::Bytes), out);
    // Nearly all messages are shorter than 128 bytes: their length takes the one byte left here.
    // The others are moved up, which is cheaper than measuring every message beforehand.
    let at = out.len();
    out.push(0);
    fill(out);
    let len = out.len() - at - 1;
    if len < 0x80 {
        out[at] = low_seven(len as u64);
        return;
    }
    let extra = varint_len(len as u64) - 1;
    let end = out.len();
    out.resize(end + extra, 0);
    out.copy_within(at + 1..end, at + 1 + extra);
    let mut rest = len as u64;
    for byte in &mut out[at..at + extra] {
        *byte = low_seven(rest) | 0x80;
        rest >>= 7;
    }
    out[at + extra] = low_seven(rest);
}

fn low_seven(value: u64) -> u8 {
    (value & 0x7f) as u8
}

fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Reads from the front of a slice; what it hands out borrows from that slice.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes that are left.
    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        if let [byte @ ..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for (i, &byte) in self.rest.iter().take(10).enumerate() {
            // The tenth byte has room for one bit only.
            if i == 9 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        Err(Malformed::new("a number does not end"))
    }

    /// The next field's tag and layout, or `None` at the end.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<Option<(u32, Wire)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key =
            u32::try_from(self.varint()?).map_err(|_| Malformed::new("a tag is too large"))?;
        let wire = match key & 7 {
            0 => Wire::Varint,
            2 => Wire::Bytes,
            other => return Err(Malformed::new(format!("wire type {other} is not used here"))),
        };
        Ok(Some((key >> 3, wire)))
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.varint()?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let Some((bytes, rest)) = self.rest.split_at_checked(len) else {
            return Err(Malformed::new("a field is longer than its message"));
        };
        self.rest = rest;
        Ok(bytes)
    }
}

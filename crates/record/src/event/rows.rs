//! Long lists in few bytes: what a canceled run takes with it may be hundreds of thousands of
//! tokens and tasks, and all of it is one record. Numbers that follow each other are one row, and
//! each row says only how far it is from the one before.

use crate::codec::{Field, Malformed, Reader, Wire, put_nested, put_varint};
use crate::id::{LeaseId, Lsn, TaskId, TokenId};
use crate::state::TaskState;

/// Tokens in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenRows(Vec<TokenRow>);

/// Tokens whose numbers follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TokenRow {
    first: u32,
    count: u32,
}

/// Tasks that end with their tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoppedRows(Vec<StoppedRow>);

/// Tasks whose numbers follow each other and that were treated alike; the numbers of their leases,
/// if they have any, follow each other too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoppedRow {
    first: Stopped,
    count: u32,
}

/// A task that ends with its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Which task.
    pub task_id: TaskId,
    /// WAITING or LEASED.
    pub from: TaskState,
    /// How many leases it had.
    pub attempt: u32,
    /// The record before this one that is part of its history.
    pub previous: Lsn,
    /// The lease, if there is one.
    pub lease_id: LeaseId,
}

impl Stopped {
    /// The one so many places further on in its row.
    fn nth(self, n: u32) -> Self {
        let n = u64::from(n);
        let task_id = TaskId(self.task_id.0 + n);
        let lease_id = match self.lease_id.is_some() {
            true => LeaseId(self.lease_id.0 + n),
            false => LeaseId::NONE,
        };
        Self { task_id, lease_id, ..self }
    }
}

impl TokenRows {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tokens, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> {
        self.0.iter().flat_map(|row| (0..row.count).map(|n| TokenId(row.first + n)))
    }

    /// About how many bytes they take in a record.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len() * 4
    }
}

/// They come in the order of their numbers.
impl FromIterator<TokenId> for TokenRows {
    fn from_iter<T: IntoIterator<Item = TokenId>>(tokens: T) -> Self {
        let mut rows: Vec<TokenRow> = Vec::new();
        for TokenId(token) in tokens {
            match rows.last_mut() {
                Some(row) if row.first + row.count == token => row.count += 1,
                _ => rows.push(TokenRow { first: token, count: 1 }),
            }
        }
        Self(rows)
    }
}

impl StoppedRows {
    /// The tasks, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = Stopped> {
        self.0.iter().flat_map(|row| (0..row.count).map(|n| row.first.nth(n)))
    }

    /// Adds a task at the end.
    pub fn push(&mut self, stopped: Stopped) {
        match self.0.last_mut() {
            Some(row) if row.first.nth(row.count) == stopped => row.count += 1,
            _ => self.0.push(StoppedRow { first: stopped, count: 1 }),
        }
    }

    /// About how many bytes they take in a record.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len() * 12
    }
}

fn ends_early() -> Malformed {
    Malformed::new("a row ends early, or is none")
}

impl<'a> Field<'a> for TokenRows {
    fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        put_nested(tag, out, |out| {
            let mut end = 0;
            for row in &self.0 {
                put_varint((row.first - end).into(), out);
                put_varint(row.count.into(), out);
                end = row.first + row.count;
            }
        });
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        let mut packed = Reader::new(packed_bytes(wire, from)?);
        let mut end = 0_u32;
        while !packed.is_empty() {
            let first = small(&mut packed)?.checked_add(end).ok_or_else(ends_early)?;
            let count = small(&mut packed)?;
            end = first.checked_add(count).filter(|_| count > 0).ok_or_else(ends_early)?;
            self.0.push(TokenRow { first, count });
        }
        Ok(())
    }
}

impl<'a> Field<'a> for StoppedRows {
    fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        put_nested(tag, out, |out| {
            let (mut task, mut previous, mut lease) = (0_u64, 0_u64, 0_u64);
            for StoppedRow { first, count } in &self.0 {
                put_varint(first.task_id.0.wrapping_sub(task), out);
                put_varint((*count).into(), out);
                put_varint(first.from as u64, out);
                put_varint(first.attempt.into(), out);
                put_varint(zigzag(first.previous.0.wrapping_sub(previous)), out);
                put_varint(zigzag(first.lease_id.0.wrapping_sub(lease)), out);
                let last = first.nth(count - 1);
                (task, previous, lease) = (last.task_id.0, last.previous.0, last.lease_id.0);
            }
        });
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        let mut packed = Reader::new(packed_bytes(wire, from)?);
        let (mut task, mut previous, mut lease) = (0_u64, 0_u64, 0_u64);
        while !packed.is_empty() {
            let task_id = task.wrapping_add(packed.varint()?);
            let count = small(&mut packed)?;
            let state = packed.varint()?;
            let from = TaskState::ALL.into_iter().find(|name| *name as u64 == state);
            let first = Stopped {
                task_id: TaskId(task_id),
                from: from.ok_or_else(ends_early)?,
                attempt: small(&mut packed)?,
                previous: Lsn(previous.wrapping_add(unzigzag(packed.varint()?))),
                lease_id: LeaseId(lease.wrapping_add(unzigzag(packed.varint()?))),
            };
            let further = u64::from(count.checked_sub(1).ok_or_else(ends_early)?);
            let fits = |number: u64| number.checked_add(further).is_some();
            if !fits(task_id) || !fits(first.lease_id.0) {
                return Err(ends_early());
            }
            let last = first.nth(count - 1);
            (task, previous, lease) = (last.task_id.0, last.previous.0, last.lease_id.0);
            self.0.push(StoppedRow { first, count });
        }
        Ok(())
    }
}

fn packed_bytes<'a>(wire: Wire, from: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let mut bytes: &[u8] = &[];
    bytes.take(wire, from)?;
    Ok(bytes)
}

fn small(from: &mut Reader<'_>) -> Result<u32, Malformed> {
    u32::try_from(from.varint()?).map_err(|_| ends_early())
}

/// Small numbers for small differences, whichever way they go.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64) >> 63) as u64
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(task: u64, previous: u64, lease: u64) -> Stopped {
        Stopped {
            task_id: TaskId(task),
            from: if lease > 0 { TaskState::Leased } else { TaskState::Waiting },
            attempt: 1,
            previous: Lsn(previous),
            lease_id: LeaseId(lease),
        }
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let tokens: TokenRows = [1, 2, 3, 7, 9, 10].into_iter().map(TokenId).collect();
        assert_eq!(tokens.iter().map(|token| token.0).collect::<Vec<_>>(), [1, 2, 3, 7, 9, 10]);
        let all = [(5, 9, 0), (6, 9, 0), (7, 9, 0), (8, 3, 40), (9, 3, 41), (20, 700, 12)];
        let all = all.map(|(task, previous, lease)| stopped(task, previous, lease));
        let mut rows = StoppedRows::default();
        all.iter().for_each(|item| rows.push(*item));
        assert_eq!((rows.0.len(), rows.iter().eq(all)), (3, true));
        let mut bytes = Vec::new();
        tokens.put(1, &mut bytes);
        rows.put(2, &mut bytes);
        let mut from = Reader::new(&bytes);
        let (mut same_tokens, mut same) = (TokenRows::default(), StoppedRows::default());
        let Ok(Some((1, wire))) = from.key() else { unreachable!("it was written first") };
        same_tokens.take(wire, &mut from).unwrap();
        let Ok(Some((2, wire))) = from.key() else { unreachable!("it was written second") };
        same.take(wire, &mut from).unwrap();
        assert_eq!((same_tokens, same), (tokens, rows));
    }

    #[test]
    fn a_row_that_ends_early_or_has_nothing_is_refused() {
        for packed in [&[1][..], &[1, 0], &[1, 1, 5]] {
            let mut bytes = Vec::new();
            put_nested(1, &mut bytes, |out| out.extend_from_slice(packed));
            let mut from = Reader::new(&bytes);
            let Ok(Some((_, wire))) = from.key() else { unreachable!("it was written") };
            assert!(TokenRows::default().take(wire, &mut from).is_err(), "{packed:?}");
        }
        for packed in [&[1, 1, 1, 0, 0][..], &[1, 0, 1, 0, 0, 0], &[1, 1, 99, 0, 0, 0]] {
            let mut bytes = Vec::new();
            put_nested(1, &mut bytes, |out| out.extend_from_slice(packed));
            let mut from = Reader::new(&bytes);
            let Ok(Some((_, wire))) = from.key() else { unreachable!("it was written") };
            assert!(StoppedRows::default().take(wire, &mut from).is_err(), "{packed:?}");
        }
    }
}

//! Blocks as bytes: how items are framed, and how a stream of blocks is read back item by item.

use super::items::{Counters, QueueItem, TaskItem, Totals, WorkerItem, each, put};
use super::run_items::{RunPart, WorkflowItem};
use super::{BLOCK_BYTES_MAX, Section};
use crate::codec::{Malformed, Reader, put_varint};

/// The longest head of a block: three numbers.
const HEAD_BYTES_MAX: usize = 30;

/// One item of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
// Items are built and used in place; a box would cost an allocation for each.
#[allow(clippy::large_enum_variant)]
pub enum Item<'a> {
    /// The counters of the log.
    Counters(Counters),
    /// A queue.
    Queue(QueueItem<'a>),
    /// A worker that holds leases.
    Worker(WorkerItem<'a>),
    /// A task.
    Task(TaskItem<'a>),
    /// A version of a workflow.
    Workflow(WorkflowItem<'a>),
    /// A part of a run.
    RunPart(RunPart<'a>),
    /// The number of items in each section. Nothing follows.
    Totals(Totals),
}

impl Item<'_> {
    /// Writes the item at the end of a block of its section.
    pub fn put(&self, block: &mut Vec<u8>) {
        match self {
            Item::Counters(item) => put(item, block),
            Item::Queue(item) => put(item, block),
            Item::Worker(item) => put(item, block),
            Item::Task(item) => put(item, block),
            Item::Workflow(item) => put(item, block),
            Item::RunPart(part) => part.put_one(block),
            Item::Totals(item) => put(item, block),
        }
    }
}

/// Writes a block of items at the end of `out`.
pub fn put_block(section: Section, items: &[u8], out: &mut Vec<u8>) {
    put_varint(section as u64, out);
    put_varint(section.version().into(), out);
    put_varint(items.len() as u64, out);
    out.extend_from_slice(items);
}

/// Reads a stream of blocks, in pieces of any size.
#[derive(Debug, Default)]
pub struct Blocks {
    /// The section of the last block.
    section: Option<Section>,
    /// The beginning of a block whose end is still to come.
    begun: Vec<u8>,
}

impl Blocks {
    /// Reads on, and hands every item to `visit`. A stream that was refused must not be fed more.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut visit: impl FnMut(Item<'_>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if self.begun.is_empty() {
            let rest = self.read(bytes, &mut visit)?;
            self.begun.extend_from_slice(rest);
            return Ok(());
        }
        let mut begun = std::mem::take(&mut self.begun);
        begun.extend_from_slice(bytes);
        let rest = self.read(&begun, &mut visit)?.len();
        begun.drain(..begun.len() - rest);
        self.begun = begun;
        Ok(())
    }

    /// Refuses a stream that has no end.
    pub fn finish(&self) -> Result<(), Malformed> {
        match self.section == Some(Section::End) && self.begun.is_empty() {
            true => Ok(()),
            false => Err(Malformed::new("a snapshot has no end")),
        }
    }

    /// Reads whole blocks, and gives back what follows the last of them.
    fn read<'b>(
        &mut self,
        mut bytes: &'b [u8],
        visit: &mut impl FnMut(Item<'_>) -> Result<(), Malformed>,
    ) -> Result<&'b [u8], Malformed> {
        while let Some(head) = head(bytes)? {
            let Some((block, rest)) = bytes[head.bytes..].split_at_checked(head.size) else {
                break;
            };
            let section = self.enter(head.section, head.version)?;
            items(section, block, visit)?;
            bytes = rest;
        }
        Ok(bytes)
    }

    /// The section of the next block, if it may come now.
    fn enter(&mut self, number: u64, version: u64) -> Result<Section, Malformed> {
        let Some(section) = Section::from_number(number) else {
            return Err(Malformed::new(format!(
                "a snapshot has section {number}, which this version does not know"
            )));
        };
        if version != u64::from(section.version()) && !self.is_old_end(section, version) {
            return Err(Malformed::new(format!(
                "section {section:?} has version {version}; this binary reads {}",
                section.version()
            )));
        }
        let follows = match self.section {
            None => section == Section::Counters,
            Some(before) => {
                let goes_on = section == before || before.next() == Some(section);
                before != Section::End && (goes_on || self.is_old_end(section, version))
            }
        };
        if !follows {
            return Err(Malformed::new(format!("section {section:?} is out of place")));
        }
        self.section = Some(section);
        Ok(section)
    }

    /// Before there were workflows, a snapshot ended after its tasks.
    fn is_old_end(&self, section: Section, version: u64) -> bool {
        (section, version) == (Section::End, 1) && self.section == Some(Section::Tasks)
    }
}

fn items(
    section: Section,
    block: &[u8],
    visit: &mut impl FnMut(Item<'_>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    match section {
        Section::Counters => each(block, |item| visit(Item::Counters(item))),
        Section::Queues => each(block, |item| visit(Item::Queue(item))),
        Section::Workers => each(block, |item| visit(Item::Worker(item))),
        Section::Tasks => each(block, |item| visit(Item::Task(item))),
        Section::Workflows => each(block, |item| visit(Item::Workflow(item))),
        Section::Runs => {
            let mut from = Reader::new(block);
            while let Some((tag, wire)) = from.key()? {
                visit(Item::RunPart(RunPart::take_one(tag, wire, &mut from)?))?;
            }
            Ok(())
        }
        Section::End => each(block, |item| visit(Item::Totals(item))),
    }
}

/// The head of a block.
struct Head {
    section: u64,
    version: u64,
    size: usize,
    /// The length of the head itself.
    bytes: usize,
}

/// The head of the next block, if it is there.
fn head(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let mut from = Reader::new(&bytes[..bytes.len().min(HEAD_BYTES_MAX)]);
    let numbers = (|| Ok::<_, Malformed>((from.varint()?, from.varint()?, from.varint()?)))();
    let (section, version, size) = match numbers {
        Ok(numbers) => numbers,
        // It is cut off, and goes on with the next piece.
        Err(_) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        Err(malformed) => return Err(malformed),
    };
    let size = usize::try_from(size).ok().filter(|size| *size <= BLOCK_BYTES_MAX);
    let Some(size) = size else {
        return Err(Malformed::new(format!(
            "a block of a snapshot is over {BLOCK_BYTES_MAX} bytes"
        )));
    };
    Ok(Some(Head { section, version, size, bytes: bytes.len().min(HEAD_BYTES_MAX) - from.len() }))
}

//! Snapshots: the state at a record, in a file of its own. The log before the older of two good
//! ones may go.
//!
//! ```text
//! header   magic, format, log id, LSN, CRC
//! block    size, CRC, bytes              each CRC starts from the LSN and the block's number
//! …
//! end      size 0, then the footer: blocks, bytes, items, chain, state hash, CRC
//! ```
//!
//! A snapshot is written under a temporary name, synced, read back and checked, and only then
//! gets its name. So a file with the name of a snapshot was good once.

use std::ops::ControlFlow;

use tenure_log::{Chain, Corruption, FORMAT, Fault, Lsn, SnapshotFooter};

use crate::disk::{Disk, DiskFile};
use crate::planted::{self, Bug};

/// Where a snapshot is written.
pub(crate) const TEMPORARY: &str = "snapshot.tmp";
/// Bytes of a block; the last one may be shorter.
const BLOCK_BYTES: usize = 1 << 20;
/// So much is written before it is synced. All at once at the end, the disk would be busy with it
/// for seconds, and every sync of the log would wait behind.
const SYNC_BYTES: u64 = 1 << 20;
/// How many good ones are kept.
const KEPT: usize = 2;
/// What follows the name of one that turned out to be bad.
const BAD: &str = ".bad";
const MAGIC: [u8; 8] = *b"TenureSN";
pub(crate) const HEADER_BYTES: usize = 48;
pub(crate) const BLOCK_HEADER_BYTES: usize = 8;
pub(crate) const FOOTER_BYTES: usize = 96;

/// A snapshot in the making.
#[derive(Debug)]
pub struct SnapshotWriter<D: Disk> {
    disk: D,
    file: D::File,
    log_id: u128,
    lsn: Lsn,
    offset: u64,
    /// The block that is being filled, with room for its header in front.
    block: Vec<u8>,
    blocks: u64,
    bytes: u64,
    /// Up to here it is durable.
    synced: u64,
}

impl<D: Disk> SnapshotWriter<D> {
    /// Begins a snapshot of the state after this record.
    pub fn create(disk: &D, log_id: u128, lsn: Lsn) -> Result<Self, Fault> {
        let file = disk.create(TEMPORARY).map_err(|e| Fault::io("create", TEMPORARY, e))?;
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        header[16..32].copy_from_slice(&log_id.to_le_bytes());
        header[32..40].copy_from_slice(&lsn.0.to_le_bytes());
        let crc = u64::from(crc32c::crc32c(&header[..40]));
        header[40..].copy_from_slice(&crc.to_le_bytes());
        file.write_all_at(&header, 0).map_err(|e| Fault::io("write", TEMPORARY, e))?;
        Ok(Self {
            disk: disk.clone(),
            file,
            log_id,
            lsn,
            offset: HEADER_BYTES as u64,
            block: vec![0; BLOCK_HEADER_BYTES],
            blocks: 0,
            bytes: 0,
            synced: 0,
        })
    }

    /// Adds bytes. Where one call ends and the next begins is not kept.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let room = BLOCK_HEADER_BYTES + BLOCK_BYTES - self.block.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK_HEADER_BYTES + BLOCK_BYTES {
                self.end_block()?;
            }
        }
        Ok(())
    }

    /// Ends the snapshot. When this returns, it was read back whole and its name is durable.
    /// Older ones than the last two are gone.
    pub fn finish(self, footer: &SnapshotFooter) -> Result<(), Fault> {
        let mut sealed = self.seal(*footer)?;
        while sealed.read_back()?.is_continue() {}
        sealed.name()
    }

    /// Writes the end and makes everything durable. It has no name yet, so nothing is changed if
    /// this fails.
    pub(crate) fn seal(mut self, footer: SnapshotFooter) -> Result<Sealed<D>, Fault> {
        assert_eq!(footer.lsn, self.lsn, "a snapshot ends as what it began as");
        if self.block.len() > BLOCK_HEADER_BYTES {
            self.end_block()?;
        }
        let mut end = vec![0; BLOCK_HEADER_BYTES];
        end.extend_from_slice(&encode_footer(&footer, self.blocks, self.bytes));
        self.put(&end)?;
        self.sync()?;
        let reading = Reading::open(&self.disk, TEMPORARY, self.log_id)?;
        Ok(Sealed { disk: self.disk, footer, bytes: self.offset, reading })
    }

    fn end_block(&mut self) -> Result<(), Fault> {
        let size = self.block.len() - BLOCK_HEADER_BYTES;
        let crc = block_crc(self.lsn, self.blocks, &self.block[BLOCK_HEADER_BYTES..]);
        self.block[..4].copy_from_slice(&(size as u32).to_le_bytes());
        self.block[4..8].copy_from_slice(&crc.to_le_bytes());
        let block = std::mem::take(&mut self.block);
        self.put(&block)?;
        self.block = block;
        self.block.truncate(BLOCK_HEADER_BYTES);
        self.blocks += 1;
        self.bytes += size as u64;
        if self.offset - self.synced >= SYNC_BYTES {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.file.sync().map_err(|e| Fault::io("sync", TEMPORARY, e))?;
        self.synced = self.offset;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let written = self.file.write_all_at(bytes, self.offset);
        written.map_err(|e| Fault::io("write", TEMPORARY, e))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// A snapshot that is written but has no name yet.
#[derive(Debug)]
pub(crate) struct Sealed<D: Disk> {
    disk: D,
    footer: SnapshotFooter,
    bytes: u64,
    reading: Reading<D::File>,
}

impl<D: Disk> Sealed<D> {
    /// What it says about itself.
    pub(crate) fn footer(&self) -> SnapshotFooter {
        self.footer
    }

    /// How long its file is.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads the next block back, and breaks after the last. A disk can lose or change a write and
    /// not say so. Once the name is there, older snapshots and the log before them go, so this is
    /// the last moment to notice.
    pub(crate) fn read_back(&mut self) -> Result<ControlFlow<()>, Fault> {
        if planted::has(Bug::SnapshotNotReadBack) {
            return Ok(ControlFlow::Break(()));
        }
        if self.reading.next_block()?.is_some() {
            return Ok(ControlFlow::Continue(()));
        }
        match self.reading.end()? == self.footer {
            true => Ok(ControlFlow::Break(())),
            false => Err(self.reading.corrupt("it does not read back as written")),
        }
    }

    /// Gives it its name, and forgets those that are too many. If this fails, nobody knows which
    /// names are durable.
    pub(crate) fn name(self) -> Result<(), Fault> {
        let name = file_name(self.footer.lsn);
        self.disk.rename(TEMPORARY, &name).map_err(|e| Fault::io("rename to", &name, e))?;
        // The rename is not durable until the folder is; without this a crash can lose the name.
        self.disk.sync_folder().map_err(|e| Fault::io("sync the folder of", &name, e))?;
        for old in list(&self.disk)?.iter().skip(KEPT) {
            let name = file_name(*old);
            self.disk.remove(&name).map_err(|e| Fault::io("remove", &name, e))?;
        }
        remove_bad(&self.disk)
    }
}

/// Takes its name from a snapshot that turned out to be bad, so that it is not used. The file stays
/// for inspection until the next good snapshot.
pub(crate) fn set_aside<D: Disk>(disk: &D, lsn: Lsn) -> Result<(), Fault> {
    let name = file_name(lsn);
    let aside = format!("{name}{BAD}");
    disk.rename(&name, &aside).map_err(|e| Fault::io("rename", &name, e))?;
    disk.sync_folder().map_err(|e| Fault::io("sync the folder of", &aside, e))
}

fn remove_bad<D: Disk>(disk: &D) -> Result<(), Fault> {
    let names = disk.list().map_err(|e| Fault::io("list", &disk.name(), e))?;
    let is_bad = |name: &&String| name.strip_suffix(BAD).is_some_and(|name| lsn_in(name).is_some());
    for name in names.iter().filter(is_bad) {
        disk.remove(name).map_err(|e| Fault::io("remove", name, e))?;
    }
    Ok(())
}

/// Removes what a crash may have left of a snapshot in the making.
pub(crate) fn remove_leftovers<D: Disk>(disk: &D) -> Result<(), Fault> {
    let names = disk.list().map_err(|e| Fault::io("list", &disk.name(), e))?;
    if names.iter().any(|name| name == TEMPORARY) {
        disk.remove(TEMPORARY).map_err(|e| Fault::io("remove", TEMPORARY, e))?;
    }
    Ok(())
}

/// The snapshots that are there, newest first.
pub fn list<D: Disk>(disk: &D) -> Result<Vec<Lsn>, Fault> {
    let names = disk.list().map_err(|e| Fault::io("list", &disk.name(), e))?;
    let mut found: Vec<Lsn> = names.iter().filter_map(|name| lsn_in(name)).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    Ok(found)
}

/// Reads a snapshot and hands its bytes over in pieces. Each piece was checked; that the whole is
/// there is known only when this returns well.
pub fn load<D: Disk>(
    disk: &D,
    log_id: u128,
    lsn: Lsn,
    mut visit: impl FnMut(&[u8]),
) -> Result<SnapshotFooter, Fault> {
    let name = file_name(lsn);
    let footer = read(disk, &name, log_id, &mut visit)?;
    match footer.lsn == lsn {
        true => Ok(footer),
        false => Err(foreign(&name, format!("it is the snapshot of LSN {}", footer.lsn))),
    }
}

fn read<D: Disk>(
    disk: &D,
    name: &str,
    log_id: u128,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<SnapshotFooter, Fault> {
    let mut reading = Reading::open(disk, name, log_id)?;
    while let Some(block) = reading.next_block()? {
        visit(block);
    }
    reading.end()
}

fn check_header(name: &str, header: &[u8; HEADER_BYTES], log_id: u128) -> Result<Lsn, Fault> {
    if header[..8] != MAGIC || long(header, 40) != u64::from(crc32c::crc32c(&header[..40])) {
        return Err(corrupt(name, 0, Lsn::NONE, "its header was changed"));
    }
    let version = word(header, 8);
    if version != FORMAT {
        return Err(Fault::Format { file: name.to_owned(), version });
    }
    if u128::from(long(header, 16)) | u128::from(long(header, 24)) << 64 != log_id {
        return Err(foreign(name, "it is from another log".to_owned()));
    }
    Ok(Lsn(long(header, 32)))
}

/// A snapshot that is being read, block by block.
#[derive(Debug)]
struct Reading<F> {
    file: F,
    name: String,
    lsn: Lsn,
    offset: u64,
    block: Vec<u8>,
    blocks: u64,
    bytes: u64,
}

impl<F: DiskFile> Reading<F> {
    fn open<D: Disk<File = F>>(disk: &D, name: &str, log_id: u128) -> Result<Self, Fault> {
        let file = disk.open(name).map_err(|e| Fault::io("open", name, e))?;
        let (name, lsn, block) = (name.to_owned(), Lsn::NONE, Vec::new());
        let mut reading = Self { file, name, lsn, offset: 0, block, blocks: 0, bytes: 0 };
        let mut header = [0; HEADER_BYTES];
        reading.fill(&mut header)?;
        reading.lsn = check_header(&reading.name, &header, log_id)?;
        Ok(reading)
    }

    /// The next block, checked; nothing after the last.
    fn next_block(&mut self) -> Result<Option<&[u8]>, Fault> {
        let mut head = [0; BLOCK_HEADER_BYTES];
        self.fill(&mut head)?;
        let size = word(&head, 0) as usize;
        if head == [0; BLOCK_HEADER_BYTES] {
            return Ok(None);
        }
        if size == 0 || size > BLOCK_BYTES {
            return Err(self.corrupt("a block has a size that blocks do not have"));
        }
        let mut block = std::mem::take(&mut self.block);
        block.resize(size, 0);
        self.fill(&mut block)?;
        if block_crc(self.lsn, self.blocks, &block) != word(&head, 4) {
            return Err(self.corrupt("a block was changed"));
        }
        self.block = block;
        self.blocks += 1;
        self.bytes += size as u64;
        Ok(Some(&self.block))
    }

    /// What it says about itself, once there is no further block.
    fn end(&mut self) -> Result<SnapshotFooter, Fault> {
        let mut footer = [0; FOOTER_BYTES];
        self.fill(&mut footer)?;
        let (footer, counted) = decode_footer(&footer, self.lsn)
            .ok_or_else(|| self.corrupt("its footer was changed"))?;
        if counted != (self.blocks, self.bytes) {
            return Err(self.corrupt("blocks are missing"));
        }
        let size = self.file.size().map_err(|e| Fault::io("look at", &self.name, e))?;
        match size == self.offset {
            true => Ok(footer),
            false => Err(self.corrupt("something follows its end")),
        }
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<(), Fault> {
        let read = self.file.read_full_at(into, self.offset);
        let read = read.map_err(|e| Fault::io("read", &self.name, e))?;
        if read < into.len() {
            return Err(self.corrupt("it is cut off"));
        }
        self.offset += read as u64;
        Ok(())
    }

    fn corrupt(&self, found: &str) -> Fault {
        corrupt(&self.name, self.offset, self.lsn, found)
    }
}

fn encode_footer(footer: &SnapshotFooter, blocks: u64, bytes: u64) -> [u8; FOOTER_BYTES] {
    let mut out = [0; FOOTER_BYTES];
    out[..8].copy_from_slice(&blocks.to_le_bytes());
    out[8..16].copy_from_slice(&bytes.to_le_bytes());
    out[16..24].copy_from_slice(&footer.items.to_le_bytes());
    out[24..56].copy_from_slice(&footer.chain.0);
    out[56..88].copy_from_slice(&footer.state_hash);
    let crc = u64::from(block_crc(footer.lsn, u64::MAX, &out[..88]));
    out[88..].copy_from_slice(&crc.to_le_bytes());
    out
}

/// The footer, and how many blocks and bytes it has counted.
fn decode_footer(bytes: &[u8; FOOTER_BYTES], lsn: Lsn) -> Option<(SnapshotFooter, (u64, u64))> {
    if long(bytes, 88) != u64::from(block_crc(lsn, u64::MAX, &bytes[..88])) {
        return None;
    }
    let mut chain = [0; 32];
    chain.copy_from_slice(&bytes[24..56]);
    let mut state_hash = [0; 32];
    state_hash.copy_from_slice(&bytes[56..88]);
    let footer = SnapshotFooter { lsn, chain: Chain(chain), state_hash, items: long(bytes, 16) };
    Some((footer, (long(bytes, 0), long(bytes, 8))))
}

/// A block's CRC starts from where it belongs, so that no two can change places.
pub(crate) fn block_crc(lsn: Lsn, number: u64, bytes: &[u8]) -> u32 {
    let mut start = [0; 16];
    start[..8].copy_from_slice(&lsn.0.to_le_bytes());
    start[8..].copy_from_slice(&number.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&start), bytes)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// What the file of a snapshot is called.
#[must_use]
pub fn file_name(lsn: Lsn) -> String {
    format!("snapshot-{:016x}.snap", lsn.0)
}

fn lsn_in(name: &str) -> Option<Lsn> {
    let lsn = name.strip_prefix("snapshot-")?.strip_suffix(".snap")?;
    (lsn.len() == 16).then(|| u64::from_str_radix(lsn, 16).ok().map(Lsn)).flatten()
}

fn corrupt(file: &str, offset: u64, lsn: Lsn, found: &str) -> Fault {
    let (file, found) = (file.to_owned(), found.to_owned());
    Fault::Corrupt(Corruption { file, offset, lsn, found })
}

fn foreign(file: &str, found: String) -> Fault {
    Fault::Foreign { file: file.to_owned(), found }
}

//! Laws of the log for any records and any order of events: it equals a plain list; and whatever
//! bytes it is given, it ends in an answer.
#![allow(clippy::unwrap_used)]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use support::image::{HEADER_BYTES, SECOND_HEADER_AT, disk_of, image_of, reseal_headers};
use support::{BATCHES, Mask, Nothing, options, write_all};
use tenure_log::{Batch, PAYLOAD_BYTES_MAX, Read};
use tenure_wal::disk::model::ModelDisk;
use tenure_wal::{Durability, Options, Wal};

/// Room for the largest batch.
const SEGMENT_BYTES: u64 = 300 << 10;

#[derive(Clone, Debug)]
enum Step {
    /// Records of these sizes.
    Append(Vec<usize>),
    Sync,
    Mark,
    Prepare,
    /// An orderly end and a new start.
    Reopen,
    /// The process is killed.
    Kill,
    /// The power fails, and these sectors and names survive.
    Crash(u64, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => vec(prop_oneof![3 => 0_usize..100, 1 => 0_usize..5_000], 1..50).prop_map(Step::Append),
        4 => Just(Step::Sync),
        1 => Just(Step::Mark),
        1 => Just(Step::Prepare),
        1 => Just(Step::Reopen),
        1 => Just(Step::Kill),
        1 => (any::<u64>(), 0_usize..6).prop_map(|(bits, names)| Step::Crash(bits, names)),
    ]
}

/// What the log must be equal to.
#[derive(Default)]
struct Model {
    records: Vec<Vec<u8>>,
    durable: usize,
    /// Where batches end: a crash loses whole ones.
    ends: Vec<usize>,
    made: u64,
    starts: u64,
}

impl Model {
    fn batch(&mut self, sizes: &[usize]) -> Batch {
        let mut batch = Batch::default();
        for size in sizes {
            self.made += 1;
            let record: Vec<u8> = (0..*size).map(|i| (self.made as usize * 31 + i) as u8).collect();
            batch.push(|out| out.extend_from_slice(&record));
            self.records.push(record);
        }
        self.ends.push(self.records.len());
        batch
    }

    fn open(&mut self, disk: &ModelDisk) -> Wal<ModelDisk> {
        self.starts += 1;
        let options = Options {
            // Several frames may be unsynced, which is harder than one.
            durability: Durability::Os,
            segment_bytes: SEGMENT_BYTES,
            salt_seed: self.starts,
            ..options()
        };
        let mut found = Vec::new();
        let opened = Wal::open(disk, options, None, |frame| {
            found.extend(frame.records().map(|(_, record)| record.to_vec()));
        });
        let (wal, recovered) = opened.unwrap_or_else(|fault| unreachable!("{fault}"));
        assert!(found.len() >= self.durable, "{} of {} durable", found.len(), self.durable);
        assert!(self.records.starts_with(&found), "records changed");
        assert!(found.is_empty() || self.ends.contains(&found.len()), "half a batch is there");
        assert_eq!(recovered.last_lsn.0, found.len() as u64);
        self.ends.retain(|end| *end <= found.len());
        self.durable = found.len();
        self.records = found;
        wal
    }
}

fn follow(steps: &[Step]) {
    let mut disk = ModelDisk::default();
    let mut model = Model::default();
    let mut wal = model.open(&disk);
    for step in steps {
        match step {
            Step::Append(sizes) => {
                let lsn = wal.append(&mut model.batch(sizes), 1).unwrap();
                assert_eq!(lsn.0, model.records.len() as u64);
            }
            Step::Sync => drop(wal.sync().unwrap()),
            Step::Mark => wal.mark(1).unwrap(),
            Step::Prepare => wal.prepare().unwrap(),
            Step::Reopen => {
                wal.sync().unwrap();
                model.durable = model.records.len();
                drop(wal);
                let kept = model.records.len();
                wal = model.open(&disk);
                assert_eq!(model.records.len(), kept);
            }
            Step::Kill => {
                let kept = model.records.len();
                disk = disk.killed();
                wal = model.open(&disk);
                assert_eq!(model.records.len(), kept, "what was written is still seen");
            }
            Step::Crash(bits, names) => {
                disk = disk.crashed(&mut Mask { bits: *bits, nth: 0, names: *names });
                wal = model.open(&disk);
            }
        }
        model.durable = wal.durable().0 as usize;
    }
    wal.sync().unwrap();
    let mut reader = wal.reader();
    let mut read = Vec::new();
    while let Read::Frame(frame) = reader.read().unwrap() {
        read.extend(frame.records().map(|(_, record)| record.to_vec()));
    }
    assert!(read == model.records, "the reader sees something else");
    model.durable = model.records.len();
    model.open(&disk.crashed(&mut Nothing));
}

/// Opens whatever is there; it must come to an end without a panic.
fn answer(disk: &ModelDisk) {
    let opened = Wal::open(disk, options(), None, |frame| {
        assert!(frame.records().all(|(_, record)| record.len() <= PAYLOAD_BYTES_MAX));
    });
    if let Ok((mut wal, _)) = opened {
        let mut batch = Batch::default();
        batch.push(|_| {});
        // It may be full or fail; it must not lie or panic.
        drop(wal.append(&mut batch, 1));
    }
}

#[test]
fn a_log_goes_on_in_larger_segments_when_they_are_asked_for() {
    let disk = ModelDisk::default();
    write_all(&disk, &BATCHES[..2], |_| {}).unwrap();
    let larger = Options { segment_bytes: SEGMENT_BYTES, ..options() };
    let (mut wal, recovered) = Wal::open(&disk, larger, None, |_| {}).unwrap();
    let mut batch = Batch::default();
    batch.push(|out| out.resize(100_000, 7));
    wal.append(&mut batch, 1).unwrap();
    wal.sync().unwrap();
    drop(wal);
    let (_, again) = Wal::open(&disk, larger, None, |_| {}).unwrap();
    assert_eq!(again.last_lsn, recovered.last_lsn.next());
}

/// As many cases as `PROPTEST_CASES` says, which proptest reads itself; else as many as are usual.
fn cases(usual: u32) -> ProptestConfig {
    /// What proptest takes when nobody tells it.
    const UNTOLD: u32 = 256;
    let told = ProptestConfig::default();
    let cases = if told.cases == UNTOLD { usual } else { told.cases };
    ProptestConfig { cases, failure_persistence: None, ..told }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn a_log_equals_a_list(steps in vec(step(), 1..40)) {
        follow(&steps);
    }

    #[test]
    fn random_bytes_are_answered(files in vec(vec(any::<u8>(), 0..20_000), 1..4)) {
        let disk = ModelDisk::default();
        for (number, bytes) in (1_u64..).zip(files) {
            disk.put(&support::image::segment_name(number), bytes);
        }
        answer(&disk);
    }

    /// A header whose checksum fits and whose fields are anything: sizes and numbers from a disk
    /// are never believed so far that memory or arithmetic runs out.
    #[test]
    fn random_headers_that_fit_their_checksum_are_answered(
        number in prop_oneof![Just(1), Just(u64::MAX), any::<u64>()],
        first_lsn in prop_oneof![Just(1), Just(0), Just(u64::MAX), any::<u64>()],
        file_bytes in prop_oneof![Just(0), Just(9_000), Just(8_191), Just(u64::MAX), any::<u64>()],
        noise in vec(any::<u8>(), 0..6_000),
    ) {
        let disk = ModelDisk::default();
        write_all(&disk, &BATCHES[..1], |_| {}).unwrap();
        let mut image = image_of(&disk);
        let mut bytes = image.pop_first().unwrap().1;
        for at in [0, SECOND_HEADER_AT] {
            bytes[at + 32..at + 40].copy_from_slice(&number.to_le_bytes());
            bytes[at + 40..at + 48].copy_from_slice(&first_lsn.to_le_bytes());
            bytes[at + 88..at + 96].copy_from_slice(&file_bytes.to_le_bytes());
            prop_assert!(at + HEADER_BYTES < bytes.len());
        }
        reseal_headers(&mut bytes);
        bytes.truncate(support::image::FRAMES_FROM);
        bytes.extend_from_slice(&noise);
        image.insert(support::image::segment_name(number), bytes);
        answer(&disk_of(&image));
    }
}

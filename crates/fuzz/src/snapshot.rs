//! A snapshot is damaged, with or without checksums that fit. It reads back as it was written, or
//! is refused; a forged one is refused or adds up.

use std::sync::OnceLock;

use tenure_log::SnapshotFooter;
use tenure_log::{Chain, Lsn};
use tenure_wal::disk::model::ModelDisk;
use tenure_wal::forge;
use tenure_wal::snapshot::{SnapshotWriter, load};

use crate::damage::{Image, Landmark, damage};
use crate::input::Input;
use crate::reference::{disk_of, image_of};

const LOG_ID: u128 = 0xabc;
const LSN: Lsn = Lsn(5);
const NAME: &str = "snapshot-0000000000000005.snap";
const HEADER_BYTES: usize = 48;
const BLOCK_HEADER_BYTES: usize = 8;
const FOOTER_BYTES: usize = 96;
/// Smaller than a writer makes them, so that an input of a few KiB has several.
const BLOCK_BYTES: usize = 300;
const CALLS_MAX: u64 = 2_000;

struct Sound {
    image: Image,
    landmarks: Vec<Landmark>,
    footer: SnapshotFooter,
    content: Vec<u8>,
}

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input(bytes);
    let seals = input.byte();
    let sound = sound();
    let mut image = sound.image.clone();
    damage(&mut image, &sound.landmarks, &mut input);
    let is_forged = seals & 1 == 1;
    if is_forged && let Some(bytes) = image.get_mut(NAME) {
        forge::reseal_snapshot(bytes);
    }
    let disk = disk_of(&image);
    let mut content = Vec::new();
    let loaded = load(&disk, LOG_ID, LSN, |piece| content.extend_from_slice(piece));
    assert!(disk.calls() < CALLS_MAX, "{} calls for one snapshot", disk.calls());
    assert!(image_of(&disk) == image, "reading changed a snapshot");
    match loaded {
        Ok(footer) if !is_forged => {
            assert!(image.get(NAME) == sound.image.get(NAME), "a changed bit was not noticed");
            assert!(footer == sound.footer && content == sound.content, "it reads back otherwise");
        }
        Ok(footer) => {
            let size = image.get(NAME).map_or(0, Vec::len);
            assert!(content.len() < size, "{} bytes out of {size}", content.len());
            assert_eq!(footer.lsn, LSN);
        }
        Err(fault) => {
            let is_sound = image.get(NAME) == sound.image.get(NAME);
            assert!(!is_sound, "a sound snapshot is refused: {fault}");
        }
    }
}

fn sound() -> &'static Sound {
    static MADE: OnceLock<Sound> = OnceLock::new();
    MADE.get_or_init(|| {
        let content: Vec<u8> = (0..1_000_u32).map(|i| (i * 31 + i / 64) as u8).collect();
        let footer =
            SnapshotFooter { lsn: LSN, chain: Chain([3; 32]), state_hash: [7; 32], items: 12 };
        let disk = ModelDisk::default();
        let mut writer = SnapshotWriter::create(&disk, LOG_ID, LSN).expect("the model works");
        writer.write(&content).expect("the model works");
        writer.finish(&footer).expect("the model works");
        let (bytes, starts) = in_small_blocks(&image_of(&disk)[NAME], &content);
        let landmarks = starts.into_iter().map(|at| (NAME.to_owned(), at)).collect();
        Sound { image: Image::from([(NAME.to_owned(), bytes)]), landmarks, footer, content }
    })
}

/// The same snapshot in smaller blocks, and where its parts begin.
fn in_small_blocks(written: &[u8], content: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = written[..HEADER_BYTES].to_vec();
    let mut starts = vec![0];
    let blocks = content.chunks(BLOCK_BYTES);
    let count = blocks.len() as u64;
    for block in blocks {
        starts.push(bytes.len());
        bytes.extend_from_slice(&(block.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(block);
    }
    starts.push(bytes.len());
    bytes.extend_from_slice(&[0; BLOCK_HEADER_BYTES]);
    let footer = bytes.len();
    starts.push(footer);
    bytes.extend_from_slice(&written[written.len() - FOOTER_BYTES..]);
    bytes[footer..footer + 8].copy_from_slice(&count.to_le_bytes());
    forge::reseal_snapshot(&mut bytes);
    (bytes, starts)
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![vec![0], vec![1]];
    for kind in 0..12 {
        for seals in 0..2 {
            for part in 0..7 {
                seeds.push(vec![seals, kind, 4 * part + 1, 8, 3, 0, 9, 9, 9, 9]);
            }
        }
    }
    seeds
}

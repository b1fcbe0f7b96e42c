//! Core's records: whatever bytes are read as a record are written again as the same record, and
//! there is one way to write it. (Not always the way it came: a field may be left out that a writer
//! always puts in.)

use tenure_core::codec::{decode, encode};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(record) = decode(bytes) else { return };
    let mut written = Vec::new();
    encode(&record, &mut written);
    let again = decode(&written).expect("what was written can be read");
    assert_eq!(again, record, "it reads back as something else");
    let mut rewritten = Vec::new();
    encode(&again, &mut rewritten);
    assert_eq!(rewritten, written, "the same record has two forms");
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    // Version 1, LSN 7, a time, and an event of each number with nothing in it.
    (0..30_u8)
        .map(|event| {
            let key = u32::from(event) << 3 | 2;
            let mut seed = vec![8, 1, 16, 7, 24, 100];
            match key < 128 {
                true => seed.push(key as u8),
                false => seed.extend_from_slice(&[key as u8 | 128, (key >> 7) as u8]),
            }
            seed.push(0);
            seed
        })
        .collect()
}

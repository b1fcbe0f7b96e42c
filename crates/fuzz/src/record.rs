//! Core's records: whatever bytes are read as a record are written again as the same record, and
//! there is one way to write it. (Not always the way it came: a field may be left out that a writer
//! always puts in.)

use tenure_record::codec::{decode, encode};

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

#[cfg(test)]
mod tests {
    use tenure_record::event::{Event, Step};

    use super::*;

    #[test]
    fn the_corpus_has_endings_and_parked_runs_that_can_be_read() {
        let known = crate::target("record").map(|target| target.known()).unwrap_or_default();
        let records: Vec<_> = known.iter().filter_map(|bytes| decode(bytes).ok()).collect();
        let has = |is: fn(&Event<'_>) -> bool| records.iter().any(|record| is(&record.event));
        let ends = |event: &Event<'_>| {
            matches!(event, Event::EndContinued(it)
                if it.cascade.iter().any(|it| matches!(it.step, Step::EndScope(_))))
        };
        let closes = |event: &Event<'_>| {
            matches!(event, Event::EndContinued(it)
                if it.cascade.iter().any(|it| matches!(it.step, Step::CloseScope(_))))
        };
        assert!(has(ends) && has(closes));
        assert!(has(|event| matches!(event, Event::RunParked(it) if it.reason.as_str() == "x")));
        assert!(has(|event| matches!(event, Event::RunUnparked(it) if it.run_id.0 == 1)));
    }
}

//! A snapshot and the records after it give what all records give, wherever it was taken.

use tenure_audit::{Audit, Seed};
use tenure_core::command::Rest;
use tenure_core::state::Facts;
use tenure_core::state::snapshot::{Decoder, Encoder, each_item};
use tenure_core::{State, apply, invariant};
use tenure_record::codec;
use tenure_record::time::{Now, Timestamp};

/// Writes facts and reads them back.
pub(crate) fn written_and_read(facts: &Facts) -> Result<State, String> {
    let mut encoder = Encoder::new(facts.clone());
    let mut decoder = Decoder::new(7);
    let mut bytes = Vec::new();
    while encoder.next_block(&mut bytes).expect("the shelf gives what it took") == Rest::More {}
    decoder.feed(&bytes).and_then(|()| decoder.finish()).map_err(|malformed| malformed.to_string())
}

/// An audit that begins after these facts.
pub(crate) fn seeded(facts: &Facts) -> Audit {
    let mut seed = Seed::new();
    each_item(facts, |item| seed.item(&item)).expect("a state's items fit each other");
    seed.finish()
}

/// Takes a snapshot after every record, and lives through the rest of the log from each.
pub(crate) fn at_every_record(log: &[Vec<u8>]) -> Result<(), String> {
    let mut state = State::replaying(0);
    let mut starts: Vec<(State, Audit)> = Vec::new();
    let mut whole = Audit::new();
    for bytes in log {
        let record = codec::decode(bytes).map_err(|malformed| malformed.to_string())?;
        apply(&mut state, &record);
        whole.record(&record).map_err(|broken| broken.to_string())?;
        for (state, audit) in &mut starts {
            apply(state, &record);
            audit.record(&record).map_err(|broken| format!("from a snapshot: {broken}"))?;
        }
        let loaded = written_and_read(state.facts())?;
        starts.push((loaded.clone(), seeded(loaded.facts())));
    }
    let hash = state.facts().hash();
    for (start, (mut loaded, audit)) in starts.into_iter().enumerate() {
        let from = format!("from a snapshot after record {}", start + 1);
        let facts = loaded.facts();
        if facts.hash() != hash {
            return Err(format!("{from} the hash is another"));
        }
        whole.compare(&seeded(facts)).map_err(|broken| format!("{from}: {broken}"))?;
        audit
            .compare(&seeded(facts))
            .map_err(|broken| format!("{from}, by its own audit: {broken}"))?;
        audit.finish().map_err(|broken| format!("{from}, at the end: {broken}"))?;
        loaded.serve(Now::both(Timestamp(u64::MAX / 4)));
        invariant::check(&loaded).map_err(|broken| format!("{from}: {broken}"))?;
    }
    Ok(())
}

/// The snapshot after the last record.
pub(crate) fn whole(log: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let mut state = State::replaying(0);
    for bytes in log {
        apply(&mut state, &codec::decode(bytes).map_err(|malformed| malformed.to_string())?);
    }
    let mut encoder = Encoder::new(state.facts().clone());
    let mut bytes = Vec::new();
    while encoder.next_block(&mut bytes).expect("the shelf gives what it took") == Rest::More {}
    Ok(bytes)
}

/// Reads what may be damaged. It is refused, be it by a law, or makes a state that can serve.
pub(crate) fn read_damaged(bytes: &[u8]) -> Option<State> {
    let mut decoder = Decoder::new(0);
    let mut read = decoder.feed(bytes).and_then(|()| decoder.finish()).ok()?;
    let _ = read.facts().hash();
    invariant::check_facts(read.facts()).ok()?;
    read.serve(Now::both(Timestamp(u64::MAX / 4)));
    Some(read)
}

//! A shelf for tests, in memory: it counts what lies on it, and refuses now and then. And plans whose
//! payloads are about as large as what goes there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tenure_core::command::{Command, Rest};
use tenure_core::limits::LARGE_BYTES;
use tenure_core::shelf::{Shelf, Shelved};
use tenure_core::state::snapshot::{Decoder, Encoder};
use tenure_core::{State, apply, invariant};
use tenure_record::codec;
use tenure_record::terms::Payload;

use crate::snapshots;
use crate::world::{Act, Plan, Report, Wish};

/// How many strings a shelf has, and how many it was asked to take.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub lying: AtomicUsize,
    pub asked: AtomicUsize,
    pub refused: AtomicUsize,
}

#[derive(Debug)]
pub(crate) struct TestShelf {
    pub tally: Arc<Tally>,
    /// What says whether it takes the next one.
    mood: AtomicU64,
    /// It refuses one in so many; none if zero.
    refuses: u64,
}

#[derive(Debug)]
struct Lying {
    bytes: Vec<u8>,
    tally: Arc<Tally>,
}

impl TestShelf {
    pub(crate) fn new(seed: u64, refuses: u64) -> Arc<Self> {
        Arc::new(Self { tally: Arc::default(), mood: AtomicU64::new(seed), refuses })
    }
}

impl Shelf for TestShelf {
    fn keep(&self, bytes: &[u8]) -> Option<Arc<dyn Shelved>> {
        assert!(bytes.len() > LARGE_BYTES, "only what is large goes to the shelf");
        self.tally.asked.fetch_add(1, Ordering::Relaxed);
        let mood = self.mood.load(Ordering::Relaxed);
        let mood = mood.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        self.mood.store(mood, Ordering::Relaxed);
        if self.refuses > 0 && (mood >> 33).is_multiple_of(self.refuses) {
            self.tally.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.tally.lying.fetch_add(1, Ordering::Relaxed);
        Some(Arc::new(Lying { bytes: bytes.to_vec(), tally: Arc::clone(&self.tally) }))
    }
}

impl Shelved for Lying {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn read(&self) -> std::io::Result<Vec<u8>> {
        Ok(self.bytes.clone())
    }
}

impl Drop for Lying {
    fn drop(&mut self) {
        self.tally.lying.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The same plan with payloads and outputs around the bound: some below, some at it, some above.
pub(crate) fn enlarged(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    // To cut a large record at each of its bytes would take all day.
    plan.faults.clear();
    for a_move in &mut plan.moves {
        let Wish::Act(act) = &mut a_move.wish else { continue };
        let mut seed = a_move.seed;
        match act {
            Act::Plain(Command::SubmitTasks(submit)) => {
                submit.tasks.iter_mut().for_each(|task| enlarge(&mut task.payload, &mut seed));
            }
            Act::Report(Report::Complete(output), _) => enlarge(output, &mut seed),
            Act::Reports(reports) => reports.iter_mut().for_each(|(report, _)| {
                if let Report::Complete(output) = report {
                    enlarge(output, &mut seed);
                }
            }),
            Act::Plain(_)
            | Act::Report(..)
            | Act::Again
            | Act::Cancel(..)
            | Act::Retry(_)
            | Act::Drop(_) => {}
        }
    }
    plan
}

/// The same payload is enlarged to the same one whenever the seed says so, so that keys still meet.
fn enlarge(payload: &mut Payload, seed: &mut u64) {
    let len = match *seed % 8 {
        0 | 1 => return,
        2 => LARGE_BYTES - 1,
        3 => LARGE_BYTES,
        4 | 5 => LARGE_BYTES + 1,
        _ => LARGE_BYTES + 10_000,
    };
    *seed /= 8;
    let mut bytes = payload.as_bytes().to_vec();
    bytes.resize(len.max(bytes.len()), b' ');
    *payload = Payload::parse("payload", bytes).expect("it is within its bound");
}

/// A state on a shelf and one in memory write the same snapshot, and either reads the other's.
pub(crate) fn same_snapshots(log: &[Vec<u8>], shelf: &Arc<TestShelf>) -> Result<(), String> {
    let near = snapshots::whole(log)?;
    let mut state = State::replaying(0).on_shelf(Some(shelf.clone()));
    for bytes in log {
        apply(&mut state, &codec::decode(bytes).map_err(|malformed| malformed.to_string())?);
    }
    let mut encoder = Encoder::new(state.facts().clone());
    let mut far = Vec::new();
    while encoder.next_block(&mut far).expect("the shelf gives what it took") == Rest::More {}
    if near != far {
        return Err("the shelf is seen in the snapshot".to_owned());
    }
    let mut decoder = Decoder::new(7).on_shelf(Some(shelf.clone()));
    let read = decoder.feed(&near).and_then(|()| decoder.finish());
    let read = read.map_err(|malformed| malformed.to_string())?;
    invariant::check_facts(read.facts()).map_err(|broken| broken.to_string())?;
    match read.facts().hash() == state.facts().hash() {
        true => Ok(()),
        false => Err("a snapshot read onto a shelf has another hash".to_owned()),
    }
}
